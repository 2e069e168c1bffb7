import { type Clock, earliest } from '../../lib/clock.ts'
import type { PooledResponse } from './pooled-response.ts'

/** Interval of the alarm while responses are generated. */
export const CHECK_INTERVAL_MS = 30_000
/** Alarms that close windows, in the time of one window: a minute apart by default. */
const ALARMS_PER_WINDOW = 15

/** When the alarm of an object with many responses has to run. */
export class AlarmTimes {
  readonly #clock: Clock
  readonly #step: number

  /** @param window milliseconds for which ended responses are kept. */
  constructor(clock: Clock, window: number) {
    this.#clock = clock
    this.#step = Math.max(1, Math.floor(window / ALARMS_PER_WINDOW))
  }

  /**
   * The time at which the first of some responses is due; that of the next check if a response is open, or none is due.
   * @param all responses of the object.
   */
  next(some: readonly PooledResponse[], all: readonly PooledResponse[]): number {
    const check = this.#clock() + CHECK_INTERVAL_MS
    const times = some.map(({ due, isOpen }) => (due === null || isOpen ? due : this.rounded(due)))
    const isAnyOpen = all.some(({ isOpen }) => isOpen)
    return earliest([...times, isAnyOpen ? check : null]) ?? check
  }

  /** The end of a window, moved so far that the windows which end about then are closed by one alarm: each costs a row. */
  rounded(time: number): number {
    return Math.ceil(time / this.#step) * this.#step
  }
}
