/**
 * Named signals with which a test decides when a script continues. A signal without a waiting script is kept for the
 * next script that waits.
 */
export class SignalBoard {
  readonly #waiting = new Map<string, Set<() => void>>()
  readonly #kept = new Set<string>()

  /** Resolves when `name` is released, or when `departure` aborts. */
  wait(name: string, departure: AbortSignal): Promise<void> {
    if (departure.aborted || this.#kept.delete(name)) return Promise.resolve()
    return new Promise((resolve) => {
      const waiters = this.#waiting.get(name) ?? new Set()
      this.#waiting.set(name, waiters)
      const settle = (): void => {
        waiters.delete(settle)
        departure.removeEventListener('abort', settle)
        resolve()
      }
      waiters.add(settle)
      departure.addEventListener('abort', settle)
    })
  }

  /** Releases all scripts that wait for `name`; without any the signal is kept. @returns how many waited */
  release(name: string): number {
    const waiters = [...(this.#waiting.get(name) ?? [])]
    if (waiters.length === 0) this.#kept.add(name)
    for (const settle of waiters) settle()
    return waiters.length
  }

  /** How many wait for each signal. */
  counts(): Record<string, number> {
    const pairs = [...this.#waiting].map(([name, waiters]) => [name, waiters.size] as const)
    return Object.fromEntries(pairs.filter(([, count]) => count > 0))
  }
}
