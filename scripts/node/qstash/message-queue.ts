import type { RecordCollection, RecordStore } from '../record-store.ts'
import { DeadLetters } from './dead-letters.ts'
import { type DeliveryOutcome, type DeliveryRoute, deliver, deliveredBody } from './delivery.ts'
import { defaultBackoff, requestedDelay } from './durations.ts'
import type { QueueClock } from './queue-clock.ts'
import { createMessage, type DeadMessage, type PublishRequest, type QueuedMessage } from './queued-message.ts'
import { retryDelay } from './retry-delay.ts'
import { signDelivery } from './signature.ts'

/** Answer to a publish. */
export interface PublishResult {
  readonly messageId: string
  /** Set if an earlier message has the same deduplication id. */
  readonly deduplicated?: true
}

/** Parts of the broker. */
export interface BrokerParts {
  readonly store: RecordStore
  readonly clock: QueueClock
  /** Signs deliveries. */
  readonly signingKey: string
  /** Where deliveries connect to; null for the host of each URL. */
  readonly route: DeliveryRoute | null
  /** Gets each message that becomes a dead letter. */
  readonly onDeadLetter: (letter: DeadMessage) => void
}

/** How long a deduplication id is remembered, in milliseconds. https://upstash.com/docs/qstash/features/deduplication */
const DEDUPLICATION_MS = 10 * 60_000
/** Deliveries at the same time, as on the pay-as-you-go plan. */
const MAX_ACTIVE = 100
/** Longest delay of setTimeout, in milliseconds. */
const MAX_TIMER_MS = 2 ** 31 - 1

/**
 * Keeps messages and delivers each when it is due, until it is answered with 2xx or its retries are exhausted. A
 * message stays stored until then, so that after a kill it is delivered again: QStash guarantees delivery at least
 * once.
 */
export class MessageQueue {
  readonly #parts: BrokerParts
  readonly #messages: RecordCollection<QueuedMessage>
  readonly #deadLetters: DeadLetters
  readonly #deduplication: RecordCollection<{ messageId: string; until: number }>
  readonly #active = new Set<string>()
  readonly #closing = new AbortController()
  /** Aborted when deliveries under way are abandoned. */
  #abandoning = new AbortController()
  #isPaused = false
  /** Resolves `pause` once nothing is under way. */
  #onIdle = (): void => {}
  #timer: NodeJS.Timeout | undefined

  constructor(parts: BrokerParts) {
    this.#parts = parts
    this.#messages = parts.store.collection('message')
    this.#deadLetters = new DeadLetters(parts.store)
    this.#deduplication = parts.store.collection('deduplication')
    // Nothing is appended before the store is open, which rewrites the file without them.
    this.#deadLetters.removeOld(parts.clock.now())
    parts.clock.onAdvance(() => this.pump())
  }

  /**
   * Accepts a message.
   *
   * @throws RefusedError for a malformed request
   */
  publish(request: PublishRequest): PublishResult {
    const now = this.#parts.clock.now()
    const message = createMessage(request, now)
    const deduplicationId = request.headers['upstash-deduplication-id']
    const earlier = deduplicationId === undefined ? undefined : this.#deduplication.get(deduplicationId)
    if (earlier !== undefined && earlier.until > now)
      return { messageId: earlier.messageId, deduplicated: true }
    this.#forgetOldDeduplication(now)
    this.#deadLetters.removeOld(now)
    this.#messages.set(message.messageId, message)
    // After the message: a kill in between may double it, but an id without its message would swallow the next one.
    if (deduplicationId !== undefined) {
      const until = now + DEDUPLICATION_MS
      this.#deduplication.set(deduplicationId, { messageId: message.messageId, until })
    }
    this.pump()
    return { messageId: message.messageId }
  }

  /** Messages that wait or are being delivered, the oldest first. */
  pending(): QueuedMessage[] {
    return this.#messages.values()
  }

  message(messageId: string): QueuedMessage | undefined {
    return this.#messages.get(messageId)
  }

