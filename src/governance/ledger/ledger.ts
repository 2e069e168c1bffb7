import type { AuditedChange, CallOpening, CallOutcome } from '../audit-record.ts'
import type { Usage } from '../credits.ts'

/**
 * The ledger of one organization, as an isolate reaches it: the audit outbox, the live credit balance, the limits and the
 * revocation epoch (design: Governance, 3a). What a method resolved with is stored.
 */
export interface Ledger {
  /** Admits a call and opens it, or says why not. @throws if it cannot be stored: the call is refused then. */
  admit(call: CallToAdmit): Promise<Admission>
  /** Whether a call would be admitted, as far as its epochs and limits tell. Opens and counts nothing. */
  check(call: Pick<CallToAdmit, 'epochs' | 'learned' | 'limits'>): Promise<Admission>
  /** Settles an open call and appends its audit record. A second close, or one after the lease ran out, changes nothing. */
  close(callId: string, outcome: CallOutcome): Promise<void>
  /** Renews the lease of a long stream; `progress` is settled if the close never comes. */
  extend(callId: string, leaseMilliseconds: number, progress: CallProgress | null): Promise<{ open: boolean }>
  /**
   * Opens and closes in one: appends the record of a call that was refused before it was admitted. Idempotent by call id.
   * @param counted counts it like any call; it may be `limited` or `stale` then, and nothing is recorded.
   */
  record(
    opening: CallOpening,
    outcome: CallOutcome,
    counted?: Pick<CallToAdmit, 'epochs' | 'learned' | 'limits'>,
  ): Promise<Admission>
  /** Appends the record of an administrative change. Idempotent by id. */
  recordChange(change: AuditedChange): Promise<void>
  /** Adds to the balance (or takes away, when negative). Idempotent by `id`. @throws `OTHER_GRANT`. */
  grantCredits(grant: CreditGrant): Promise<CreditBalance>
  balance(): Promise<CreditBalance>
  /** Writes what is pending to Postgres now. */
  flush(): Promise<Flushed>
}

/** One call that asks to be admitted. */
export interface CallToAdmit {
  opening: CallOpening
  /** Micro-credits; 0 for calls that cost nothing. */
  reserve: number
  /** After this time without close or extend, the alarm settles the call. */
  leaseMilliseconds: number
  /** What is settled, marked as estimated, when the lease runs out and no progress was reported; null: all of `reserve`. */
  estimate: CallProgress | null
  epochs: ReadEpochs
  /** Epochs that Postgres told after a `stale` answer; the ledger takes them over. */
  learned: ReadEpochs | null
  limits: CallLimits | null
}

/** The epochs at which the rights of a caller and the catalogue were read; null: the call does not use the catalogue. */
export interface ReadEpochs {
  organization: number
  catalogue: number | null
}

/** Calls a minute. */
export interface CallLimits {
  userId: string
  organizationPerMinute: number
  userPerMinute: number
}

export type Admission =
  | { kind: 'admitted' }
  | { kind: 'no_credits'; available: number; required: number }
  | { kind: 'limited'; scope: 'organization' | 'user'; retryAfterSeconds: number }
  /** Read at another epoch than the current one, or the ledger does not know that (null). Nothing was opened or counted. */
  | { kind: 'stale'; organization: number | null; catalogue: number | null }

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
