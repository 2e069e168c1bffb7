import * as z from 'zod'
import { canonicalJson } from '../../lib/canonical-json.ts'
import { currentKey, hmacSha256Hex, type KeyRing, secretsEqual } from '../../lib/crypto.ts'
import type { RemovedBefore } from '../records/verify.ts'

/**
 * Statements about what retention has removed. Each is under a MAC of a key pepper, as checkpoints are: with write access to the
 * database alone, nobody can remove records and state that retention did.
 */

const instant = z.iso.datetime()

const statement = z.discriminatedUnion('kind', [
  z.object({
    kind: z.literal('records'),
    organizationId: z.string(),
    shard: z.int(),
    /** The last record that may be missing, with its hash; that of `GENESIS` if there is none. */
    sequence: z.int().nonnegative(),
    hash: z.string(),
    /** The records up to it are older than this. Rows of lists of calls that are older may be missing. */
    before: instant,
    /** Movements of credits of the records up to it: their rows stay, and nothing else vouches for them. */
    entries: z.int().nonnegative(),
    /** Micro-credits, with their sign. */
    amount: z.int(),
  }),
  z.object({
    kind: z.enum(['usage', 'rejected_calls']),
    organizationId: z.string(),
    shard: z.literal(0),
    /** Rows that are older than this may be missing. */
    before: instant,
  }),
])

export type Pruning = z.infer<typeof statement>
export type RecordsPruning = Extract<Pruning, { kind: 'records' }>

/** A row of `prunings`. */
export interface SignedPruning {
  organizationId: string
  kind: Pruning['kind']
  shard: number
  statement: string
  pepperId: string
  mac: string
}

const signedText = (text: string) => `audit-pruning\n${text}`

/** Puts a statement under a MAC of the current key pepper. */
export function signPruning(peppers: KeyRing, pruning: Pruning): SignedPruning {
  const { id: pepperId, key } = currentKey(peppers)
  const text = canonicalJson(pruning)
  const { organizationId, kind, shard } = pruning
  return { organizationId, kind, shard, statement: text, pepperId, mac: hmacSha256Hex(key, signedText(text)) }
}

/** @returns the statement of a row; why it does not count, if its MAC is wrong or it is another row's. */
export function verifyPruning(
  peppers: KeyRing,
  row: SignedPruning,
): { pruning: Pruning } | { fault: string } {
  const key = peppers.get(row.pepperId)
  if (!key) return { fault: `the pepper ${row.pepperId} of its statement is not configured` }
  if (!secretsEqual(row.mac, hmacSha256Hex(key, signedText(row.statement)))) {
    return { fault: 'the MAC of its statement is wrong' }
  }
  const pruning = statement.parse(JSON.parse(row.statement))
  const isOfRow =
    pruning.organizationId === row.organizationId && pruning.kind === row.kind && pruning.shard === row.shard
  return isOfRow ? { pruning } : { fault: 'its statement is of another chain' }
}

/** What of an organization may be missing, by its statements. */
export interface PrunedParts {
  /** By shard. */
  records: Map<number, RecordsPruning>
  usageBefore: Date | null
  rejectedCallsBefore: Date | null
  /** Statements that do not count; for another kind than `records` with shard 0. */
  faults: Array<{ shard: number; detail: string }>
}

export function prunedParts(peppers: KeyRing, rows: readonly SignedPruning[]): PrunedParts {
  const parts: PrunedParts = {
    records: new Map(),
    usageBefore: null,
    rejectedCallsBefore: null,
    faults: [],
  }
  for (const row of rows) {
    const verified = verifyPruning(peppers, row)
    if ('fault' in verified) {
      parts.faults.push({ shard: row.shard, detail: `pruned ${row.kind}: ${verified.fault}` })
      continue
    }
    const { pruning } = verified
    if (pruning.kind === 'records') parts.records.set(pruning.shard, pruning)
    else if (pruning.kind === 'usage') parts.usageBefore = new Date(pruning.before)
    else parts.rejectedCallsBefore = new Date(pruning.before)
  }
  return parts
}

/** What may be missing, as an export states it. */
export interface PrunedRows {
  records: Array<{ shard: number; sequence: number; hash: string; before: string }>
  usage_before: string | null
  rejected_calls_before: string | null
}

export const prunedRows = ({ records, usageBefore, rejectedCallsBefore }: PrunedParts): PrunedRows => ({
  records: [...records.values()].map(({ shard, sequence, hash, before }) => ({
    shard,
    sequence,
    hash,
    before,
  })),
  usage_before: usageBefore?.toISOString() ?? null,
  rejected_calls_before: rejectedCallsBefore?.toISOString() ?? null,
})

/** The times for `verifyRecord`, of a chain. */
export const removedBefore = (
  { records, usageBefore, rejectedCallsBefore }: PrunedParts,
  shard: number,
): RemovedBefore => {
  const pruned = records.get(shard)
  return {
    calls: pruned ? new Date(pruned.before) : null,
    usage: usageBefore,
    rejectedCalls: rejectedCallsBefore,
  }
}
