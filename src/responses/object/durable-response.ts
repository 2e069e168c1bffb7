import { ApiError } from '../../lib/api-error.ts'
import { errorText, logEvent, logFailure } from '../../lib/log.ts'
import { withinTime } from '../../lib/time-limit.ts'
import type { ResponseObject } from '../../wire/responses.ts'
import { compactConversation } from '../compaction/compact-conversation.ts'
import { contextStream } from '../context/context-stream.ts'
import type { RunningResponse } from '../engine/engine.ts'
import { endingEvents } from '../engine/recovery.ts'
import { resumeResponse } from '../engine/resumption.ts'
import { EventLog } from '../log/event-log.ts'
import type { UnflushedEvents } from '../log/unflushed-events.ts'
import { notStarted } from '../model/error-data.ts'
import { isUnfinished, PHASES } from '../model/phases.ts'
import { isOwner, newHead, ownerOf, type ResponseHead, workspaceIdOf } from '../model/response-head.ts'
import type { FinalResponse, ItemPageRequest } from '../model/stored-items.ts'
import type {
  CompactionResult,
  ConnectionContext,
  Owner,
  RequestContent,
  ResponseMethods,
  StartRequest,
  StartResult,
} from '../model/types.ts'
import type { ResponseDeps } from '../response-deps.ts'
import type { Slice } from '../storage/slice.ts'
import { ResponseState } from '../store/response-state.ts'
import { admitResponse } from './admit-response.ts'
import { finalResponse } from './final-response.ts'
import { FinalWriter } from './final-writer.ts'
import { closeAbandoned, dispatchFirstTurn } from './first-turn.ts'
import { ResponseAlarm } from './response-alarm.ts'
import { ResponseFiles } from './response-files.ts'
import { ResponseRemoval } from './response-removal.ts'

/** Time that the deletion of a response waits for its end, and then for its readers to get it. */
const REMOVAL_LIMIT_MS = 1_000
/** Readers of one response at a time: each may hold a segment in the memory of the object. */
const MAXIMUM_TAILS = 200

/**
 * One response in a Durable Object: generates whether or not a client reads, stores the numbered events, and deletes
 * everything when its window closes. `PHASES` defines how a restarted object continues. A response that was in the middle
 * of a turn fails then, and its readers get the events of the failure; that of a run's step asks the turn again.
 */
export class DurableResponse implements ResponseMethods {
  readonly #deps: ResponseDeps
  readonly #state: ResponseState
  readonly #log: EventLog
  readonly #final: FinalWriter
  readonly #files: ResponseFiles
  readonly #alarm: ResponseAlarm
  readonly #removal: ResponseRemoval
  readonly #context = { bytes: 0 }
  #ended = Promise.withResolvers<void>()
  #running: RunningResponse | null = null
  #admitting = false
  #removing = false
  /** Whether the response that is rolled back may have called a model, before this object restarted. */
  #mayHaveAsked = false

