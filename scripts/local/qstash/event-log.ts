import type { Filterable } from './filters.ts'
import type { Message } from './message.ts'

/** States of a message in the logs. https://upstash.com/docs/qstash/howto/debug-logs */
export type MessageState = 'CREATED' | 'ACTIVE' | 'DELIVERED' | 'ERROR' | 'RETRY' | 'FAILED' | 'CANCELLED'

/** What an entry may say besides the state. */
export interface EventDetails {
  readonly nextDeliveryTime?: number
  readonly error?: string
  readonly responseStatus?: number
  /** Base64. */
  readonly responseBody?: string
}

/** One entry of the logs. */
export interface LogEvent extends EventDetails, Filterable {
  readonly sequence: number
  readonly state: MessageState
}

/** QStash keeps that many. */
const MAX_EVENTS = 10_000

/** The logs of the last deliveries, kept in memory only. */
export class EventLog {
  #events: LogEvent[] = []
  #sequence = 0

  /** @param time milliseconds since 1970 */
  add(time: number, message: Message, state: MessageState, details: EventDetails = {}): void {
    const { messageId, url, queueName, scheduleId, flowControlKey, callerIp, labels } = message
    this.#events.push({
      sequence: ++this.#sequence,
      time,
      state,
      messageId,
      url,
      queueName,
      scheduleId,
      flowControlKey,
      callerIp,
      labels,
      ...details,
    })
    if (this.#events.length > MAX_EVENTS + 1_000) this.#events = this.#events.slice(-MAX_EVENTS)
  }

  /** All entries, the latest first. */
  latestFirst(): LogEvent[] {
    return this.#events.toReversed()
  }
}
