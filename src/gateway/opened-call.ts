import type { CallOutcome } from '../governance/audit-record.ts'
import { costOf, type Prices } from '../governance/credits.ts'
import { type CallRecord, emptyOutcome } from './call-record.ts'
import { type CallBounds, estimateUsage } from './metering.ts'

/** A call that the ledger holds open, as plain data: what is needed to settle it when its maker is gone. */
export interface GovernedCall {
  record: CallRecord
  organizationId: string
  /** Whose route is tried first. */
  provider: string | null
  prices: Prices
  bounds: CallBounds
  requestBytes: number
}

/**
 * The outcome of a call whose maker died, estimated as `Settlement` does for a stream that breaks off, and marked as
 * `interrupted`. Its status is 0: what the caller got is not known.
 * @param textBytes of the answer, as far as it is known. @param now milliseconds since the epoch.
 */
export function interruptedOutcome(
  { record, provider, prices, bounds, requestBytes }: GovernedCall,
  textBytes: number,
  now: number,
): CallOutcome {
  const usage = estimateUsage(requestBytes, textBytes, null, bounds)
  const outcome = emptyOutcome(record, now, 0, 'interrupted')
  return {
    ...outcome,
    provider,
    usage,
    provenance: 'estimated',
    cost: costOf(usage, prices),
    flags: [...outcome.flags, 'interrupted'],
  }
}
