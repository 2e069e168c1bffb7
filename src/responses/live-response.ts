import { ApiError } from '../lib/api-error.ts'
import { errorText, logEvent } from '../lib/log.ts'
import { withinTime } from '../lib/time-limit.ts'
import type { ResponseObject, ResponseSettings } from '../wire/responses.ts'
import { type BegunResponse, beginResponse } from './beginning.ts'
import { errorData } from './error-data.ts'
import { EventLog } from './event-log.ts'
import type { EmittedEvent } from './event-writer.ts'
import { type FinalResponse, finalResponse, keptItem } from './final-response.ts'
import { FinalWriter } from './final-writer.ts'
import type { ItemPageRequest } from './items/store.ts'
import { KeptResponse } from './kept-response.ts'
import type { LiveDeps } from './live-deps.ts'
import { newHead, ownerOf, type ResponseHead } from './object-state.ts'
import { interruptedResponse, terminalEvents } from './recovery.ts'
import { outputContextItem } from './said-items.ts'
import type { Admission, Owner, ResponseStreamObject, StartResult } from './types.ts'

/** A running response is looked after so often; its object stays in memory between two looks. */
const LOOK_AFTER_MS = 30_000
/** So long a response that is deleted waits for its end, and then for its readers to take it. */
const LAST_WORDS_MS = 1_000
/** Readers of one response at a time: each may hold a segment in the memory of its object. */
const MAXIMUM_TAILS = 200

/** A response that generates. */
type Running = Pick<BegunResponse, 'engine' | 'emitter'>

/**
 * One response in its Durable Object: it generates whether or not anybody reads, keeps the numbered events, and forgets
 * everything when its window closes (design: Responses). What a restart finds running had a producer that died: the
 * response has failed then, and says so with its next numbers.
 */
export class LiveResponse implements ResponseStreamObject {
  readonly #storage: DurableObjectStorage
  readonly #deps: LiveDeps
  readonly #kept: KeptResponse
  #log: EventLog
  #running: Running | null = null
  #admitting = false
  #removing = false
  #abandoning: Promise<void> | null = null
  #ended = Promise.withResolvers<void>()
  readonly #final: FinalWriter

  constructor(storage: DurableObjectStorage, deps: LiveDeps) {
    this.#storage = storage
    this.#deps = deps
    this.#kept = new KeptResponse(deps, storage.sql)
    this.#final = new FinalWriter(this.#kept, () => this.#log)
    this.#log = this.#openLog()
    const { head } = this.#kept
    if (head?.phase === 'ended') this.#ended.resolve()
    else if (head) this.#recover(head)
  }

