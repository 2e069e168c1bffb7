/** A clock that tests can move forward. */
export class AdjustableClock {
  #ahead = 0
  readonly #listeners: (() => void)[] = []

  /** Milliseconds since 1970, by the system's clock plus what was added. */
  now = (): number => Date.now() + this.#ahead

  /**
   * Moves the clock forward and calls the listeners.
   *
   * @param milliseconds how far; zero or more
   */
  advance(milliseconds: number): void {
    if (!Number.isFinite(milliseconds) || milliseconds < 0) throw new RangeError('a clock only moves forward')
    this.#ahead += milliseconds
    for (const listener of this.#listeners) listener()
  }

  /** Calls back after each `advance`. */
  onAdvance(listener: () => void): void {
    this.#listeners.push(listener)
  }
}

/**
 * Reads the body of `POST /control/advance`.
 *
 * @returns the milliseconds to advance by, or nothing if the body is not `{"milliseconds": n}` with n >= 0
 */
export function readAdvance(body: Buffer): number | undefined {
  try {
    const { milliseconds } = JSON.parse(body.toString('utf8')) as { milliseconds?: unknown }
    const isValid = typeof milliseconds === 'number' && Number.isFinite(milliseconds) && milliseconds >= 0
    return isValid ? milliseconds : undefined
  } catch {
    return undefined
  }
}
