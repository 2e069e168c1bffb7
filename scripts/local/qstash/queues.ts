import { type Message, RefusedError } from './message.ts'
import type { RecordCollection, RecordStore } from './record-store.ts'

/** A queue's settings. */
interface Queue {
  readonly name: string
  readonly parallelism: number
  readonly paused: boolean
  readonly createdAt: number
  readonly updatedAt: number
}

/**
 * Queues: messages of one are delivered in order, and one that waits for a retry holds up those behind it.
 * https://upstash.com/docs/qstash/features/queues
 */
export class Queues {
  readonly #queues: RecordCollection<Queue>

  constructor(store: RecordStore) {
    this.#queues = store.collection('queue')
  }

  /** Leaves out the messages that have to wait for others of their queue, or whose queue is paused. */
  deliverable(messages: Message[]): Message[] {
    const ahead = new Map<string, number>()
    return messages.filter(({ queueName }) => {
      if (queueName === undefined) return true
      const queue = this.#queues.get(queueName)
      const position = ahead.get(queueName) ?? 0
      ahead.set(queueName, position + 1)
      return queue?.paused !== true && position < (queue?.parallelism ?? 1)
    })
  }

  /** Creates a queue or changes its settings; `now` is in milliseconds since 1970. */
  upsert(name: string, settings: { parallelism?: number; paused?: boolean }, now: number): void {
    if (!/^[\w.-]+$/.test(name)) throw new RefusedError(400, `invalid queue name ${name}`)
    const { parallelism } = settings
    if (parallelism !== undefined && !(Number.isInteger(parallelism) && parallelism > 0)) {
      throw new RefusedError(400, 'parallelism must be a positive integer')
    }
    const present = this.#queues.get(name) ?? {
      name,
      parallelism: 1,
      paused: false,
      createdAt: now,
      updatedAt: now,
    }
    this.#queues.set(name, { ...present, ...settings, updatedAt: now })
  }

  /** @throws RefusedError (404) if there is no such queue */
  view(name: string, messages: Message[]): Record<string, unknown> {
    const queue = this.#queues.get(name)
    if (queue === undefined) throw new RefusedError(404, `queue ${name} not found`)
    return { ...queue, lag: messages.filter(({ queueName }) => queueName === name).length }
  }

  list(messages: Message[]): Record<string, unknown>[] {
    return this.#queues.values().map(({ name }) => this.view(name, messages))
  }

  delete(name: string): void {
    this.#queues.delete(name)
  }
}
