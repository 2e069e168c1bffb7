import { extend, type GovernanceDeps, type GovernedCall } from '../../calls/governed-call.ts'
import type { CallProgress } from '../../ledger/contract.ts'

/** The ledger's lease of a running stream, renewed with its usage so far: the settlement if its end never comes. */
export class CallLease {
  /** The lease ran out and the ledger has settled the call: what is sent from now on is not accounted for. */
  isLost = false
  readonly #deps: GovernanceDeps
  readonly #call: GovernedCall
  readonly #milliseconds: number
  readonly #progress: () => CallProgress | null
  #renewedAt: number

  /** @param progress the usage so far; null where tokens are not charged. */
  constructor(
    deps: GovernanceDeps,
    call: GovernedCall,
    milliseconds: number,
    progress: () => CallProgress | null,
  ) {
    this.#deps = deps
    this.#call = call
    this.#milliseconds = milliseconds
    this.#progress = progress
    this.#renewedAt = deps.clock()
  }

  /** Renews the lease when a third of it has passed. @param now milliseconds since the epoch. */
  renew(now: number): void {
    if (now - this.#renewedAt < this.#milliseconds / 3) return
    this.#renewedAt = now
    extend(this.#deps, this.#call, this.#milliseconds, this.#progress()).then((isOpen) => {
      // Null: the ledger did not answer. The next renewal may still succeed.
      if (isOpen === false) this.isLost = true
    })
  }
}