  /** Ids of the messages whose delivery is under way. */
  active(): string[] {
    return [...this.#active]
  }

  /** @returns whether the message was still there to be cancelled */
  cancel(messageId: string): boolean {
    const cancelled = this.#messages.delete(messageId)
    this.pump()
    return cancelled
  }

  /** The dead letter queue, the oldest first. */
  deadMessages(): DeadMessage[] {
    return this.#deadLetters.list(this.#parts.clock.now())
  }

  /** Begins the deliveries that are due and sets the timer for the next one. Call it after every change. */
  pump(): void {
    clearTimeout(this.#timer)
    if (this.#closing.signal.aborted || this.#isPaused) return
    const now = this.#parts.clock.now()
    let next = Number.POSITIVE_INFINITY
    for (const message of this.#messages.values()) {
      if (this.#active.has(message.messageId)) continue
      if (message.nextDeliveryAt > now) next = Math.min(next, message.nextDeliveryAt)
      else if (this.#active.size < MAX_ACTIVE) void this.#attempt(message)
    }
    if (next === Number.POSITIVE_INFINITY) return
    this.#timer = setTimeout(() => this.pump(), Math.min(MAX_TIMER_MS, Math.max(1, next - now)))
  }

  /**
   * Begins no more deliveries, and waits for those under way.
   * @param limitMs milliseconds after which they are abandoned: an abandoned attempt counts as not made
   */
  async pause(limitMs: number): Promise<void> {
    this.#isPaused = true
    clearTimeout(this.#timer)
    if (this.#active.size === 0) return
    const idle = new Promise<void>((resolve) => {
      this.#onIdle = resolve
    })
    const timer = setTimeout(() => this.#abandoning.abort(), limitMs)
    await idle
    clearTimeout(timer)
  }

  /** Delivers again after `pause`. */
  resume(): void {
    this.#isPaused = false
    this.#abandoning = new AbortController()
    this.pump()
  }

  /** Ends all deliveries. An attempt in progress counts as not made. */
  close(): void {
    clearTimeout(this.#timer)
    this.#closing.abort()
  }

  async #attempt(message: QueuedMessage): Promise<void> {
    this.#active.add(message.messageId)
    const signature = signDelivery(this.#parts.signingKey, message.url, deliveredBody(message))
    const signal = AbortSignal.any([this.#closing.signal, this.#abandoning.signal])
    const outcome = await deliver(message, signature, signal, this.#parts.route)
    this.#active.delete(message.messageId)
    if (this.#active.size === 0) this.#onIdle()
    if (signal.aborted) return
    // A message that was cancelled meanwhile has nothing more to come.
    if (this.#messages.get(message.messageId) !== undefined) this.#conclude(message, outcome)
    this.pump()
  }

  /** Stores the outcome of an attempt; `pump` follows. */
  #conclude(message: QueuedMessage, outcome: DeliveryOutcome): void {
    const now = this.#parts.clock.now()
    if (outcome.status >= 200 && outcome.status < 300) this.#messages.delete(message.messageId)
    else if (isFinal(outcome) || message.retried >= message.maxRetries)
      this.#deadLetter(message, outcome, now)
    else {
      const delay = requestedDelay(outcome.headers, now) ?? backoff(message)
      const retry = { ...message, retried: message.retried + 1, nextDeliveryAt: now + delay }
      this.#messages.set(message.messageId, retry)
    }
  }

  #deadLetter(message: QueuedMessage, outcome: DeliveryOutcome, now: number): void {
    const letter = this.#deadLetters.add(message, outcome, now)
    this.#messages.delete(message.messageId)
    this.#parts.onDeadLetter(letter)
  }

  #forgetOldDeduplication(now: number): void {
    for (const [id, { until }] of this.#deduplication.entries()) {
      // Entries are ordered by age: the first valid one ends the search.
      if (until > now) return
      this.#deduplication.delete(id)
    }
  }
}

const backoff = ({ retryDelay: expression, retried }: QueuedMessage): number =>
  expression === undefined ? defaultBackoff(retried + 1) : retryDelay(expression, retried)

/** 489 with the header below means: do not try again. https://upstash.com/docs/qstash/features/retry */
function isFinal({ status, headers }: DeliveryOutcome): boolean {
  return status === 489 && headers['upstash-nonretryable-error']?.[0] === 'true'
}
