import { extend, type GovernanceDeps, type GovernedCall } from './governed-call.ts'

/**
 * Keeps a call open in the ledger while its work runs: after the process of a call has died, credits stay reserved and
 * the record is missing until the lease ends. So the lease is short, and renewed when a third of it has passed.
 * @param leaseMilliseconds with which the call was opened. @returns the result of the work. @throws what the work throws.
 */
export async function withRenewedLease<Result>(
  deps: GovernanceDeps,
  call: GovernedCall,
  leaseMilliseconds: number,
  work: () => Promise<Result>,
): Promise<Result> {
  const timer = setInterval(() => void extend(deps, call, leaseMilliseconds, null), leaseMilliseconds / 3)
  try {
    return await work()
  } finally {
    clearInterval(timer)
  }
}
