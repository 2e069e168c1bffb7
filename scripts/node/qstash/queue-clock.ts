/** The time of the queue. Tests move it; what waits then listens. */
export interface QueueClock {
  /** Milliseconds since 1970. */
  now(): number
  /** Calls back after each jump of a clock that can be moved. */
  onAdvance(listener: () => void): void
}

/** The system's time, which nothing moves. */
export const SYSTEM_CLOCK: QueueClock = { now: Date.now, onAdvance: () => {} }
