import type { AuditedChange, CallOpening, CallOutcome, Usage } from './audit-record.ts'
import type { LearnedEpochs } from './epochs/known-epochs.ts'
import type { HeldChain } from './records/chain.ts'
import type { Reflush, Reflushed } from './records/chain-writer.ts'
import type { TailAnswer, TailRequest } from './tail/tail.ts'

/**
 * The ledger of one organization, as an isolate uses it: admission of calls (limits, epochs, credits), their settlement,
 * and the audit outbox. Every answer is stored before it is sent.
 */
export interface LedgerClient {
  /**
   * Opens the call, or refuses it, in a commit with other calls of the isolate.
   * @throws if it cannot be stored: refuse the call; `SETTLED_CALL` for one with the id of a call that was settled.
   */
  admit(call: CallToAdmit): Promise<Admission>
  /** Whether a call would pass the epochs and the limits now. Counts nothing and opens nothing. */
  check(call: Pick<CallToAdmit, 'epochs' | 'learned' | 'limits'>): Promise<Admission>
  /**
   * Settles an open call and appends its audit record. A second close, or one after the lease ran out, changes nothing.
   * Sent with the next commit of the isolate, or some milliseconds later by itself. Resolves when it is stored.
   */
  close(callId: string, outcome: CallOutcome): Promise<void>
  /** Renews the lease of a running call; `progress` is settled if the call is never closed. */
  extend(callId: string, leaseMilliseconds: number, progress: CallProgress | null): Promise<{ open: boolean }>
  /**
   * Opens and closes a call in one step: one that was refused or that costs nothing. Idempotent by call id. Uncounted
   * refusals of a key that repeat within a minute get one record together, some seconds later.
   * @param counted if given, the call is checked and counted like any other, and only recorded if it is admitted.
   */
  record(
    opening: CallOpening,
    outcome: CallOutcome,
    counted?: Pick<CallToAdmit, 'epochs' | 'learned' | 'limits'>,
  ): Promise<Admission>
  /** Appends the record of an administrative change. Idempotent by id. */
  recordChange(change: AuditedChange): Promise<void>
  /** Adds to the balance, or takes away when negative. Idempotent by `id`. @throws `OTHER_GRANT`. */
  grantCredits(grant: CreditGrant): Promise<CreditBalance>
  balance(): Promise<CreditBalance>
  /** Writes what is pending to Postgres now. */
  flush(): Promise<Flushed>
  /** Makes pending again what Postgres has lost, in one shard or all. */
  reflush(request: Omit<Reflush, 'announced'>): Promise<Reflushed[]>
  /** The chains that the ledger's objects hold, by shard. Begins no account: an object that has none is left out. */
  chains(): Promise<HeldChain[]>
  /** The calls of a shard since a commit, in the shard of this client. @returns null where the organization has many readers. */
  tail(request: TailRequest): Promise<TailAnswer | null>
  /** After a change of rights is stored in Postgres: no call admitted after this resolves runs under an older epoch. */
  learnEpoch(organizationEpoch: number): Promise<void>
  /** Announces a new epoch of the catalogue. The deployment's ledger sends it to every registered ledger. */
  announceCatalogue(catalogueEpoch: number): Promise<void>
}

/** A call before its admission. */
export interface CallToAdmit {
  opening: CallOpening
  /** Micro-credits; 0 for calls that cost nothing. */
  reserve: number
  /** The alarm settles the call after this time without `close` or `extend`. */
  leaseMilliseconds: number
  /** Settled, marked as estimated, when the lease runs out without reported progress; null: all of `reserve`. */
  estimate: CallProgress | null
  /** The epochs at which the caller's rights and the catalogue were read. `catalogue` is null if the call does not use it. */
  epochs: { organization: number; catalogue: number | null }
  /** Epochs read from Postgres for this call, after the ledger called its rights stale. The ledger takes them over. */
  learned: LearnedEpochs | null
  /** Calls a minute; null: not counted (a further turn of a response). */
  limits: CallLimits | null
}

export interface CallLimits {
  userId: string
  organizationPerMinute: number
  userPerMinute: number
  /** Shards of the organization's ledger; one when left out. */
  shards?: number
}

/** `rateLimit` is absent for a call that is not counted, and for one that is only checked. */
export type Admission = { kind: 'admitted'; rateLimit?: RateLimit } | AdmissionRefusal

/** The limit of the caller that has the least room, the user's or the organization's, after a call was counted. */
export interface RateLimit {
  /** Calls a minute. */
  limit: number
  remaining: number
  /** When the current window ends, in milliseconds since the epoch. */
  resetsAt: number
}

export type AdmissionRefusal =
  | { kind: 'no_credits'; available: number; required: number }
  /** @see retryAfterSeconds: whole, at least 1. */
  | { kind: 'limited'; scope: 'organization' | 'user'; retryAfterSeconds: number }
  /** Rights or catalogue were read at another epoch. The current ones; null for one that the ledger does not have. */
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

/** Message of the RangeError for a settled call that is opened again: an error from an object keeps only its message. */
export const SETTLED_CALL = 'a call with this id was settled'

/** Message of the RangeError for a repeated grant with another amount. */
export const OTHER_GRANT = 'this grant was made with another amount'

/** Micro-credits. `available` = `balance` - `reserved`. */
export interface CreditBalance {
  balance: number
  reserved: number
  available: number
}

/** Number of records still pending after a flush, because Postgres is away or refuses a record. */
export interface Flushed {
  /** Records or counts. */
  pending: number
  /** When the oldest pending record was appended (ISO 8601); absent when none is pending. */
  since?: string
}

/**
 * The ledger of an organization. @param shard that has the calls which are admitted, closed, extended and recorded
 * (`shardOf`; undefined for calls stored before there were shards). Everything else concerns all shards.
 */
export type LedgerOf = (organizationId: string, shard: number | undefined) => LedgerClient
