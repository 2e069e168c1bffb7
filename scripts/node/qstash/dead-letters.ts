import type { RecordCollection, RecordStore } from '../record-store.ts'
import type { DeliveryOutcome } from './delivery.ts'
import type { DeadMessage, QueuedMessage } from './queued-message.ts'

/** How long a dead letter stays, in milliseconds, as on the pay-as-you-go plan. https://upstash.com/docs/qstash/features/dlq */
const RETENTION_MS = 7 * 86_400_000
const MOST_LETTERS = 1_000
/** The largest message with its answer, in base64, is 68 MiB. */
const MOST_BYTES = 100 * 1024 * 1024

/**
 * The dead letter queue: messages whose retries are exhausted. All of them are in memory and rewritten with the file, so their age, number
 * and bytes are bounded; the oldest are removed first.
 */
export class DeadLetters {
  readonly #letters: RecordCollection<DeadMessage>
  readonly #counters: RecordCollection<number>
  readonly #bytes = new Map<string, number>()
  #allBytes = 0

  constructor(store: RecordStore) {
    this.#letters = store.collection('dead')
    this.#counters = store.collection('counter')
    for (const letter of this.#letters.values()) this.#count(letter)
  }

  /**
   * Adds a message with the outcome of its last delivery.
   * @param now milliseconds since 1970
   */
  add(message: QueuedMessage, { status, headers, body }: DeliveryOutcome, now: number): DeadMessage {
    const sequence = (this.#counters.get('dlq') ?? 0) + 1
    this.#counters.set('dlq', sequence)
    const letter: DeadMessage = {
      ...message,
      dlqId: `${now}-${sequence}`,
      responseStatus: status,
      responseHeader: headers,
      responseBody: body.toString('base64'),
    }
    this.#letters.set(letter.dlqId, letter)
    this.#count(letter)
    this.removeOld(now)
    return letter
  }

  /** The oldest first. @param now milliseconds since 1970 */
  list(now: number): DeadMessage[] {
    this.removeOld(now)
    return this.#letters.values()
  }

  /** Removes what is too old, and the oldest of what is too much. */
  removeOld(now: number): void {
    let left = this.#bytes.size
    for (const [id, bytes] of this.#bytes) {
      // The first part of an id is when it was added, and ids are in that order.
      const isOld = Number(id.split('-', 1)[0]) <= now - RETENTION_MS
      if (!isOld && left <= MOST_LETTERS && this.#allBytes <= MOST_BYTES) return
      this.#letters.delete(id)
      this.#bytes.delete(id)
      this.#allBytes -= bytes
      left -= 1
    }
  }

  #count(letter: DeadMessage): void {
    const bytes = JSON.stringify(letter).length
    this.#bytes.set(letter.dlqId, bytes)
    this.#allBytes += bytes
  }
}
