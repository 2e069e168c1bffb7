import * as z from 'zod'
import { line, pageParameters, period } from './management-fields.ts'
import { viewCursorParameter } from './page-cursor.ts'

/** Calls, as lists and charts of the management API have them. */

/** How a call ended: `blocked` by a policy, `cancelled` by its caller. */
export const OUTCOMES = ['ok', 'cancelled', 'refused', 'blocked', 'failed'] as const
export type Outcome = (typeof OUTCOMES)[number]

/** @param status of the answer; 0 where it is unknown. @param errorCode also of a stream that failed after its status. */
export function outcomeOf({ status, errorCode }: { status: number; errorCode: string | null }): Outcome {
  if (errorCode?.startsWith('dlp_')) return 'blocked'
  if (status === 499) return 'cancelled'
  if (status >= 400 && status < 500) return 'refused'
  return status > 0 && status < 400 && errorCode === null ? 'ok' : 'failed'
}

const amount = z.coerce.number('must be a number').int().min(0).max(Number.MAX_SAFE_INTEGER)

/** Filters of calls. All that are given have to fit. */
const rowFilters = {
  request_id: line(500).optional(),
  response_id: line(200).optional(),
  run_id: line(200).optional(),
  user_id: line(100).optional(),
  key_id: line(100).optional(),
  model: line(500).optional(),
  provider: line(200).optional(),
  surface: line(50).optional(),
  tool: line(500).optional(),
  connection_id: line(200).optional(),
  outcome: z.enum(OUTCOMES).optional(),
  status: z.coerce.number('must be a number').int().min(0).max(999).optional(),
  error: line(500).optional(),
  /** A detector, or `any`. */
  found: line(100).optional(),
  /** A flag, or `any`. */
  flag: line(100).optional(),
  cost_min: amount.optional(),
  cost_max: amount.optional(),
  duration_min: amount.optional(),
  duration_max: amount.optional(),
}

const filters = {
  ...rowFilters,
  /** Users that are in the group now. */
  group_id: line(100).optional(),
}

export const callListQuery = z.strictObject({
  ...pageParameters,
  cursor: viewCursorParameter.optional(),
  ...period,
  ...filters,
})

const MOST_BUCKETS = 120

export const callHistogramQuery = z.strictObject({
  ...period,
  ...filters,
  buckets: z.coerce.number('must be a number').int().min(1).max(MOST_BUCKETS).default(60),
})

/** The id of an event of live calls: for each shard of the ledger the last commit that was read, such as `0.12_1.7`; empty for the beginning. */
export const TAIL_POSITION = /^(\d{1,2}\.\d{1,15}(_\d{1,2}\.\d{1,15}){0,15})?$/

const LONGEST_TAIL_SECONDS = 600

export const callTailQuery = z.strictObject({
  ...filters,
  /** The id of the last event that was read; `Last-Event-ID` wins. */
  after: z.string().regex(TAIL_POSITION, 'is not the id of an event').optional(),
  /** Time after which the stream ends; with 0 it has what there is now. Ten minutes where left out. */
  seconds: z.coerce
    .number('must be a number')
    .int()
    .min(0)
    .max(LONGEST_TAIL_SECONDS)
    .default(LONGEST_TAIL_SECONDS),
})

export type CallTailQuery = z.infer<typeof callTailQuery>
export type CallTailFilter = Omit<CallTailQuery, 'after' | 'seconds'>
export type CallFilter = Omit<z.infer<typeof callListQuery>, 'limit' | 'cursor'>
