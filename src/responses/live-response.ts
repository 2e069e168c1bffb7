import { ApiError, notFound } from '../lib/api-error.ts'
import { errorText, logEvent } from '../lib/log.ts'
import { withinTime } from '../lib/time-limit.ts'
import type { ResponseObject, ResponseSettings } from '../wire/responses.ts'
import { type AdmittedRequest, conversationLocked, readAdmission, readRequest } from './admission.ts'
import { responseEmitter, saidItemsOf } from './emission.ts'
import type { ResponseEmitter } from './emitter.ts'
import { ResponseEngine } from './engine.ts'
import { errorData } from './error-data.ts'
import { EventLog } from './event-log.ts'
import type { EmittedEvent } from './event-writer.ts'
import {
  contentKeys,
  type FinalResponse,
  finalResponse,
  type KeptInput,
  keptItem,
  withLargeElsewhere,
  writeFinal,
} from './final-response.ts'
import { pageOfItems } from './item-list.ts'
import type { ItemPageRequest } from './items/store.ts'
import type { LiveDeps } from './live-deps.ts'
import { newHead, ObjectState, type ResponseHead } from './object-state.ts'
import { interruptedResponse, terminalCount, terminalEvents } from './recovery.ts'
import { currentRights } from './rights.ts'
import { outputContextItem } from './said-items.ts'
import { beginResponse, releaseConversation } from './store.ts'
import { storedItems } from './stored-items.ts'
import type { Admission, Owner, ResponseStreamObject, StartResult } from './types.ts'

/** A running response is looked after so often; its object stays in memory between two looks. */
const LOOK_AFTER_MS = 30_000
/** How long the last event waits for Postgres. */
const FINISH_LIMIT_MS = 2_000
const FIRST_RETRY_MS = 2_000
const LONGEST_RETRY_MS = 60_000
/** Readers of one response at a time: each may hold a segment in the memory of its object. */
const MAXIMUM_TAILS = 200

/** A response that generates, or has. */
interface Running {
  engine: ResponseEngine
  emitter: ResponseEmitter
}

/**
 * One response in its Durable Object: it generates whether or not anybody reads, keeps the numbered events, and forgets
 * everything when its window closes (design: Responses). What a restart finds running had a producer that died: the
 * response has failed then, and says so with its next numbers.
 */
export class LiveResponse implements ResponseStreamObject {
  readonly #storage: DurableObjectStorage
  readonly #deps: LiveDeps
  readonly #state: ObjectState
  #log: EventLog
  #head: ResponseHead | null
  #running: Running | null = null
  #admitting = false
  #ended = Promise.withResolvers<void>()
  #retries = 0