  /** @param slice of the object's storage. @param unflushed the segments of the object's readers. */
  constructor(slice: Slice, unflushed: UnflushedEvents, deps: ResponseDeps) {
    const { clock, configuration } = deps
    this.#deps = deps
    this.#state = new ResponseState(deps, slice)
    const heartbeatMilliseconds = configuration.STREAM_HEARTBEAT_MS
    this.#log = new EventLog({ slice, unflushed, clock, heartbeatMilliseconds })
    this.#final = new FinalWriter(deps, this.#state, this.#log)
    this.#files = new ResponseFiles(deps, this.#state)
    this.#alarm = new ResponseAlarm(slice, deps, this.#state, this.#final)
    this.#removal = new ResponseRemoval(deps, {
      slice,
      state: this.#state,
      log: this.#log,
      final: this.#final,
      alarm: this.#alarm,
      files: this.#files,
      ended: { resolve: () => this.#ended.resolve() },
    })
    const { head } = this.#state
    if (head) this.#restart(head)
  }

  /** Whether the response is admitted or generates. */
  get isLive(): boolean {
    const { head } = this.#state
    return this.#admitting || (head !== null && head.phase !== 'ended')
  }

  get readers(): number {
    return this.#log.openTails
  }

  /** Bytes of the context that it holds in memory, of large ones only until the first turn is sent. */
  get contextBytes(): number {
    return this.isLive ? this.#context.bytes : 0
  }

  /** An object of one response always has room for it. */
  async reserve(): Promise<boolean> {
    return true
  }

  async start(request: StartRequest, body: RequestContent): Promise<StartResult> {
    const earlier = request.awaitsEnd ? await this.#earlierStart(request) : null
    if (earlier) return earlier
    const refusal = await this.#refusalOfStart()
    if (refusal) return notStarted(refusal, { recorded: false }, request.identity.requestId)
    const admission = await this.#admit(request, body)
    if (admission.kind === 'refused')
      return notStarted(admission.error, admission.trace, request.identity.requestId)
    if (admission.kind === 'agent') return { ...admission.trace, error: null, agent: admission.agent }
    const { engine, emitter, settings, phase, trace, headers } = admission
    emitter.begin()
    if (phase === 'running_tools') engine.beginApproved()
    else this.#state.enter(phase)
    this.#generate({ engine, emitter })
    const begun = {
      ...trace,
      error: null,
      compatibility: this.#state.known.compatibility,
      headers,
      // A call of its own would cost the first reader a round trip.
      events: settings.stream === true ? this.#log.tail(0) : null,
      background: settings.background === true,
      held: typeof this.#state.known.heldUntil === 'number',
    }
    const awaits = request.awaitsEnd && !begun.events && !begun.background
    return awaits ? { ...begun, response: await this.ended(this.#state.known.owner) } : begun
  }

  /**
   * The result of an earlier start by the same caller, which has lost the answer on its way: the end of its response.
   * @returns null if none is running or has ended.
   */
  async #earlierStart(request: StartRequest): Promise<StartResult | null> {
    const owner = ownerOf(request)
    const { head } = this.#state
    if (!head || !this.#isVisibleTo(owner)) return null
    const { compatibility } = head
    const known = { recorded: true, error: null, compatibility, headers: {}, events: null }
    return { ...known, background: false, held: false, response: await this.ended(owner) }
  }

  /**
   * A response is started once. What an earlier start has to roll back is rolled back first, but a start that is repeated
   * because the object died must not ask the model again.
   */
  async #refusalOfStart(): Promise<Error | null> {
    const { head } = this.#state
    if (head && this.#isAbandoned(head) && !this.#mayHaveAsked) {
      await this.#removal.rollBackEarlier()
      const message = 'An earlier start of this response is not rolled back yet. Try again soon.'
      if (this.#state.head) return new ApiError('internal', message, { retryAfterSeconds: 2 })
    }
    return this.#state.head ? new Error('the response was started before') : null
  }

  async compact(request: StartRequest, body: RequestContent): Promise<CompactionResult> {
    return compactConversation(this.#deps, request, body)
  }

  async #admit(request: StartRequest, body: RequestContent) {
    this.#admitting = true
    this.#mayHaveAsked = false
    // The promise of a start that was rolled back is already resolved.
    this.#ended = Promise.withResolvers()
    try {
      this.#state.begin(newHead(request, this.#deps.clock()))
      this.#context.bytes = body instanceof Uint8Array ? body.length : (request.bodyBytes ?? 0)
      const parts = {
        state: this.#state,
        log: this.#log,
        alarm: this.#alarm,
        final: this.#final,
        context: this.#context,
      }
      const admission = await admitResponse(this.#deps, parts, request, body)
      if (admission.kind === 'admitted') {
        const error = await dispatchFirstTurn(this.#deps, admission)
        this.#context.bytes = admission.heldBytes
        if (error === null) return admission
        await this.#removal.rollBackRefused()
        return { kind: 'refused' as const, error, trace: admission.trace }
      }
      await this.#removal.rollBackRefused()
      return admission
    } finally {
      this.#admitting = false
    }
  }

  #generate(running: RunningResponse): void {
    this.#running = running
    this.#deps.waitUntil(this.#run(running).catch((error) => this.#fail(error)))
  }

  async #run(running: RunningResponse): Promise<void> {
    const { engine, emitter } = running
    const end = await engine.run()
    if (this.#running !== running) return
    const final = finalResponse(this.#deps, this.#state.known.owner, emitter, end, engine.usage)
    // The final response must not be ahead of the stored events.
    this.#log.flush()
    await this.#finish(final, () => emitter.terminate())
  }

  /** Ends the response after an internal error, with the output that is stored. @param again see `#recover`. */
  #fail(error: unknown, again = false): void {
    // The request may have ended long ago: the object is named by the response.
    const route = `ResponseStream.start ${this.#state.head?.responseId ?? ''}`.trim()
    logFailure('response_broke_off', { request_id: null, surface: 'responses', route }, error)
    this.#running = null
    const { head } = this.#state
    if (!head || !isUnfinished(head.phase)) return
    try {
      this.#log.flush()
    } catch {
      // Events that cannot be stored are lost; the log continues after the last stored one.
    }
    this.#log.reopen()
    this.#recover(again)
  }

  /** Stores the final items before the last event, so that a client that has read it can fetch them. */
  async #finish(final: FinalResponse, terminate: () => void): Promise<void> {
    const { store } = this.#state.known
    this.#state.storeFinal(final)
    this.#state.enter('ending', { pendingWrite: store })
    if (store) this.#state.save()
    if (store && !this.#removing) await this.#final.write()
    // The response may have been removed meanwhile.
    if (this.#state.head?.phase !== 'ending') return
    terminate()
    this.#end()
  }

  #end(): void {
    this.#log.close()
    this.#running = null
    this.#state.enter('ended', { endedAt: this.#deps.clock() })
    const { unsettled, pendingWrite } = this.#state.known
    const isDone = unsettled.length === 0 && !pendingWrite
    // With the time of the window, in one row.
    if (isDone) this.#deps.waitUntil(this.#alarm.setNext())
    // Together with the end of the log.
    this.#state.save()
    this.#ended.resolve()
    if (!isDone) this.#settleCalls()
    this.#files.removeUnreachable()
  }

  #settleCalls(): void {
    this.#deps.waitUntil(this.#state.settleCalls().then(() => this.#setNextAlarm()))
  }

  /** Stores what has changed with the time of the alarm. */
  async #setNextAlarm(): Promise<void> {
    const set = this.#alarm.setNext()
    this.#state.save()
    await set
  }

  /** Continues after a restart of the object (`phases.ts`). */
  #restart(head: ResponseHead): void {
    if (head.phase === 'ended') {
      this.#ended.resolve()
      if (head.unsettled.length > 0) this.#settleCalls()
      return
    }
    this.#mayHaveAsked = head.phase !== 'admitting'
    const { restart } = PHASES[head.phase]
    const resumes = restart === 'resume' || restart === 'ask_again'
    const resumed = resumes ? resumeResponse(this.#deps, this.#state, this.#log) : null
    if (head.phase === 'dispatching') closeAbandoned(this.#state, this.#deps.clock())
    if (restart === 'roll_back') this.#deps.waitUntil(this.#removal.rollBack())
    else if (resumed) this.#generate(resumed)
    else this.#recover()
  }

  /**
   * Ends a response without a running engine.
   * @param again whether this is the second try: a response that fails twice is rolled back.
   */
  #recover(again = false): void {
    if (this.#log.lastSequence === 0) {
      this.#deps.waitUntil(this.#removal.rollBack())
      return
    }
    try {
      const events = endingEvents(this.#state, this.#log, this.#deps.clock())
      // The last event and the end of the log are stored together: a closed log has both.
      if (!this.#log.closed) for (const event of events) this.#log.append(event)
      this.#end()
    } catch (error) {
      logEvent('error', 'response_not_recovered', { error: errorText(error) })
      this.#deps.waitUntil(again ? this.#removal.rollBack() : this.#alarm.setCheck())
    }
  }

  async follow(owner: Owner, after: number) {
    if (!this.#isVisibleTo(owner)) return null
    if (this.#log.openTails >= MAXIMUM_TAILS) return 'busy'
    this.#noteReader()
    return this.#log.tail(after)
  }

  async snapshot(owner: Owner): Promise<ResponseObject | null> {
    if (!this.#isVisibleTo(owner)) return null
    this.#noteReader()
    return this.#running?.emitter.response ?? this.#state.final?.response ?? null
  }

  async ended(owner: Owner): Promise<ResponseObject | null> {
    if (!this.#isVisibleTo(owner)) return null
    await this.#ended.promise
    return this.snapshot(owner)
  }

  async cancel(owner: Owner): Promise<ResponseObject | null> {
    if (!this.#isVisibleTo(owner)) return null
    this.#running?.engine.interrupt('cancelled')
    return this.ended(owner)
  }

  async remove(owner: Owner): Promise<boolean> {
    if (!this.#isVisibleTo(owner)) return false
    this.#removing = true
    this.#running?.engine.interrupt('cancelled')
    // Readers get the last event first, if that is possible soon.
    await withinTime(this.#ended.promise, REMOVAL_LIMIT_MS, 'ending').catch(() => {})
    await this.#log.waitForReaders(REMOVAL_LIMIT_MS)
    this.#running = null
    await this.#removal.rollBack()
    this.#removing = false
    return true
  }

  async inputItems(owner: Owner, page: ItemPageRequest) {
    return this.#isVisibleTo(owner) ? this.#state.inputPage(page) : null
  }

  async state(owner: Owner) {
    const { head } = this.#state
    if (!head || !this.#isVisibleTo(owner)) return null
    const { model, compatibility, policyVersion, phase, cost = 0 } = head
    const running = phase !== 'ended'
    const items = running ? null : this.#state.final?.itemNumbers
    const numbers = items ? { items, last: this.#log.lastSequence } : null
    return { model, compatibility, policyVersion, running, numbers, cost }
  }

  async context(owner: Owner): Promise<ConnectionContext | null> {
    const { head } = this.#state
    if (!head?.heldUntil || head.phase !== 'ended' || !isOwner(head, owner)) return null
    if (this.#state.final?.response.status === 'failed') return null
    return {
      items: contextStream(this.#state.contextItems()),
      workspaceId: head.conversationId === null ? workspaceIdOf(head) : null,
    }
  }

  async passFiles(owner: Owner): Promise<boolean> {
    const { head } = this.#state
    if (!head?.heldUntil || head.phase !== 'ended' || !isOwner(head, owner)) return false
    this.#state.change({ filesGone: true })
    return true
  }

  async release(owner: Owner): Promise<void> {
    const { head } = this.#state
    if (!head?.heldUntil || !isOwner(head, owner)) return
    this.#state.change({ heldUntil: null })
    if (head.phase !== 'ended') return
    this.#files.removeUnreachable()
    await this.#setNextAlarm()
  }

  async settle(owner: Owner): Promise<'running' | 'settled' | 'pending' | 'absent'> {
    const { head } = this.#state
    if (!head || !isOwner(head, owner)) return 'absent'
    if (this.#isAbandoned(head)) await this.#removal.rollBack()
    if (!this.#state.head) return 'absent'
    if (head.phase !== 'ended' || this.#removing) return 'running'
    if (head.pendingWrite) await this.#final.retry()
    return this.#state.head?.pendingWrite ? 'pending' : 'settled'
  }

  /** Ends a response without a running engine, retries a pending write, and deletes everything when the window closes. */
  async alarm(): Promise<void> {
    const { head } = this.#state
    if (!head) return
    await this.#alarm.setRepetition(head)
    if (this.#isAbandoned(head)) return this.#removal.rollBack()
    // `remove` completes the deletion; if it is interrupted, a later alarm does.
    if (this.#removing) return
    if (isUnfinished(head.phase) && !this.#running) return this.#fail(new Error('no engine is running'), true)
    if (head.phase !== 'ended') return
    await this.#state.settleCalls()
    if (head.pendingWrite) await this.#final.retry()
    const current = this.#state.head
    if (!current || current.pendingWrite || this.#alarm.isWindowOpen(current)) {
      return this.#setNextAlarm()
    }
    // The files could not be removed at the end. Postgres has nothing of the response, and it is not visible while the removal is
    // repeated.
    if (this.#files.areOwned) return this.#removal.rollBack()
    if (!this.#final.ownsContent || (await this.#final.eraseContent())) await this.#removal.closeWindow()
  }

  /** Stores, before a reader gets anything, that the running turn must stay if it is asked again. */
  #noteReader(): void {
    const { turn, phase } = this.#state.known
    if (!turn || turn.shown || phase !== 'generating') return
    this.#state.change({ turn: { ...turn, shown: true } })
    this.#state.save()
  }

  /** Whether a response has to be rolled back: its admission was interrupted, or an earlier rollback was not complete. */
  #isAbandoned({ phase }: ResponseHead): boolean {
    return PHASES[phase].restart === 'roll_back' && !this.#admitting
  }

  #isVisibleTo(owner: Owner): boolean {
    const { head } = this.#state
    return head !== null && PHASES[head.phase].visible && isOwner(head, owner)
  }
}
