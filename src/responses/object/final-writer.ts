import { errorText, logEvent } from '../../lib/log.ts'
import { withinTime } from '../../lib/time-limit.ts'
import { contentKey, LARGE_ITEM_BYTES } from '../content/content-store.ts'
import { endEventCount } from '../emitter/event-writer.ts'
import type { EventLog } from '../log/event-log.ts'
import type { ResponseHead } from '../model/response-head.ts'
import type { FinalResponse, StoredItem } from '../model/stored-items.ts'
import type { ResponseDeps } from '../response-deps.ts'
import { releaseConversation } from '../store/begin-response.store.ts'
import { type FinishedResponse, finishResponse, isRefusedData } from '../store/finish-response.store.ts'
import type { ResponseState } from '../store/response-state.ts'
import type { StoredBody } from './stored-response.ts'

/** Time that the last event waits for Postgres. */
const FINISH_LIMIT_MS = 2_000
const FIRST_RETRY_MS = 2_000
const LONGEST_RETRY_MS = 60_000

const encoder = new TextEncoder()

/** The input as it is written to Postgres. */
type WrittenInput = Pick<FinishedResponse, 'inputItems' | 'usedItemIds'>

/**
 * Writes the final response to Postgres and the content store: before its last event if possible, otherwise again until
 * it succeeds. Erases what both have of a response that is rolled back.
 */
export class FinalWriter {
  readonly #deps: ResponseDeps
  readonly #state: ResponseState
  readonly #log: EventLog
  #failures = 0
  /** Number of writes that run now. */
  #writing = 0

  constructor(deps: ResponseDeps, state: ResponseState, log: EventLog) {
    this.#deps = deps
    this.#state = state
    this.#log = log
  }

  /** Writes within two seconds; otherwise the write stays pending. Never throws. */
  async write(): Promise<void> {
    await withinTime(this.#write(), FINISH_LIMIT_MS, 'writing the response').catch(logPending)
  }

  /** Tries a pending write again. Never throws. */
  async retry(): Promise<void> {
    try {
      await this.#write()
      this.#failures = 0
    } catch (error) {
      this.#failures++
      logPending(error)
    }
  }

  /** Time until the next try, which doubles with each one that fails. */
  get retryMilliseconds(): number {
    return Math.min(LONGEST_RETRY_MS, FIRST_RETRY_MS * 2 ** this.#failures)
  }

  /** Whether no row refers to the content of this response: then the object erases it, at the latest with its window. */
  get ownsContent(): boolean {
    const { head } = this.#state
    return head !== null && (!head.store || head.refused === true)
  }

  /**
   * Erases a response that is rolled back from Postgres and the content store.
   * @returns whether that is complete; if not, it may be repeated. A write that runs now has to be rolled back afterwards.
   */
  async rollBack(): Promise<boolean> {
    const { begun, owner, conversationId, responseId: id, createdAt: begunUntil } = this.#state.known
    try {
      if (begun) await releaseConversation(this.#deps.database, owner, { id, conversationId, begunUntil })
      return (await this.eraseContent()) && this.#writing === 0
    } catch (error) {
      logEvent('warn', 'response_not_released', { error: errorText(error) })
      return false
    }
  }

  /** Counts work that writes the response: a rollback is not complete before it has ended, whatever waits for it. */
  async counted<Result>(work: Promise<Result>): Promise<Result> {
    this.#writing++
    try {
      return await work
    } finally {
      this.#writing--
    }
  }

  /** Erases the content of this response. @returns whether it succeeded; it may be repeated. */
  async eraseContent(): Promise<boolean> {
    const keys = this.#state.contentKeys
    if (keys.length === 0) return true
    try {
      await this.#deps.contentStore.remove(keys)
      return true
    } catch (error) {
      logEvent('warn', 'content_not_erased', { error: errorText(error) })
      return false
    }
  }

  /** @throws when it is not known that Postgres has the response. It may be repeated. */
  #write(): Promise<void> {
    return this.counted(this.#writeFinal())
  }

  async #writeFinal(): Promise<void> {
    const { known: head, final } = this.#state
    if (!final) return
    // The last event may not be emitted yet.
    const lastSequence = this.#log.lastSequence + (this.#log.closed ? 0 : endEventCount(final.response))
    try {
      if (head.refused) return await this.#writeFailed(head, final, lastSequence)
      const placed = await this.#placed(head, final)
      await this.#finish(head, this.#state.writtenInput(), placed, lastSequence)
    } catch (error) {
      if (!isRefusedData(error)) throw error
      // Every repetition would be refused, and the conversation would stay locked.
      logEvent('error', 'response_not_stored', { error: errorText(error) })
      this.#state.change({ refused: true })
      this.#state.save()
      await this.#writeFailed(head, final, lastSequence)
    }
  }

  /** Puts large output items into the content store. May be repeated. */
  async #placed({ owner }: ResponseHead, final: FinalResponse): Promise<FinalResponse> {
    const large = final.outputItems.filter(isLarge)
    if (large.length === 0) return final
    // The keys are stored first, so that the content is erased even if the object restarts in between.
    this.#state.addContentKeys(large.map(({ id }) => contentKey(owner, id)))
    const place = async (item: StoredItem): Promise<StoredItem> => {
      if (!isLarge(item)) return item
      const key = await this.#deps.contentStore.put(owner, item.id, encoder.encode(item.body ?? ''))
      return { ...item, body: null, contentKey: key }
    }
    const placed = { ...final, outputItems: await Promise.all(final.outputItems.map(place)) }
    this.#state.storeFinal(placed)
    return placed
  }

  /** Writes the response as failed and without its items, since Postgres refuses these. */
  #writeFailed(head: ResponseHead, { response: ended }: FinalResponse, lastSequence: number): Promise<void> {
    const error = { code: 'server_error', message: 'The response could not be stored.' }
    const response = { ...ended, status: 'failed' as const, error, incomplete_details: null }
    const input = { inputItems: [], usedItemIds: [] }
    return this.#finish(head, input, { response, outputItems: [], itemNumbers: [] }, lastSequence)
  }

  async #finish(
    { responseId, owner, conversationId }: ResponseHead,
    { inputItems, usedItemIds }: WrittenInput,
    { response, outputItems, itemNumbers }: FinalResponse,
    lastSequence: number,
  ): Promise<void> {
    if (response.status === 'in_progress') throw new Error('the response has not ended')
    const { output: _output, output_text: _text, compatibility: _form, ...body } = response
    const { cost = 0 } = this.#state.known
    const status = await finishResponse(this.#deps.database, owner, {
      id: responseId,
      status: response.status,
      body: JSON.stringify({ ...body, item_numbers: itemNumbers, cost } satisfies StoredBody),
      completedAt: this.#deps.clock(),
      lastSequence,
      inputItems,
      outputItems,
      usedItemIds,
      conversationId,
    })
    // The response was deleted meanwhile, and with it every reference to its content.
    if (status === null) await this.#deps.contentStore.remove(this.#state.contentKeys)
    // The end of the response follows, and is stored with it. A write that is repeated changes nothing.
    if (this.#state.head?.phase === 'ending') this.#state.note({ pendingWrite: false })
    else this.#state.change({ pendingWrite: false })
  }
}

/** Whether an item belongs into the content store and is not there yet. */
const isLarge = ({ body }: StoredItem): boolean =>
  body !== null && body.length * 3 > LARGE_ITEM_BYTES && Buffer.byteLength(body) > LARGE_ITEM_BYTES

const logPending = (error: unknown) => logEvent('warn', 'response_write_pending', { error: errorText(error) })
