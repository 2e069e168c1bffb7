import type { CallOpening, CallOutcome } from '../audit-record.ts'
import type { CallToAdmit } from '../contract.ts'
import type { LearnedEpochs } from '../epochs/known-epochs.ts'
import { openingText, outcomeText } from '../records/record-body.ts'
import { checkAmount, checkOpening, checkOutcome, checkProgress } from '../records/record-checks.ts'
import { type CallColumns, type CommitBatch, emptyCalls, emptyClosings } from './commit.ts'

/** An entry of a batch, in the form of an isolate's queue. */
export type CommitEntry = CallEntry | ClosingEntry

export interface CallEntry {
  /** `record`: opened and closed in one step. */
  kind: 'call' | 'record'
  id: string
  opening: string
  reserve: number
  lease: number
  estimate: string | null
  checks: Checks
  outcome: string | null
  cost: number
  /** Characters. */
  size: number
}

export interface ClosingEntry {
  kind: 'closing'
  id: string
  outcome: string
  cost: number
  size: number
}

type Checks = Pick<CallToAdmit, 'learned' | 'limits'> & {
  /** Null: epochs are not checked. */
  epochs: CallToAdmit['epochs'] | null
}

/** Characters of the other members of a call's record, about. */
const SMALL_MEMBERS = 500

const sizeOf = (...texts: Array<string | null>): number =>
  texts.reduce((sum, text) => sum + (text?.length ?? 0), SMALL_MEMBERS)

/** @throws RangeError for figures that cannot be stored. */
export function callEntry(organizationId: string, call: CallToAdmit): CallEntry {
  const { opening, reserve, leaseMilliseconds: lease } = call
  checkOpening(opening, organizationId)
  checkAmount('reserve', reserve)
  checkAmount('lease', lease)
  if (call.estimate) checkProgress(call.estimate)
  const text = openingText(opening)
  const estimate = call.estimate && JSON.stringify(call.estimate)
  const size = sizeOf(text, estimate)
  return {
    kind: 'call',
    id: opening.callId,
    opening: text,
    reserve,
    lease,
    estimate,
    checks: call,
    outcome: null,
    cost: 0,
    size,
  }
}

/** @throws RangeError for figures that cannot be stored. */
export function recordEntry(
  organizationId: string,
  opening: CallOpening,
  outcome: CallOutcome,
  counted: Checks = { epochs: null, learned: null, limits: null },
): CallEntry {
  checkOpening(opening, organizationId)
  checkOutcome(outcome)
  const { cost } = outcome
  const [text, end] = [openingText(opening), outcomeText(outcome)]
  const nothing = { reserve: 0, lease: 0, estimate: null }
  const size = sizeOf(text, end)
  return {
    kind: 'record',
    id: opening.callId,
    opening: text,
    ...nothing,
    checks: counted,
    outcome: end,
    cost,
    size,
  }
}

/** @throws RangeError for figures that cannot be stored. */
export function closingEntry(id: string, outcome: CallOutcome): ClosingEntry {
  checkOutcome(outcome)
  const text = outcomeText(outcome)
  return { kind: 'closing', id, outcome: text, cost: outcome.cost, size: sizeOf(text) }
}

/** Puts entries into columns. @returns also the items of both kinds, in the order of their columns. */
export function batchOf<Item>(
  items: readonly Item[],
  entryOf: (item: Item) => CommitEntry,
): { batch: CommitBatch; calls: Item[]; closings: Item[] } {
  const batch: CommitBatch = { calls: emptyCalls(), closings: emptyClosings(), learned: null }
  const calls: Item[] = []
  const closings: Item[] = []
  for (const item of items) {
    const entry = entryOf(item)
    if (entry.kind === 'closing') {
      closings.push(item)
      batch.closings.ids.push(entry.id)
      batch.closings.outcomes.push(entry.outcome)
      batch.closings.costs.push(entry.cost)
    } else {
      calls.push(item)
      pushCall(batch.calls, entry)
      batch.learned = highest(batch.learned, entry.checks.learned)
    }
  }
  return { batch, calls, closings }
}

function pushCall(columns: CallColumns, entry: CallEntry): void {
  columns.ids.push(entry.id)
  columns.openings.push(entry.opening)
  columns.reserves.push(entry.reserve)
  columns.leases.push(entry.lease)
  columns.estimates.push(entry.estimate)
  columns.outcomes.push(entry.outcome)
  columns.costs.push(entry.cost)
  pushChecks(columns, entry.checks)
}

function pushChecks(columns: CallColumns, { epochs, learned, limits }: Checks): void {
  columns.organizationEpochs.push(epochs?.organization ?? 0)
  columns.catalogueEpochs.push(epochs?.catalogue ?? 0)
  columns.catalogueIsFresh.push(
    learned !== null && learned.catalogue !== null && learned.catalogue === epochs?.catalogue,
  )
  columns.userIds.push(limits?.userId ?? '')
  columns.organizationLimits.push(limits?.organizationPerMinute ?? 0)
  columns.shards.push(limits?.shards ?? 1)
  columns.userLimits.push(limits?.userPerMinute ?? 0)
}

/** The columns of one call that is only checked. */
export function checkColumns(checks: Checks): CallColumns {
  const columns = emptyCalls()
  pushChecks(columns, checks)
  return columns
}

function highest(left: LearnedEpochs | null, right: LearnedEpochs | null): LearnedEpochs | null {
  if (left === null || right === null) return left ?? right
  return {
    organization: higher(left.organization, right.organization),
    catalogue: higher(left.catalogue, right.catalogue),
  }
}

const higher = (left: number | null, right: number | null): number | null =>
  left === null || right === null ? (left ?? right) : Math.max(left, right)
