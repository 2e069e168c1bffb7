import type { Clock } from '../../lib/clock.ts'
import type { StartRequest } from '../model/types.ts'
import type { PooledResponse } from './pooled-response.ts'
import { LAPSE_MS, Reservations } from './reservations.ts'

/**
 * Most responses that are generated at a time; with 64, an object took a quarter of a core at 20 events a second each.
 * @internal A bound that tests reach.
 */
export const MOST_LIVE = 64
/** From here on the next responses should go to another object. */
const ENOUGH_LIVE = 32
/** Contexts in memory, of 128 MB that objects may share. */
const MOST_CONTEXT_BYTES = 48 * 1024 * 1024

/** The room that an object has for further responses. */
export class PoolRoom {
  readonly #clock: Clock
  readonly #opened: ReadonlySet<PooledResponse>
  readonly #storage: { isFull: () => boolean }
  readonly #reservations = new Reservations()
  readonly #startedAt: number

  /** @param opened the responses with an instance. */
  constructor(clock: Clock, opened: ReadonlySet<PooledResponse>, storage: { isFull: () => boolean }) {
    this.#clock = clock
    this.#opened = opened
    this.#storage = storage
    this.#startedAt = clock()
  }

  /** Whether the next responses should go to another object. */
  get isLittle(): boolean {
    return this.#live >= ENOUGH_LIVE
  }

  /** @param bytes of the body that is to be taken. One that is larger than the limit has room where nothing else is. */
  has(bytes: number): boolean {
    const reserved = this.#reservations.current(this.#clock())
    let held = reserved.bytes
    for (const { instance } of this.#opened) held += instance?.contextBytes ?? 0
    return (
      this.#live + reserved.count < MOST_LIVE &&
      (held === 0 || held + bytes <= MOST_CONTEXT_BYTES) &&
      !this.#storage.isFull()
    )
  }

  /** Reserves room for a body. @returns whether there is room. */
  reserve(responseId: string, bytes: number): boolean {
    if (!this.has(bytes)) return false
    this.#reservations.add(responseId, bytes, this.#clock())
    return true
  }

  /**
   * Whether room was reserved for a start. A body that is a stream follows a reservation and cannot be sent to another object:
   * within the time of one after a restart, which has forgotten them, it is taken as reserved.
   */
  isReserved(responseId: string, { bodyBytes }: StartRequest): boolean {
    if (this.#reservations.take(responseId)) return true
    const isForgotten = bodyBytes !== undefined && this.#clock() < this.#startedAt + LAPSE_MS
    return isForgotten && this.#live < 2 * MOST_LIVE
  }

  get #live(): number {
    let live = 0
    for (const { isLive } of this.#opened) if (isLive) live++
    return live
  }
}
