/** Thrown when the one embedded session stays taken; carries the SQLSTATE of `lock_not_available`. */
export class SessionBusyError extends Error {
  readonly severity = 'ERROR'
  readonly code = '55P03'
  readonly hint =
    'Embedded Postgres has one session. Inside a transaction use only the client of that transaction.'
}

interface Waiter {
  readonly holder: string
  readonly grant: () => void
}

/**
 * Hands out the one session of embedded Postgres, first come first served.
 *
 * A real Postgres would serve a second query while a transaction is open; here it has to wait, and a request that
 * waits for its own transaction would wait for ever. So waiting ends with an error that says who holds the session.
 */
export class SessionLock {
  readonly #timeoutMs: number
  #holder: string | undefined
  readonly #waiters: Waiter[] = []

  /** @param timeoutMs how long one may wait for the session, in milliseconds */
  constructor(timeoutMs: number) {
    this.#timeoutMs = timeoutMs
  }

  /**
   * Waits for the session.
   *
   * @param holder who asks, as told to others that wait in vain
   * @returns gives the session to the next one; calling it twice is harmless
   * @throws SessionBusyError after the time limit
   */
  async acquire(holder: string): Promise<() => void> {
    if (this.#holder === undefined) this.#holder = holder
    else await this.#wait(holder)
    let held = true
    return () => {
      if (!held) return
      held = false
      const next = this.#waiters.shift()
      this.#holder = next?.holder
      next?.grant()
    }
  }

  #wait(holder: string): Promise<void> {
    return new Promise((resolve, reject) => {
      const waiter: Waiter = {
        holder,
        grant: () => {
          clearTimeout(timer)
          resolve()
        },
      }
      const timer = setTimeout(() => {
        this.#waiters.splice(this.#waiters.indexOf(waiter), 1)
        reject(
          new SessionBusyError(
            `${holder} waited ${this.#timeoutMs} ms for the only session of embedded Postgres, held by ${this.#holder}`,
          ),
        )
      }, this.#timeoutMs)
      this.#waiters.push(waiter)
    })
  }
}
