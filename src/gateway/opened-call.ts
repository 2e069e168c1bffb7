import { costOf, type Prices, type Usage } from '../governance/credits.ts'
import type { LedgerOf } from '../governance/ledger/ledger.ts'
import type { Clock } from '../lib/clock.ts'
import { type CallRecord, emptyOutcome } from './call-record.ts'
import { type CallBounds, estimateUsage } from './metering.ts'

/** A call that the ledger holds open, as plain data: what is needed to end it when whoever made it is gone. */
export interface OpenedCall {
  record: CallRecord
  organizationId: string
  /** Whose route is tried first. */
  provider: string | null
  prices: Prices
  bounds: CallBounds
  requestBytes: number
}

/**
 * What a call is charged for whose maker died, estimated as `Settlement` does for a stream that breaks off.
 * @param textBytes of the answer, as far as it is known.
 */
export function interruptedUsage({ requestBytes, bounds }: OpenedCall, textBytes: number): Usage {
  return estimateUsage(requestBytes, textBytes, null, bounds)
}

/**
 * Closes such a call in the ledger, marked as `interrupted` and as an estimate. Of one that was settled before, by its
 * maker or because its lease ran out, nothing changes.
 * @param usage of `interruptedUsage`. @throws when the ledger is away; it may be tried again.
 */
export async function closeInterrupted(
  deps: { clock: Clock; ledgerOf: LedgerOf },
  { record, organizationId, provider, prices }: OpenedCall,
  usage: Usage,
): Promise<void> {
  // Its status is 0: nobody knows what the caller got.
  const outcome = emptyOutcome(record, deps.clock(), 0, 'interrupted')
  await deps.ledgerOf(organizationId).close(record.callId, {
    ...outcome,
    provider,
    usage,
    provenance: 'estimated',
    cost: costOf(usage, prices),
    flags: [...outcome.flags, 'interrupted'],
  })
}
