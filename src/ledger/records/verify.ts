import { type ChainHead, linkHash } from './chain.ts'
import {
  type CallRow,
  type CreditRow,
  callRowOf,
  creditRowOf,
  type RecordWithRows,
  type UsageRow,
  usageRowOf,
} from './extracted-rows.ts'
import { copiedColumns, parseBody, RECORD_FORM, type RecordBody, type StoredRecord } from './record-body.ts'
import { isSameRow, minuteOf, type StatedRow, statedRowsOf } from './stated-rows.ts'

type Verification = { intact: true; head: ChainHead } | ({ intact: false } & BrokenRecord)

interface BrokenRecord {
  sequence: number
  reason: BrokenLink
  detail: string
}

/**
 * The fault of a broken link: the record is not in its place (deleted, inserted or moved), does not follow the one before it, or
 * has a changed body or changed columns.
 */
type BrokenLink = 'missing' | 'unlinked' | 'altered' | 'columns_differ'

/**
 * The difference between a row of usage or credits and the record that it was taken from. `added`: the record has no such row.
 */
type BrokenRow = `${'call' | 'usage' | 'credit'}_${'missing' | 'added' | 'differs'}`

/** The difference between a row that a record states and the statement. */
type BrokenStatement = `${'checkpoint' | 'rejected_calls'}_${'missing' | 'differs'}`

/** Times before which rows may be missing, because retention removes them; null where none may. */
export interface RemovedBefore {
  calls: Date | null
  usage: Date | null
  rejectedCalls: Date | null
}

const NOTHING_REMOVED: RemovedBefore = { calls: null, usage: null, rejectedCalls: null }

/** Names columns and ids, never a value of the record. */
export interface RecordFault {
  sequence: number
  reason: BrokenLink | BrokenRow | BrokenStatement
  detail: string
}

/**
 * Verifies a page of one chain's rows, in order of sequence.
 * @param previous the head of the page before, or `GENESIS`.
 * @returns the head to continue from, or the first broken record and why.
 * @internal Campaigns and tests verify a chain without the rows taken from it.
 */
export function verifyLinks(rows: readonly StoredRecord[], previous: ChainHead): Verification {
  let head = previous
  for (const row of rows) {
    const broken = findBreak(row, head)
    if (broken) return { intact: false, ...broken }
    head = { sequence: row.sequence, hash: row.hash }
  }
  return { intact: true, head }
}

/**
 * Verifies a record, its rows of usage and credits, and the rows that it states. To find further faults, continue after a broken record as
 * if its hash were right.
 * @param head of the record before, or `GENESIS`. @param removed what retention may have removed of the other rows.
 */
export function verifyRecord(
  { record, call, usage, credits, stated }: RecordWithRows,
  head: ChainHead,
  removed: RemovedBefore = NOTHING_REMOVED,
): RecordFault[] {
  const broken = findBreak(record, head)
  const faults: RecordFault[] = broken ? [broken] : []
  // Behind a gap the record itself is still verified.
  const itself =
    broken?.reason === 'missing'
      ? findBreak(record, { sequence: record.sequence - 1, hash: record.previousHash })
      : broken
  if (itself && itself !== broken) faults.push(itself)
  // A body that was changed is no measure of the other rows.
  const body = itself?.reason === 'altered' ? null : parseBody(record.body)
  if (body === null) return faults
  const { sequence } = record
  const of = (kind: keyof typeof TABLES, id: string, stored: Row | null, expected: Row | null) => {
    const fault = compareRows(kind, id, stored, expected)
    if (fault) faults.push({ sequence, ...fault })
  }
  const mayLack = (row: Row | null, before: Date | null) => row === null && isBefore(body.at, before)
  const hasCall = call !== null || (hasCallRow(body) && !mayLack(call, removed.calls))
  if (hasCall) of('call', record.id, call, callRowOf(body))
  if (!mayLack(usage, removed.usage)) of('usage', record.id, usage, usageRowOf(body))
  const expected = creditRowOf(body)
  const own = (row: CreditRow) => row.kind === expected?.kind && row.id === expected.id
  of('credit', expected?.id ?? record.id, credits.find(own) ?? null, expected)
  for (const added of credits.filter((row) => !own(row))) of('credit', added.id, added, null)
  const differing = verifyStated(body, stated, removed.rejectedCalls)
  return [...faults, ...differing.map((fault) => ({ sequence, ...fault }))]
}

const isBefore = (at: number | string, before: Date | null): boolean =>
  before !== null && new Date(at) < before

function verifyStated(
  body: RecordBody,
  stored: readonly StatedRow[],
  removedBefore: Date | null,
): Array<Omit<RecordFault, 'sequence'>> {
  return statedRowsOf(body).flatMap((row): Array<Omit<RecordFault, 'sequence'>> => {
    const { table, name, value } = row
    const kind = table === 'audit_checkpoints' ? 'checkpoint' : 'rejected_calls'
    const found = stored.find((each) => isSameRow(each, row))
    if (!found && table === 'rejected_calls' && isBefore(minuteOf(row), removedBefore)) return []
    if (!found) return [{ reason: `${kind}_missing`, detail: `${table} has no row of ${name}` }]
    if (found.value === value) return []
    return [{ reason: `${kind}_differs`, detail: `${name} in ${table} differs from its record` }]
  })
}

/** Records of earlier versions may have no row of theirs. */
const hasCallRow = (body: RecordBody) => body.kind === 'call' && body.form === RECORD_FORM

type Row = StoredRecord | CallRow | UsageRow | CreditRow

const TABLES = { call: 'calls', usage: 'usage_events', credit: 'credit_entries' } as const

function compareRows(kind: keyof typeof TABLES, id: string, stored: Row | null, expected: Row | null) {
  const table = TABLES[kind]
  if (stored === null || expected === null) {
    if (stored === expected) return null
    return expected === null
      ? { reason: `${kind}_added` as const, detail: `${table} has a row of ${id}, its record has none` }
      : { reason: `${kind}_missing` as const, detail: `${table} has no row of ${id}` }
  }
  const columns = differingColumns(stored, expected)
  if (columns.length === 0) return null
  const verb = columns.length === 1 ? 'differs' : 'differ'
  const detail = `${columns.join(', ')} of ${id} in ${table} ${verb} from its record`
  return { reason: `${kind}_differs` as const, detail }
}

function findBreak(row: StoredRecord, head: ChainHead): BrokenRecord | null {
  const sequence = head.sequence + 1
  if (row.sequence !== sequence) {
    return { sequence, reason: 'missing', detail: `found record ${row.sequence} in its place` }
  }
  if (row.previousHash !== head.hash) {
    return { sequence, reason: 'unlinked', detail: 'does not follow the record before it' }
  }
  if (row.hash !== linkHash(row.previousHash, row.body)) {
    return { sequence, reason: 'altered', detail: 'its body does not have its hash' }
  }
  const body = parseBody(row.body)
  if (body === null) return { sequence, reason: 'altered', detail: 'its body is no record' }
  const [column] = differingColumns(row, copiedColumns(body))
  if (column === undefined) return null
  return { sequence, reason: 'columns_differ', detail: `${column} differs from its body` }
}

/** The members of the expected columns that a row has otherwise. */
function differingColumns(row: object, expected: object): string[] {
  const stored = new Map(Object.entries(row))
  return Object.entries(expected).flatMap(([name, value]) =>
    plain(stored.get(name)) === plain(value) ? [] : [name],
  )
}

function plain(value: unknown): unknown {
  if (value instanceof Date) return value.getTime()
  return Array.isArray(value) ? JSON.stringify(value) : (value ?? null)
}
