import { createHash } from 'node:crypto'
import type { AdjustableClock } from '../adjustable-clock.ts'
import { createCallback, createFailureCallback } from './callbacks.ts'
import { type DeliveryOutcome, deliver, deliveredBody } from './delivery.ts'
import { defaultBackoff, expressionDelay, requestedDelay } from './durations.ts'
import { EventLog } from './event-log.ts'
import {
  createMessage,
  type DeadMessage,
  type Message,
  type PublishRequest,
  RefusedError,
} from './message.ts'
import type { Queues } from './queues.ts'
import type { RecordCollection, RecordStore } from './record-store.ts'
import { type SigningKeys, signDelivery } from './signature.ts'

/** What a publish is answered with. */
export interface PublishResult {
  readonly messageId: string
  /** Set if an earlier message has the same deduplication id. */
  readonly deduplicated?: true
}

/** What the broker is made of. */
export interface BrokerParts {
  readonly store: RecordStore
  readonly queues: Queues
  readonly clock: AdjustableClock
  readonly keys: SigningKeys
  /** Which key signs: the current one, or the next one as after a roll. */
  signWith: 'current' | 'next'
  /** Expression over `retried` in place of the documented backoff, where a message has none of its own. */
  readonly retryDelay?: string
}

/** How long a deduplication id is remembered, in milliseconds. https://upstash.com/docs/qstash/features/deduplication */
const DEDUPLICATION_MS = 10 * 60_000
/** Deliveries at the same time, as on the pay-as-you-go plan. */
const MAX_ACTIVE = 100
/** Longest delay of setTimeout, in milliseconds. */
const MAX_TIMER_MS = 2 ** 31 - 1

/**
 * Keeps messages and delivers each when it is due, until it is answered with 2xx or its retries are exhausted.
 * A message stays stored until then, so after a kill it is delivered again: at least once, as QStash promises.
 */
export class Broker {
  readonly events = new EventLog()
  readonly #parts: BrokerParts
  readonly #messages: RecordCollection<Message>
  readonly #dead: RecordCollection<DeadMessage>
  readonly #deduplication: RecordCollection<{ messageId: string; until: number }>
  readonly #counters: RecordCollection<number>
  readonly #active = new Set<string>()
  readonly #closing = new AbortController()
  #timer: NodeJS.Timeout | undefined

  constructor(parts: BrokerParts) {
    this.#parts = parts
    this.#messages = parts.store.collection('message')
    this.#dead = parts.store.collection('dead')
    this.#deduplication = parts.store.collection('deduplication')
    this.#counters = parts.store.collection('counter')
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
    const deduplicationId = readDeduplicationId(request)
    const earlier = deduplicationId === undefined ? undefined : this.#deduplication.get(deduplicationId)
    if (earlier !== undefined && earlier.until > now)
      return { messageId: earlier.messageId, deduplicated: true }
    this.#forgetOldDeduplication(now)
    this.#accept(message)
    // After the message: a kill in between may double it, but an id without its message would swallow the next one.
    if (deduplicationId !== undefined) {
      const until = now + DEDUPLICATION_MS
      this.#deduplication.set(deduplicationId, { messageId: message.messageId, until })
    }
    this.pump()
    return { messageId: message.messageId }
  }

