import { errorText, logEvent } from '../../lib/log.ts'
import { withinTime } from '../../lib/time-limit.ts'
import type { ResponseObject } from '../../wire/responses.ts'
import { isUnderWay, PHASES } from '../engine/phases.ts'
import { endingEvents } from '../engine/recovery.ts'
import { resumeResponse } from '../engine/resumption.ts'
import type { ItemPageRequest } from '../items/items.store.ts'
import { EventLog } from '../log/event-log.ts'
import type { Owner, ResponseStreamObject, StartRequest, StartResult } from '../types.ts'
import { type AdmittedResponse, admitResponse } from './admission.ts'
import { notStarted } from './error-data.ts'
import { type FinalResponse, finalResponse } from './final-response.ts'
import { FinalWriter } from './final-writer.ts'
import type { ResponseDeps } from './response-deps.ts'
import { newHead, type ResponseHead } from './response-head.ts'
import { ResponseState } from './response-state.ts'

/** A running response is looked after so often; its object stays in memory between two looks. */
const LOOK_AFTER_MS = 30_000
/** So long a response that is deleted waits for its end, and then for its readers to take it. */
const LAST_WORDS_MS = 1_000
/** Readers of one response at a time: each may hold a segment in the memory of its object. */
const MAXIMUM_TAILS = 200

/** A response that generates. */
type Running = Pick<AdmittedResponse, 'engine' | 'emitter'>

/**
 * One response in its Durable Object: it generates whether or not anybody reads, stores the numbered events, and deletes
 * everything when its window closes (design: Responses). After a restart it goes on where `phases.ts` says so. A response
 * that was in the middle of a turn has failed then, and says so with its next numbers.
 */
export class DurableResponse implements ResponseStreamObject {
  readonly #storage: DurableObjectStorage
  readonly #deps: ResponseDeps
  readonly #state: ResponseState
  #log: EventLog
  #running: Running | null = null
  #admitting = false
  #removing = false
  #abandoning: Promise<void> | null = null
  #ended = Promise.withResolvers<void>()
  readonly #final: FinalWriter

  constructor(storage: DurableObjectStorage, deps: ResponseDeps) {
    this.#storage = storage
    this.#deps = deps
    this.#state = new ResponseState(deps, storage.sql)
    this.#final = new FinalWriter(this.#state, () => this.#log)
    this.#log = this.#openLog()
    const { head } = this.#state
    if (head) this.#restart(head)
  }

  async start(request: StartRequest, body: ReadableStream<Uint8Array>): Promise<StartResult> {
    // A second start has lost: the epoch of a response is its object's life, and it is started once.
    if (this.#state.head) return notStarted(new Error('the response was started before'), false)
    const admission = await this.#admit(request, body)
    if (admission.kind === 'refused') return notStarted(admission.error, admission.recorded)
    const { engine, emitter, settings } = admission
    this.#generate({ engine, emitter })
    return {
      error: null,
      recorded: true,
      // With the answer, since a call more would cost the first reader a round trip.
      events: settings.stream === true ? this.#log.tail(0) : null,
      background: settings.background === true,
    }
  }

  async #admit(request: StartRequest, body: ReadableStream<Uint8Array>) {
    this.#admitting = true
    try {
      this.#state.begin(newHead(request, this.#deps.clock()))
      this.#deps.waitUntil(this.#wakeIn(LOOK_AFTER_MS))
      const admission = await admitResponse(this.#deps, this.#state, request, body, () => this.#log)
      if (admission.kind === 'refused') await this.#abandon()
      return admission
    } finally {
      this.#admitting = false
    }
  }

  #generate(running: Running): void {
    this.#running = running
    this.#deps.waitUntil(this.#run(running).catch((error) => this.#breakOff(error)))
  }

  async #run(running: Running): Promise<void> {
    const { engine, emitter } = running
    const end = await engine.run()
    if (this.#running !== running) return
    const final = finalResponse(this.#deps, this.#state.known.owner, emitter, { ...end, usage: engine.usage })
    // Nothing is final before all is stored that was told of it.
    this.#log.flush()
    await this.#finish(final, () => emitter.terminate())
  }

  /** A fault of our own ends the response with what is stored of it. */
  #breakOff(error: unknown, again = false): void {
    logEvent('error', 'response_broke_off', { error: errorText(error) })
    this.#running = null
    const { head } = this.#state
    if (!head || !isUnderWay(head.phase)) return
    // What can still be stored is; a log that failed takes nothing more, and its readers open another one.
    try {
      this.#log.flush()
    } catch {}
    this.#log.endTails()
    this.#log = this.#openLog()
    this.#recover(again)
  }

  /** Final items first, then the last event: who has read that finds them (design: Responses). */
  async #finish(final: FinalResponse, terminate: () => void): Promise<void> {
    const { store } = this.#state.known
    this.#state.storeFinal(final)
    this.#state.enter('ending', { pendingWrite: store })
    if (store && !this.#removing) await this.#final.write()
    // Removed while it was written.
    if (this.#state.head?.phase !== 'ending') return
    terminate()
    this.#end()
  }

  #end(): void {
    this.#log.close()
    this.#running = null
    this.#state.enter('ended', { endedAt: this.#deps.clock() })
    this.#ended.resolve()
    this.#settleCalls()
  }

