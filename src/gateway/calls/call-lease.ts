import type { Usage } from '../../governance/credits.ts'
import { extend, type GovernanceDeps, type GovernedCall } from '../../governance/governed-call.ts'
import type { Meter } from '../protocols/protocol.ts'
import { type ChargeBasis, streamCharge, withLost } from './charges.ts'

export interface LeaseOptions {
  call: GovernedCall
  basis: ChargeBasis
  meter: Meter
  /** What attempts before this one may be charged for. */
  lost: Usage | null
  /** Name of the provider that answers. */
  provider: string
  leaseMilliseconds: number
}

/** The ledger's hold on a running stream: renewed with what was used so far, so that nothing is lost if its end never comes. */
export class CallLease {
  /** The ledger has settled the call because its lease ran out: what is sent now is on no account. */
  isLost = false
  readonly #deps: GovernanceDeps
  readonly #options: LeaseOptions
  #renewedAt: number

  constructor(deps: GovernanceDeps, options: LeaseOptions) {
    this.#deps = deps
    this.#options = options
    this.#renewedAt = deps.clock()
  }

  /** Renews the lease when a third of it has passed. @param now milliseconds since the epoch. */
  renew(now: number): void {
    const { call, basis, meter, lost, provider, leaseMilliseconds } = this.#options
    if (now - this.#renewedAt < leaseMilliseconds / 3) return
    this.#renewedAt = now
    const { usage, cost } = withLost(basis, streamCharge(basis, meter), lost)
    extend(this.#deps, call, leaseMilliseconds, usage && { provider, usage, cost }).then((isOpen) => {
      // Null is no answer: the lease may still be renewed by the next one.
      if (isOpen === false) this.isLost = true
    })
  }
}
