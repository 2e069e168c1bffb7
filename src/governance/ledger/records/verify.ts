import { type ChainHead, linkHash } from './chain.ts'
import { type CopiedColumns, copiedColumns, type RecordBody, type StoredRecord } from './record-body.ts'

type Verification = { intact: true; head: ChainHead } | ({ intact: false } & BrokenRecord)

interface BrokenRecord {
  sequence: number
  reason: BrokenLink
  detail: string
}

/**
 * How a chain is broken: a record is not in its place (deleted, inserted or moved), does not follow the one before it, or
 * has a changed body or changed columns.
 */
export type BrokenLink = 'missing' | 'unlinked' | 'altered' | 'columns_differ'

/**
 * Verifies a page of one chain's rows, in order of sequence.
 * @param previous the head of the page before, or `GENESIS`.
 * @returns the head to continue from, or the first broken record and why.
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
  const column = differingColumn(row, body)
  if (column === null) return null
  return { sequence, reason: 'columns_differ', detail: `${column} is not what its body says` }
}

/** @returns null for a body that is no record: with write access, one with a fitting hash can be stored. */
function parseBody(text: string): RecordBody | null {
  try {
    const body: Partial<RecordBody> | null = JSON.parse(text)
    return typeof body?.actor === 'object' && body.actor !== null ? (body as RecordBody) : null
  } catch {
    return null
  }
}

function differingColumn(row: StoredRecord, body: RecordBody): string | null {
  const expected = copiedColumns(body)
  for (const name of Object.keys(expected) as Array<keyof CopiedColumns>) {
    if (plain(row[name]) !== plain(expected[name])) return name
  }
  return null
}

const plain = (value: CopiedColumns[keyof CopiedColumns]) => (value instanceof Date ? value.getTime() : value)