  #settleCalls(): void {
    this.#deps.waitUntil(this.#state.settleCalls().then(() => this.#arrangeAlarm()))
  }

  /** What the next life of an object does with what it finds (`phases.ts`). */
  #restart(head: ResponseHead): void {
    if (head.phase === 'ended') {
      this.#ended.resolve()
      // It died before the ledger had them.
      if (head.unsettled.length > 0) this.#settleCalls()
      return
    }
    const { restart } = PHASES[head.phase]
    const resumed = restart === 'resume' ? this.#resumed() : null
    // Nobody was told of it. Only Postgres may hold a row, and a conversation for it.
    if (restart === 'roll_back') this.#deps.waitUntil(this.#abandon())
    else if (resumed) this.#generate(resumed)
    else this.#recover()
  }

  #resumed(): Running | null {
    try {
      return resumeResponse(this.#deps, this.#state, () => this.#log)
    } catch (error) {
      logEvent('error', 'response_not_resumed', { error: errorText(error) })
      return null
    }
  }

  /**
   * Ends a response that nobody generates any more. It always comes to an end, or nobody could ask for it again.
   * @param again whether it was tried before: what fails twice is rolled back.
   */
  #recover(again = false): void {
    if (this.#log.lastSequence === 0) {
      this.#deps.waitUntil(this.#abandon())
      return
    }
    try {
      const events = endingEvents(this.#state, this.#log, this.#deps.clock())
      // The last event and the end of the log are stored together: if the log has ended, both were.
      if (!this.#log.closed) for (const event of events) this.#log.append(event)
      this.#end()
    } catch (error) {
      logEvent('error', 'response_not_recovered', { error: errorText(error) })
      this.#deps.waitUntil(again ? this.#abandon() : this.#wakeIn(LOOK_AFTER_MS))
    }
  }

  async follow(owner: Owner, after: number) {
    if (!this.#mayBeSeenBy(owner)) return null
    return this.#log.openTails < MAXIMUM_TAILS ? this.#log.tail(after) : 'busy'
  }

  async snapshot(owner: Owner): Promise<ResponseObject | null> {
    if (!this.#mayBeSeenBy(owner)) return null
    return this.#running?.emitter.response ?? this.#state.final?.response ?? null
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
    return this.#mayBeSeenBy(owner) ? this.#state.inputPage(page) : null
  }

  async state(owner: Owner) {
    const { head } = this.#state
    if (!head || !this.#mayBeSeenBy(owner)) return null
    return { model: head.model, policyVersion: head.policyVersion, running: head.phase !== 'ended' }
  }

  async settle(owner: Owner): Promise<'running' | 'settled' | 'pending' | 'absent'> {
    const { head } = this.#state
    if (!head || !isOwner(head, owner)) return 'absent'
    if (this.#isLeftBehind(head)) await this.#abandon()
    if (!this.#state.head) return 'absent'
    if (head.phase !== 'ended' || this.#removing) return 'running'
    if (head.pendingWrite) await this.#final.writeAgain()
    return this.#state.head?.pendingWrite ? 'pending' : 'settled'
  }

  /** Looks after a running response, repeats a write to Postgres that is pending, and deletes everything when the window
   * closes. */
  async alarm(): Promise<void> {
    const { head } = this.#state
    if (!head) return
    // First, since an alarm that fails too often is given up.
    await this.#wakeIn(LOOK_AFTER_MS)
    if (this.#isLeftBehind(head)) return this.#abandon()
    // It is looked after by whoever removes it, unless that one dies.
    if (this.#removing) return
    if (isUnderWay(head.phase) && !this.#running)
      return this.#breakOff(new Error('nobody generates any more'), true)
    if (head.phase !== 'ended') return
    await this.#state.settleCalls()
    if (head.pendingWrite) await this.#final.writeAgain()
    const closes = (head.endedAt ?? 0) + this.#deps.configuration.RESPONSE_WINDOW_MS
    if (!this.#state.head || this.#state.head.pendingWrite || this.#deps.clock() < closes)
      return this.#arrangeAlarm()
    if (!this.#state.ownsContent || (await this.#state.eraseContent())) await this.#forget()
  }

  async #arrangeAlarm(): Promise<void> {
    const { head } = this.#state
    if (!head) return
    const closes = (head.endedAt ?? 0) + this.#deps.configuration.RESPONSE_WINDOW_MS - this.#deps.clock()
    const repeats = head.pendingWrite || head.unsettled.length > 0
    await this.#wakeIn(repeats ? this.#final.retryMilliseconds : Math.max(0, closes))
  }

  /** Whether a request is not being admitted any more, or is to be rolled back. */
  #isLeftBehind({ phase }: ResponseHead): boolean {
    return PHASES[phase].restart === 'roll_back' && !this.#admitting
  }

  /** Rolls back an abandoned response: rows, the conversation's lock, content, events, readers. */
  #abandon(): Promise<void> {
    this.#abandoning ??= this.#rollBack().finally(() => {
      this.#abandoning = null
    })
    return this.#abandoning
  }

  async #rollBack(): Promise<void> {
    if (!this.#state.head) return
    // Nobody sees it from here on, nor does a restart in the middle bring it back.
    this.#state.enter('removing')
    this.#log.endTails()
    if (await this.#state.rollBack()) await this.#forget()
    // The alarm tries again.
    else await this.#wakeIn(LOOK_AFTER_MS)
  }

  async #forget(): Promise<void> {
    this.#state.forget()
    this.#log.endTails()
    this.#ended.resolve()
    await this.#storage.deleteAll()
  }

  #mayBeSeenBy(owner: Owner): boolean {
    const { head } = this.#state
    return head !== null && PHASES[head.phase].visible && isOwner(head, owner)
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

const isOwner = (head: ResponseHead, { organizationId, userId }: Owner): boolean =>
  head.owner.organizationId === organizationId && head.owner.userId === userId
