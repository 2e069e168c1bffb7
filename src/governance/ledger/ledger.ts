import type { AuditedChange, CallOpening, CallOutcome } from '../audit-record.ts'
import type { Usage } from '../credits.ts'

/**
 * The ledger of one organization: the audit outbox and the live credit balance (design: Governance).
 * Every method is one round trip to a Durable Object whose storage has the effect before it answers.
 */
export interface Ledger {
  /** Records the call and reserves `reserve` micro-credits, or refuses. @throws if it cannot be stored: refuse the call. */
  open(call: OpenCall): Promise<OpenResult>
  /** Settles an open call and appends its audit record. A second close, or one after the lease ran out, changes nothing. */
  close(callId: string, outcome: CallOutcome): Promise<{ closed: boolean }>
  /** Renews the lease of a long stream; `progress` is settled if the close never comes. */
  extend(callId: string, leaseMilliseconds: number, progress: CallProgress | null): Promise<{ open: boolean }>
  /** Appends the record of a call that was refused or free of charge, in one step. Idempotent by call id. */
  record(opening: CallOpening, outcome: CallOutcome): Promise<void>
  /** Appends the record of an administrative change. Idempotent by id. */
  recordChange(change: AuditedChange): Promise<void>
  /** Adds to the balance (or takes away, when negative). Idempotent by `id`. @throws `OTHER_GRANT`. */
  grantCredits(grant: CreditGrant): Promise<CreditBalance>
  balance(): Promise<CreditBalance>
  /** Writes what is pending to Postgres now. */
  flush(): Promise<Flushed>
}

export interface OpenCall {
  opening: CallOpening
  /** Micro-credits; 0 for calls that cost nothing. */
  reserve: number
  /** After this time without close or extend, the alarm settles the call. */
  leaseMilliseconds: number
  /** What is settled, marked as estimated, when the lease runs out and no progress was reported; null or none: all of `reserve`. */
  estimate?: CallProgress | null
}

export type OpenResult =
  | { admitted: true }
  | { admitted: false; reason: 'no_credits'; available: number; required: number }

export interface CallProgress {
  provider: string
  usage: Usage
  cost: number
}

export interface CreditGrant {
  id: string
  amount: number
  reason: string
  change: AuditedChange
}

/** Message of the RangeError for a grant whose id stands for another amount; of an object's errors only this arrives whole. */
export const OTHER_GRANT = 'this grant was made with another amount'

/** Micro-credits. `available` = `balance` - `reserved`. */
export interface CreditBalance {
  balance: number
  reserved: number
  available: number
}

/** What a flush left behind, because Postgres is away or refuses a record. */
export interface Flushed {
  /** Records, or counts, that wait. */
  pending: number
  /** When the oldest record that waits was appended (ISO 8601); absent when none does. */
  since?: string
}

/** Finds the ledger of an organization. */
export type LedgerOf = (organizationId: string) => Ledger