  async start(admission: Admission, body: ReadableStream<Uint8Array>): Promise<StartResult> {
    const { record } = admission
    try {
      // Whoever comes second has lost: the epoch of a response is its object's life, and it is started once.
      if (this.#kept.head) throw new Error('the response was started before')
      const settings = await this.#admit(admission, body)
      this.#deps.waitUntil(this.#generate().catch((error) => this.#breakOff(error)))
      return {
        error: null,
        record,
        // With the answer, since a call more would cost the first reader a round trip.
        events: settings.stream === true ? this.#log.tail(0) : null,
        background: settings.background === true,
      }
    } catch (error) {
      if (!(error instanceof ApiError)) logEvent('error', 'response_not_started', { error: errorText(error) })
      return { error: errorData(error), record }
    }
  }

  async #admit(admission: Admission, body: ReadableStream<Uint8Array>): Promise<ResponseSettings> {
    this.#admitting = true
    try {
      this.#kept.set(newHead(admission, ownerOf(admission), this.#deps.clock()))
      this.#deps.waitUntil(this.#wakeIn(LOOK_AFTER_MS))
      const emit = (event: EmittedEvent) => this.#log.append(event)
      const { settings, ...running } = await beginResponse(this.#deps, this.#kept, admission, body, emit)
      this.#running = running
      return settings
    } catch (error) {
      await this.#abandon()
      throw error
    } finally {
      this.#admitting = false
    }
  }

  async #generate(): Promise<void> {
    const running = this.#running
    if (!running) return
    const { engine, emitter } = running
    const end = await engine.run()
    if (this.#running !== running) return
    const final = finalResponse(this.#deps, this.#kept.known.owner, emitter, { ...end, usage: engine.usage })
    // Nothing is final before all is stored that was told of it.
    this.#log.flush()
    await this.#finish(final, () => emitter.terminate())
  }

  /** What went wrong in here ends the response as a restart does: with what is stored of it. */
  #breakOff(error: unknown, again = false): void {
    logEvent('error', 'response_broke_off', { error: errorText(error) })
    this.#running = null
    const { head } = this.#kept
    if (!head || !isUnderWay(head)) return
    // What can still be stored is; a log that failed takes nothing more, and its readers open another one.
    try {
      this.#log.flush()
    } catch {}
    this.#log.endTails()
    this.#log = this.#openLog()
    this.#recover(head, again)
  }

  /** Final items first, then the last event: who has read that finds them (design: Responses). */
  async #finish(final: FinalResponse, terminate: () => void): Promise<void> {
    const { store } = this.#kept.known
    this.#kept.keepFinal(final)
    this.#kept.change({ phase: 'ending', owed: store })
    if (store && !this.#removing) await this.#final.write()
    // Removed while it was written.
    if (this.#kept.head?.phase !== 'ending') return
    terminate()
    this.#end()
  }

  #end(): void {
    this.#log.close()
    this.#running = null
    this.#kept.change({ phase: 'ended', endedAt: this.#deps.clock() })
    this.#ended.resolve()
    this.#deps.waitUntil(this.#arrangeAlarm())
  }

  /**
   * What a restart finds: nobody generates any more. It always comes to an end, or nobody could ask for it again.
   * @param again whether it was tried before: what fails twice is taken back.
   */
  #recover(head: ResponseHead, again = false): void {
    if (head.phase === 'admitting' || this.#log.lastSequence === 0) {
      // Nobody was told of it. Only Postgres may hold a row, and a conversation for it.
      this.#deps.waitUntil(this.#abandon())
      return
    }
    try {
      const { final } = this.#kept
      const events = final ? terminalEvents(final.response, this.#log.lastSequence) : this.#interrupted(head)
      // The last event and the end of the log are stored together: if the log has ended, both were.
      if (!this.#log.closed) for (const event of events) this.#log.append(event)
      this.#end()
    } catch (error) {
      logEvent('error', 'response_not_recovered', { error: errorText(error) })
      this.#deps.waitUntil(again ? this.#abandon() : this.#wakeIn(LOOK_AFTER_MS))
    }
  }

  /** A failed response adds nothing to its conversation: only what its readers saw of it is kept. */
  #interrupted(head: ResponseHead): EmittedEvent[] {
    const { response, events, call } = interruptedResponse(this.#log.payloads(), this.#log.lastSequence, head)
    const outputItems = response.output.map((item) => keptItem(outputContextItem(item, null)))
    this.#kept.keepFinal({ response, outputItems })
    this.#kept.change({ owed: head.store, openCall: null, interruptedCall: call })
    this.#deps.waitUntil(this.#kept.settleInterrupted())
    return events
  }

  async follow(owner: Owner, after: number) {
    if (!this.#mayBeSeenBy(owner)) return null
    return this.#log.openTails < MAXIMUM_TAILS ? this.#log.tail(after) : 'busy'
  }

  async snapshot(owner: Owner): Promise<ResponseObject | null> {
    if (!this.#mayBeSeenBy(owner)) return null
    return this.#running?.emitter.response ?? this.#kept.final?.response ?? null
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
    this.#removing = true
    this.#running?.engine.interrupt('cancelled')
    // Who reads it is told how it ended before it is forgotten, if that can be done soon.
    await withinTime(this.#ended.promise, LAST_WORDS_MS, 'ending').catch(() => {})
    await this.#log.left(LAST_WORDS_MS)
    this.#running = null
    await this.#abandon()
    this.#removing = false
    return true
  }

  async inputItems(owner: Owner, page: ItemPageRequest) {
    return this.#mayBeSeenBy(owner) ? this.#kept.inputPage(page) : null
  }

  async state(owner: Owner) {
    const { head } = this.#kept
    if (!head || !this.#mayBeSeenBy(owner)) return null
    return { model: head.model, policyVersion: head.policyVersion, running: head.phase !== 'ended' }
  }

  async settle(owner: Owner): Promise<'running' | 'settled' | 'owed' | 'absent'> {
    const { head } = this.#kept
    if (!head || !isOwner(head, owner)) return 'absent'
    if (head.phase === 'admitting' && !this.#admitting) await this.#abandon()
    if (!this.#kept.head) return 'absent'
    if (head.phase !== 'ended' || this.#removing) return 'running'
    if (head.owed) await this.#final.writeAgain()
    return this.#kept.head?.owed ? 'owed' : 'settled'
  }

  /** Looks after a running response, pays what is owed to Postgres, and forgets it all when the window closes. */
  async alarm(): Promise<void> {
    const { head } = this.#kept
    if (!head) return
    // First, since an alarm that fails too often is given up.
    await this.#wakeIn(LOOK_AFTER_MS)
    if (head.phase === 'admitting' && !this.#admitting) return this.#abandon()
    // It is looked after by whoever removes it, unless that one dies.
    if (this.#removing) return
    if (isUnderWay(head) && !this.#running)
      return this.#breakOff(new Error('nobody generates any more'), true)
    if (head.phase !== 'ended') return
    await this.#kept.settleInterrupted()
    if (head.owed) await this.#final.writeAgain()
    const closes = (head.endedAt ?? 0) + this.#deps.configuration.RESPONSE_WINDOW_MS
    if (!this.#kept.head || this.#kept.head.owed || this.#deps.clock() < closes) return this.#arrangeAlarm()
    if (!this.#kept.ownsContent || (await this.#kept.eraseContent())) await this.#forget()
  }

  async #arrangeAlarm(): Promise<void> {
    const { head } = this.#kept
    if (!head) return
    const closes = (head.endedAt ?? 0) + this.#deps.configuration.RESPONSE_WINDOW_MS - this.#deps.clock()
    await this.#wakeIn(head.owed ? this.#final.retryMilliseconds : Math.max(0, closes))
  }

  /** Ends what nobody shall know of any more: rows, the conversation's lock, content, events, readers. */
  #abandon(): Promise<void> {
    this.#abandoning ??= this.#takeBack().finally(() => {
      this.#abandoning = null
    })
    return this.#abandoning
  }

  async #takeBack(): Promise<void> {
    if (!this.#kept.head) return
    // Nobody sees it from here on, nor does a restart in the middle bring it back.
    this.#kept.change({ phase: 'admitting' })
    this.#log.endTails()
    if (await this.#kept.takeBack()) await this.#forget()
    // The alarm tries again.
    else await this.#wakeIn(LOOK_AFTER_MS)
  }

  async #forget(): Promise<void> {
    this.#kept.forget()
    this.#log.endTails()
    this.#ended.resolve()
    await this.#storage.deleteAll()
  }

  #mayBeSeenBy(owner: Owner): boolean {
    const { head } = this.#kept
    return head !== null && head.phase !== 'admitting' && isOwner(head, owner)
  }

  #openLog(): EventLog {
    const { clock, configuration } = this.#deps
    const heartbeatMilliseconds = configuration.STREAM_HEARTBEAT_MS
    return new EventLog({ storage: this.#storage, clock, heartbeatMilliseconds })
  }

  #wakeIn(milliseconds: number): Promise<void> {
    return this.#storage.setAlarm(this.#deps.clock() + milliseconds)
  }
}

const isUnderWay = ({ phase }: ResponseHead): boolean => phase === 'running' || phase === 'ending'

const isOwner = (head: ResponseHead, { organizationId, userId }: Owner): boolean =>
  head.owner.organizationId === organizationId && head.owner.userId === userId
