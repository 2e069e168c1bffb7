import type { Admission, AdmissionRefusal } from '../contract.ts'
import type { LearnedEpochs } from '../epochs/known-epochs.ts'

/**
 * A commit: the content of one round trip from an isolate to a ledger object. It has calls to admit, and outcomes of
 * calls that ended. Columns instead of rows, because arrays of plain values cost a fraction of arrays of objects in an
 * RPC message. Texts are members of JSON objects without the braces (`openingText`, `outcomeText`), as in the audit
 * record.
 */
export interface CommitBatch {
  calls: CallColumns
  closings: ClosingColumns
  /** The highest epochs that calls of this batch read from Postgres. */
  learned: LearnedEpochs | null
}

export interface CallColumns {
  ids: string[]
  openings: string[]
  /** Micro-credits. */
  reserves: number[]
  /** Milliseconds. */
  leases: number[]
  /** `CallProgress` as JSON. */
  estimates: Array<string | null>
  /** 0: not checked. */
  organizationEpochs: number[]
  /** 0: the call does not use the catalogue. */
  catalogueEpochs: number[]
  /** The catalogue's epoch was read from Postgres for this very call. */
  catalogueIsFresh: boolean[]
  /** Empty: the call is not counted. */
  userIds: string[]
  organizationLimits: number[]
  shards: number[]
  userLimits: number[]
  /** Null: the call stays open. Otherwise it is recorded as ended, and needs no credits. */
  outcomes: Array<string | null>
  costs: number[]
}

export interface ClosingColumns {
  ids: string[]
  outcomes: string[]
  costs: number[]
}

/** The result of a batch. Entries that are not named were admitted, or are settled. */
export interface CommitAnswer {
  refused: Array<[index: number, verdict: AdmissionRefusal | InvalidEntry]>
  unsettled: Array<[index: number, verdict: InvalidEntry]>
  /** Absent if no call of the batch was counted. */
  rateLimits?: RateLimitColumns
}

/** The `RateLimit` of each call of a batch. */
export interface RateLimitColumns {
  /** 0: the call was refused, or is not counted. */
  limits: number[]
  remaining: number[]
  resetsAt: number
}

/** The admission of a call of a batch; null where the call is not counted. */
export function admissionOf(
  { limits, remaining, resetsAt }: RateLimitColumns,
  index: number,
): Admission | null {
  const limit = limits[index] ?? 0
  if (limit === 0) return null
  return { kind: 'admitted', rateLimit: { limit, remaining: Math.max(0, remaining[index] ?? 0), resetsAt } }
}

/** An entry that cannot be stored. It does not affect the others of its batch. */
export interface InvalidEntry {
  kind: 'invalid'
  message: string
}

export const emptyCalls = (): CallColumns => ({
  ids: [],
  openings: [],
  reserves: [],
  leases: [],
  estimates: [],
  organizationEpochs: [],
  catalogueEpochs: [],
  catalogueIsFresh: [],
  userIds: [],
  organizationLimits: [],
  shards: [],
  userLimits: [],
  outcomes: [],
  costs: [],
})

export const emptyClosings = (): ClosingColumns => ({ ids: [], outcomes: [], costs: [] })

export const emptyRateLimits = (calls: number, resetsAt: number): RateLimitColumns => ({
  limits: Array(calls).fill(0),
  remaining: Array(calls).fill(0),
  resetsAt,
})
