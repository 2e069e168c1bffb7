import { type ChangeScope, recordView } from '../ledger/changes/audited-change.ts'
import type { CallRow } from '../ledger/records/extracted-rows.ts'
import {
  type CountedCalls,
  countCalls,
  type DividedPeriod,
  selectCall,
  selectCallRecord,
  selectCalls,
} from '../ledger/records/read-calls.store.ts'
import type { AuditRecordRow } from '../ledger/records/read-records.store.ts'
import { notFound, unprocessable } from '../lib/api-error.ts'
import { type CallFilter, OUTCOMES, type Outcome } from '../wire/calls.ts'
import type { Page, PageRequest } from '../wire/page-cursor.ts'
import { readInView } from './begun-view.ts'

const DAY_MS = 24 * 60 * 60_000
const LONGEST_PERIOD_MS = 366 * DAY_MS

/**
 * Calls, newest first. That an operator of another organization reads them is a view in the audit trail, as of audit records.
 * @throws ApiError `internal` when the view cannot be recorded.
 */
export function listCalls(scope: ChangeScope, filter: CallFilter, page: PageRequest): Promise<Page<CallRow>> {
  const read = () => selectCalls(scope, filter, page)
  return scope.operatorOf
    ? readInView(scope, { action: 'calls.viewed', list: 'calls', filter }, page, read)
    : read()
}

/**
 * A call with its record.
 * @param own the user whose calls are in reach; null for all. @throws ApiError `not_found` for any other call; `internal` when the view
 * of the call of somebody else cannot be recorded.
 */
export async function viewCall(
  scope: ChangeScope,
  callId: string,
  own: string | null,
): Promise<{ call: CallRow; record: AuditRecordRow }> {
  const call = await selectCall(scope, callId, own ?? undefined)
  const record = call && (await selectCallRecord(scope, call))
  if (call === null || record === null) throw notFound('Call', callId)
  if (call.userId === null || call.userId !== scope.actor.userId) {
    const detail = { user_id: call.userId }
    await recordView(scope, { action: 'call.viewed', resource: `calls/${callId}`, detail })
  }
  return { call, record }
}

type Part = Record<Outcome | 'cost', number>

interface Histogram extends DividedPeriod, Pick<CountedCalls, 'firstEvent'> {
  /** Counts and micro-credits of each part, in order. */
  parts: Part[]
  /** When the counts begin to be whole. */
  completeFrom: Date
}

/**
 * Counts calls by time and outcome, over the last day where no period is given.
 * @throws ApiError `unprocessable` for a period that ends before it begins, or is longer than a year.
 */
export async function callHistogram(
  scope: ChangeScope,
  { from: begin, to: end, ...filter }: CallFilter,
  buckets: number,
): Promise<Histogram> {
  const to = end ?? new Date(scope.clock())
  const from = begin ?? new Date(to.getTime() - DAY_MS)
  const length = to.getTime() - from.getTime()
  if (length <= 0) throw unprocessable('from: must be before to')
  if (length > LONGEST_PERIOD_MS) throw unprocessable('from: must be within a year of to')
  const period = { from, to, bucketMilliseconds: Math.ceil(length / buckets) }
  const { counts, countedFrom, firstEvent } = await countCalls(scope, filter, period)
  const none = () => Object.fromEntries([...OUTCOMES, 'cost'].map((name) => [name, 0])) as Part
  const parts = Array.from({ length: Math.ceil(length / period.bucketMilliseconds) }, none)
  for (const { bucket, outcome, count, cost } of counts) {
    const part = parts[bucket]
    if (!part) continue
    part[outcome] += count
    part.cost += cost
  }
  return { ...period, parts, firstEvent, completeFrom: countedFrom ?? from }
}