  constructor(storage: DurableObjectStorage, deps: LiveDeps) {
    this.#storage = storage
    this.#deps = deps
    this.#state = new ObjectState(storage.sql)
    this.#log = this.#openLog()
    this.#head = this.#state.get<ResponseHead>('head')
    if (this.#head && this.#head.phase !== 'ended') this.#recover(this.#head)
    if (this.#head?.phase === 'ended') this.#ended.resolve()
  }

  async start(admission: Admission, body: ReadableStream<Uint8Array>): Promise<StartResult> {
    const { record } = admission
    try {
      // Whoever comes second has lost: the epoch of a response is its object's life, and it is started once.
      if (this.#head) throw new Error('the response was started before')
      const settings = await this.#admit(admission, body)
      this.#deps.waitUntil(this.#generate().catch((error) => this.#breakOff(error)))
      return {
        error: null,
        record,
        stream: settings.stream === true,
        background: settings.background === true,
      }
    } catch (error) {
      if (!(error instanceof ApiError)) logEvent('error', 'response_not_started', { error: errorText(error) })
      return { error: errorData(error), record }
    }
  }

  async #admit(admission: Admission, body: ReadableStream<Uint8Array>): Promise<ResponseSettings> {
    const owner = ownerOf(admission)
    this.#admitting = true
    let letGo = () => {}
    try {
      this.#writeHead(newHead(admission, owner, this.#deps.clock()))
      await this.#wakeIn(LOOK_AFTER_MS)
      const { request, release } = await readRequest(this.#deps, body)
      letGo = release
      const admitted = await readAdmission(this.#deps, admission, owner, request)
      const emitter = responseEmitter(this.#deps, this.#known(), admitted, (event) => this.#log.append(event))
      const engine = new ResponseEngine(this.#deps, {
        ...admitted,
        admission,
        saidItems: saidItemsOf(this.#deps, owner, emitter, admitted),
        emitter,
        currentRights: () => currentRights(this.#deps, admission.principal),
        onAdmitted: async () => {
          await this.#begin(admitted)
          emitter.begin()
        },
      })
      this.#running = { engine, emitter }
      await engine.admitted
      return admitted.settings
    } catch (error) {
      this.#running = null
      await this.#abandon()
      throw error
    } finally {
      letGo()
      this.#admitting = false
    }
  }

  /** The row is written and the conversation is this response's alone, or the call is refused. */
  async #begin({ context, settings, policy }: AdmittedRequest): Promise<void> {
    const { owner } = this.#known()
    const items = await storedItems(this.#deps, owner, context.input, policy)
    this.#state.put('input', { items, referenced: [...context.referenced] } satisfies KeptInput)
    const store = settings.store !== false
    const { conversationId, previousResponseId, forkOf, creates, position } = context
    const head: ResponseHead = {
      ...this.#known(),
      model: settings.model,
      store,
      conversationId,
      previousResponseId,
      policyVersion: policy.version,
      begun: store,
    }
    this.#writeHead(head)
    if (store) {
      const begun = await beginResponse(this.#deps.database, owner, {
        id: head.responseId,
        keyId: head.keyId,
        model: head.model,
        createdAt: head.createdAt,
        policyVersion: head.policyVersion,
        conversation: conversationId === null ? null : { id: conversationId, creates, position },
        forkOf,
        previousResponseId,
      })
      if (begun === 'not_found') throw notFound('Conversation', conversationId ?? '')
      if (begun !== 'begun') throw conversationLocked()
    }
    this.#writeHead({ ...head, phase: 'running' })
  }

  async #generate(): Promise<void> {
    const running = this.#running
    if (!running) return
    const { engine, emitter } = running
    const end = await engine.run()
    if (this.#running !== running) return
    const final = finalResponse(this.#deps, this.#known().owner, emitter, { ...end, usage: engine.usage })
    // Nothing is final before all is stored that was told of it.
    this.#log.flush()
    await this.#finish(final, () => emitter.terminate())
  }

  /** What went wrong in here ends the response as a restart does: with what is stored of it. */
  #breakOff(error: unknown): void {
    logEvent('error', 'response_broke_off', { error: errorText(error) })
    this.#running = null
    const head = this.#head
    if (!head || !isUnderWay(head)) return
    // What can still be stored is; a log that failed takes nothing more, and its readers open another one.
    try {
      this.#log.flush()
    } catch {}
    this.#log.endTails()
    this.#log = this.#openLog()
    this.#recover(head)
  }

  /** Final items first, then the last event: who has read that finds them (design: Responses). */
  async #finish(final: FinalResponse, terminate: () => void): Promise<void> {
    const { store } = this.#known()
    this.#state.put('final', final)
    this.#writeHead({ ...this.#known(), phase: 'ending', owed: store })
    if (store) {
      await withinTime(this.#write(), FINISH_LIMIT_MS, 'writing the response').catch((error) =>
        logEvent('warn', 'response_owed', { error: errorText(error) }),
      )
    }
    // Removed while it was written.
    if (this.#head?.phase !== 'ending') return
    terminate()
    this.#end()
  }

  #end(): void {
    this.#log.close()
    this.#running = null
    this.#writeHead({ ...this.#known(), phase: 'ended', endedAt: this.#deps.clock() })
    this.#ended.resolve()
    this.#deps.waitUntil(this.#arrangeAlarm())
  }

  /** @throws when Postgres cannot be known to have it; doing it again does no harm. */
  async #write(): Promise<void> {
    const head = this.#known()
    const final = this.#state.get<FinalResponse>('final')
    if (!final) return
    const placed = await withLargeElsewhere(this.#deps, head.owner, final)
    // Removed meanwhile: what lies elsewhere is erased by what follows.
    if (this.#head && placed !== final) this.#state.put('final', placed)
    const untold = this.#log.closed ? 0 : terminalCount(final.response)
    await writeFinal(this.#deps, head, this.#input(), placed, this.#log.lastSequence + untold)
    if (this.#head) this.#writeHead({ ...this.#head, owed: false })
  }

  /** What a restart finds: nobody generates any more. */
  #recover(head: ResponseHead): void {
    if (head.phase === 'admitting' || this.#log.lastSequence === 0) {
      // Nobody was told of it. Only Postgres may hold a row, and a conversation for it.
      this.#deps.waitUntil(this.#abandon())
      return
    }
    const known = this.#state.get<FinalResponse>('final')
    const events = known ? terminalEvents(known.response, this.#log.lastSequence) : this.#interrupted(head)
    // The last event and the end of the log are stored together: if the log has ended, both were.
    if (!this.#log.closed) for (const event of events) this.#log.append(event)
    this.#end()
  }

  /** A failed response adds nothing to its conversation: only what its readers saw of it is kept. */
  #interrupted(head: ResponseHead): EmittedEvent[] {
    const { response, events } = interruptedResponse(this.#log.payloads(), this.#log.lastSequence)
    const outputItems = response.output.map((item) => keptItem(outputContextItem(item, null)))
    this.#state.put('final', { response, outputItems } satisfies FinalResponse)
    this.#writeHead({ ...head, owed: head.store })
    return events
  }

  async follow(owner: Owner, after: number) {
    if (!this.#mayBeSeenBy(owner)) return null
    return this.#log.openTails < MAXIMUM_TAILS ? this.#log.tail(after) : 'busy'
  }

  async snapshot(owner: Owner): Promise<ResponseObject | null> {
    if (!this.#mayBeSeenBy(owner)) return null
    return this.#running?.emitter.response ?? this.#state.get<FinalResponse>('final')?.response ?? null
  }

  async ended(owner: Owner): Promise<ResponseObject | null> {
    if (!this.#mayBeSeenBy(owner)) return null
    await this.#ended.promise
    return this.snapshot(owner)
  }

  async cancel(owner: Owner): Promise<ResponseObject | null> {
    if (!this.#mayBeSeenBy(owner)) return null
    this.#running?.engine.interrupt('cancelled')
    return this.ended(owner)
  }

  async remove(owner: Owner): Promise<boolean> {
    if (!this.#mayBeSeenBy(owner)) return false
    const running = this.#running
    this.#running = null
    running?.engine.interrupt('cancelled')
    await this.#abandon()
    return true
  }

  async inputItems(owner: Owner, page: ItemPageRequest) {
    return this.#mayBeSeenBy(owner) ? pageOfItems(this.#input().items, page) : null
  }

  async state(owner: Owner) {
    const head = this.#head
    if (!head || !this.#mayBeSeenBy(owner)) return null
    return { model: head.model, policyVersion: head.policyVersion, running: head.phase !== 'ended' }
  }

  async settle(owner: Owner): Promise<'running' | 'settled' | 'owed' | 'absent'> {
    const head = this.#head
    if (!head || !isOwner(head, owner)) return 'absent'
    if (head.phase === 'admitting' && !this.#admitting) await this.#abandon()
    if (!this.#head) return 'absent'
    if (head.phase !== 'ended') return 'running'
    if (head.owed) await this.#tryToWrite()
    return this.#head?.owed ? 'owed' : 'settled'
  }

  /** Looks after a running response, pays what is owed to Postgres, and forgets it all when the window closes. */
  async alarm(): Promise<void> {
    const head = this.#head
    if (!head) return
    if (head.phase === 'admitting' && !this.#admitting) await this.#abandon()
    if (isUnderWay(head) && !this.#running) return this.#breakOff(new Error('nobody generates any more'))
    if (head.phase !== 'ended') return this.#head ? this.#wakeIn(LOOK_AFTER_MS) : undefined
    if (head.owed) await this.#tryToWrite()
    const closes = (head.endedAt ?? 0) + this.#deps.configuration.RESPONSE_WINDOW_MS
    if (!this.#head || this.#head.owed || this.#deps.clock() < closes) return this.#arrangeAlarm()
    if (!head.store) await this.#eraseContent()
    await this.#forget()
  }

  async #tryToWrite(): Promise<void> {
    try {
      await this.#write()
      this.#retries = 0
    } catch (error) {
      this.#retries++
      logEvent('warn', 'response_owed', { error: errorText(error) })
    }
  }

  async #arrangeAlarm(): Promise<void> {
    const head = this.#head
    if (!head) return
    const closes = (head.endedAt ?? 0) + this.#deps.configuration.RESPONSE_WINDOW_MS - this.#deps.clock()
    const retry = Math.min(LONGEST_RETRY_MS, FIRST_RETRY_MS * 2 ** this.#retries)
    await this.#wakeIn(head.owed ? retry : Math.max(0, closes))
  }

  /** Ends what nobody shall know of any more: rows, the conversation's lock, events, readers. */
  async #abandon(): Promise<void> {
    if (!this.#head) return
    // Nobody sees it from here on, nor does a restart in the middle bring it back.
    const head: ResponseHead = { ...this.#head, phase: 'admitting' }
    this.#writeHead(head)
    try {
      if (head.begun)
        await releaseConversation(this.#deps.database, head.owner, head.conversationId, head.responseId)
    } catch (error) {
      logEvent('warn', 'response_not_released', { error: errorText(error) })
      // The alarm tries again.
      this.#log.endTails()
      await this.#wakeIn(LOOK_AFTER_MS)
      return
    }
    await this.#eraseContent()
    await this.#forget()
  }

  /** Content that lies elsewhere and that no row names. Losing track of it costs space, and nothing else. */
  async #eraseContent(): Promise<void> {
    const { items, referenced } = this.#input()
    const own = items.filter(({ id }) => !referenced.includes(id))
    const output = this.#state.get<FinalResponse>('final')?.outputItems ?? []
    try {
      await this.#deps.contentStore.remove(contentKeys([...own, ...output]))
    } catch (error) {
      logEvent('warn', 'content_not_erased', { error: errorText(error) })
    }
  }

  #input(): KeptInput {
    return this.#state.get<KeptInput>('input') ?? { items: [], referenced: [] }
  }

  async #forget(): Promise<void> {
    this.#head = null
    this.#log.endTails()
    this.#ended.resolve()
    await this.#storage.deleteAll()
  }

  #mayBeSeenBy(owner: Owner): boolean {
    const head = this.#head
    return head !== null && head.phase !== 'admitting' && isOwner(head, owner)
  }

  #known(): ResponseHead {
    if (!this.#head) throw new Error('the response is gone')
    return this.#head
  }

  #openLog(): EventLog {
    const { clock, configuration } = this.#deps
    const heartbeatMilliseconds = configuration.STREAM_HEARTBEAT_MS
    return new EventLog({ storage: this.#storage, clock, heartbeatMilliseconds })
  }

  #writeHead(head: ResponseHead): void {
    this.#head = head
    this.#state.put('head', head)
  }

  #wakeIn(milliseconds: number): Promise<void> {
    return this.#storage.setAlarm(this.#deps.clock() + milliseconds)
  }
}

const isUnderWay = ({ phase }: ResponseHead): boolean => phase === 'running' || phase === 'ending'

const isOwner = (head: ResponseHead, { organizationId, userId }: Owner): boolean =>
  head.owner.organizationId === organizationId && head.owner.userId === userId

const ownerOf = ({ principal }: Admission): Owner => ({
  organizationId: principal.organizationId,
  userId: principal.userId,
})
