import { type ChainHead, linkHash } from './chain.ts'
import { type CopiedColumns, copiedColumns, type RecordBody, type StoredRecord } from './record-body.ts'

export type Verification =
  | { intact: true; head: ChainHead }
  | { intact: false; sequence: number; reason: BrokenLink; detail: string }

/**
 * How a chain can be broken: a record that is not where it has to be (deleted, inserted or moved), one that does not
 * follow the record before it, one whose body was changed, one whose copied columns were.
 */
export type BrokenLink = 'missing' | 'unlinked' | 'altered' | 'columns_differ'

/**
 * Verifies a page of one chain's rows, in order of sequence.
 * @param previous the head of the page before, or `GENESIS`.
 * @returns the head to go on from, or the first record that is broken and why.
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

function findBreak(row: StoredRecord, head: ChainHead) {
  const sequence = head.sequence + 1
  if (row.sequence !== sequence) {
    return { sequence, reason: 'missing' as const, detail: `found record ${row.sequence} in its place` }
  }
  if (row.previousHash !== head.hash) {
    return { sequence, reason: 'unlinked' as const, detail: 'does not follow the record before it' }
  }
  if (row.hash !== linkHash(row.previousHash, row.body)) {
    return { sequence, reason: 'altered' as const, detail: 'its body does not have its hash' }
  }
  const body = parseBody(row.body)
  if (body === null) return { sequence, reason: 'altered' as const, detail: 'its body is no record' }
  const column = differingColumn(row, body)
  if (column === null) return null
  return { sequence, reason: 'columns_differ' as const, detail: `${column} is not what its body says` }
}

/** Whoever can write rows can also give a body that is no record the right hash. */
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