  /**
   * Checks requests without publishing any, so that a batch is accepted as a whole or not at all.
   *
   * @throws RefusedError for the first malformed one
   */
  check(requests: PublishRequest[]): void {
    for (const request of requests) createMessage(request, this.#parts.clock.now())
  }

  /** Messages that wait or are being delivered, the oldest first. */
  pending(): Message[] {
    return this.#messages.values()
  }

  message(messageId: string): Message | undefined {
    return this.#messages.get(messageId)
  }

  /** Ids of the messages whose delivery is under way. */
  active(): string[] {
    return [...this.#active]
  }

  /** @returns how many of the messages were still there to be cancelled */
  cancel(messageIds: string[]): number {
    let cancelled = 0
    for (const messageId of messageIds) {
      const message = this.#messages.get(messageId)
      if (message === undefined) continue
      this.#messages.delete(messageId)
      this.events.add(this.#parts.clock.now(), message, 'CANCELLED')
      cancelled++
    }
    this.pump()
    return cancelled
  }

  /** The dead letter queue, the oldest first. */
  deadMessages(): DeadMessage[] {
    return this.#dead.values()
  }

  deadMessage(dlqId: string): DeadMessage | undefined {
    return this.#dead.get(dlqId)
  }

  /** @returns whether there was such a message */
  deleteDead(dlqId: string): boolean {
    return this.#dead.delete(dlqId)
  }

  /**
   * Publishes a message of the DLQ again, as a new message, and takes it off the DLQ.
   *
   * @param overrides publishing headers that replace those of the first time
   * @throws RefusedError (404) if it is not there
   */
  retryDead(dlqId: string, overrides: Record<string, string>): PublishResult {
    const dead = this.#dead.get(dlqId)
    if (dead === undefined) throw new RefusedError(404, `dlq message ${dlqId} not found`)
    const headers = Object.fromEntries(
      Object.entries({ ...dead.publishHeaders, ...overrides }).filter(
        ([name]) => !isOnlyForTheFirstTime(name),
      ),
    )
    const { url, callerIp, queueName, scheduleId } = dead
    const result = this.publish({
      url,
      callerIp,
      headers,
      body: Buffer.from(dead.body, 'base64'),
      ...(queueName !== undefined && { queueName }),
      ...(scheduleId !== undefined && { scheduleId }),
    })
    this.#dead.delete(dlqId)
    return result
  }

  /** Begins the deliveries that are due and sets the timer for the next one. Call it after every change. */
  pump(): void {
    clearTimeout(this.#timer)
    if (this.#closing.signal.aborted) return
    const now = this.#parts.clock.now()
    let next = Number.POSITIVE_INFINITY
    for (const message of this.#parts.queues.deliverable(this.#messages.values())) {
      if (this.#active.has(message.messageId)) continue
      if (message.nextDeliveryAt > now) next = Math.min(next, message.nextDeliveryAt)
      else if (this.#active.size < MAX_ACTIVE) void this.#attempt(message)
    }
    if (next === Number.POSITIVE_INFINITY) return
    this.#timer = setTimeout(() => this.pump(), Math.min(MAX_TIMER_MS, Math.max(1, next - now)))
  }

  /** Ends all deliveries. What was under way counts as not attempted. */
  close(): void {
    clearTimeout(this.#timer)
    this.#closing.abort()
  }

  #accept(message: Message): void {
    this.#messages.set(message.messageId, message)
    this.events.add(message.createdAt, message, 'CREATED', { nextDeliveryTime: message.nextDeliveryAt })
  }

  async #attempt(message: Message): Promise<void> {
    this.#active.add(message.messageId)
    this.events.add(this.#parts.clock.now(), message, 'ACTIVE')
    const key = this.#parts.keys[this.#parts.signWith]
    const signature = signDelivery(key, message.url, deliveredBody(message))
    const outcome = await deliver(message, signature, this.#closing.signal)
    this.#active.delete(message.messageId)
    if (this.#closing.signal.aborted) return
    // A message that was cancelled meanwhile has nothing more to come.
    if (this.#messages.get(message.messageId) !== undefined) this.#conclude(message, outcome)
    this.pump()
  }

  /** Stores what an attempt came to; `pump` follows. */
  #conclude(message: Message, outcome: DeliveryOutcome): void {
    const now = this.#parts.clock.now()
    if (outcome.status >= 200 && outcome.status < 300) {
      this.events.add(now, message, 'DELIVERED', { responseStatus: outcome.status })
      this.#callBack(createCallback(message, outcome, now))
      this.#messages.delete(message.messageId)
      return
    }
    this.events.add(now, message, 'ERROR', {
      responseStatus: outcome.status,
      responseBody: outcome.body.toString('base64'),
      ...(outcome.error !== undefined && { error: outcome.error }),
    })
    this.#callBack(createCallback(message, outcome, now))
    if (isFinal(outcome) || message.retried >= message.maxRetries) this.#bury(message, outcome, now)
    else this.#retryLater(message, outcome, now)
  }

  #retryLater(message: Message, outcome: DeliveryOutcome, now: number): void {
    const expression = message.retryDelay ?? this.#parts.retryDelay
    const ownDelay =
      expression === undefined
        ? defaultBackoff(message.retried + 1)
        : expressionDelay(expression, message.retried)
    const nextDeliveryAt = now + (requestedDelay(outcome.headers, now) ?? ownDelay)
    this.#messages.set(message.messageId, { ...message, retried: message.retried + 1, nextDeliveryAt })
    this.events.add(now, message, 'RETRY', { nextDeliveryTime: nextDeliveryAt })
  }

  #bury(message: Message, outcome: DeliveryOutcome, now: number): void {
    const sequence = (this.#counters.get('dlq') ?? 0) + 1
    this.#counters.set('dlq', sequence)
    const dlqId = `${now}-${sequence}`
    this.#dead.set(dlqId, {
      ...message,
      dlqId,
      responseStatus: outcome.status,
      responseHeader: outcome.headers,
      responseBody: outcome.body.toString('base64'),
    })
    this.events.add(now, message, 'FAILED', { responseStatus: outcome.status })
    this.#callBack(createFailureCallback(message, outcome, dlqId, now))
    this.#messages.delete(message.messageId)
  }

  #callBack(callback: Message | undefined): void {
    if (callback !== undefined) this.#accept(callback)
  }

  #forgetOldDeduplication(now: number): void {
    for (const [id, { until }] of this.#deduplication.entries()) {
      // In order of age, so the first that still holds ends the search.
      if (until > now) return
      this.#deduplication.delete(id)
    }
  }
}

/** 489 with the header below means: do not try again. https://upstash.com/docs/qstash/features/retry */
function isFinal({ status, headers }: DeliveryOutcome): boolean {
  return status === 489 && headers['upstash-nonretryable-error']?.[0] === 'true'
}

/** Headers that must not act again when a message is published for the second time. */
function isOnlyForTheFirstTime(name: string): boolean {
  return /^upstash-(delay|not-before|deduplication-id|content-based-deduplication|cron|schedule-id)$/.test(
    name,
  )
}

/** The given id, or a hash of destination, body, content type and forwarded headers. */
function readDeduplicationId({ url, headers, body }: PublishRequest): string | undefined {
  const given = headers['upstash-deduplication-id']
  if (given !== undefined) return given
  if (headers['upstash-content-based-deduplication'] !== 'true') return undefined
  const counted = Object.entries(headers).filter(
    ([name]) => name === 'content-type' || name.startsWith('upstash-forward-'),
  )
  const description = JSON.stringify([url, counted.sort()])
  return `content:${createHash('sha256').update(description).update('\0').update(body).digest('hex')}`
}
