import type { Database } from '../../schema/database.ts'
import type { ChangeScope } from '../ledger/changes/audited-change.ts'
import {
  readChainPage,
  readHashes,
  readStoredChains,
  type StoredChain,
} from '../ledger/records/chain.store.ts'
import { type ChainHead, type ChainIdentity, GENESIS, type LedgerChain } from '../ledger/records/chain.ts'
import { type Attested, attest } from '../ledger/records/checkpoint.ts'
import { withExtractedRows } from '../ledger/records/extracted-rows.store.ts'
import { expectedHeads, findUnknown, type HeadFault, verifyHead } from '../ledger/records/ledger-heads.ts'
import { type RecordFault, verifyRecord } from '../ledger/records/verify.ts'
import {
  type PrunedParts,
  type PrunedRows,
  prunedParts,
  prunedRows,
  type RecordsPruning,
  removedBefore,
  type SignedPruning,
} from '../ledger/retention/pruning.ts'
import { selectPrunings, sumPrunedCredits } from '../ledger/retention/prunings.store.ts'
import { HOME_SHARD } from '../ledger/shards/shards.ts'
import { ApiError } from '../lib/api-error.ts'

/** A sweep may state more removals during the second verification as well. */
const MOST_VERIFICATIONS = 3

/**
 * Verifies by what retention has stated. Rows that a sweep removes between two reads look like faults, so the statements are read again
 * where faults were found: retention states a removal before it removes anything, so faults under unchanged statements are real.
 */
async function verifyBesideSweeps<Result extends { faults: readonly unknown[] }>(
  { database, pepperRing }: ChangeScope,
  organizationId: string,
  verify: (parts: PrunedParts) => Promise<Result>,
): Promise<Result> {
  let stated = await selectPrunings(database, [organizationId])
  for (let verifications = 1; ; verifications += 1) {
    const result = await verify(prunedParts(pepperRing, stated))
    if (result.faults.length === 0 || verifications === MOST_VERIFICATIONS) return result
    const current = await selectPrunings(database, [organizationId])
    if (statementsOf(current) === statementsOf(stated)) return result
    stated = current
  }
}

/** What two reads of the statements have in common if nothing was stated in between. */
const statementsOf = (rows: readonly SignedPruning[]): string =>
  rows
    .map(({ mac }) => mac)
    .sort()
    .join()

/** The result of verifying one page of a chain. It contains no content of records, so reading it is not recorded as a view. */
interface VerifiedRange {
  /** The records after `afterSequence` up to `toSequence` were verified; both are equal when there were none. */
  afterSequence: number
  toSequence: number
  /** The last record that retention may have removed, by its signed statement; 0 without one. Those up to it are not verified. */
  prunedTo: number
  faults: RecordFault[]
  hasMore: boolean
}

/**
 * Verifies the records of one chain that follow a sequence, which the caller has verified before (or 0), and their rows of
 * usage and credits. It begins after those that retention has removed.
 * @param most records to look at.
 */
export const verifyChainRange = (
  scope: ChangeScope,
  chain: ChainIdentity,
  after: number,
  most: number,
): Promise<VerifiedRange> =>
  verifyBesideSweeps(scope, chain.organizationId, (parts) =>
    verifyRange(scope.database, chain, after, most, parts),
  )

async function verifyRange(
  database: Database,
  chain: ChainIdentity,
  after: number,
  most: number,
  parts: PrunedParts,
): Promise<VerifiedRange> {
  const pruned = parts.records.get(chain.shard)
  const prunedTo = pruned?.sequence ?? 0
  const afterSequence = Math.max(after, prunedTo)
  const previous = await hashBefore(database, chain, afterSequence, pruned)
  if (!previous) {
    const detail = 'the record to go on from is not there'
    const faults = [{ sequence: afterSequence, reason: 'missing' as const, detail }]
    return { afterSequence, toSequence: afterSequence, prunedTo, faults, hasMore: false }
  }
  const page = { ...chain, afterSequence, toSequence: null }
  const { records, hasMore } = await readChainPage(database, page, most)
  let head: ChainHead = { sequence: afterSequence, hash: previous }
  const faults: RecordFault[] = []
  for (const entry of await withExtractedRows(database, records)) {
    faults.push(...verifyRecord(entry, head, removedBefore(parts, chain.shard)))
    head = entry.record
  }
  return { afterSequence, toSequence: head.sequence, prunedTo, faults, hasMore }
}

/** The hash that the record after a sequence names; null where it is not known. */
async function hashBefore(
  database: Database,
  chain: ChainIdentity,
  sequence: number,
  pruned: RecordsPruning | undefined,
): Promise<string | null> {
  if (pruned?.sequence === sequence) return pruned.hash
  if (sequence === 0) return GENESIS.hash
  return (await readHashes(database, [{ ...chain, sequence }]))[0] ?? null
}

/** The chains of an organization as its ledger and Postgres have them, at one moment. */
interface HeadsStatement {
  organizationId: string
  at: string
  chains: LedgerChain[]
  stored: StoredChain[]
  /** What retention may have removed. */
  pruned: PrunedRows
}

/**
 * Compares the chains of an organization in Postgres with those of its ledger objects.
 * @returns the chains under a MAC, for an export.
 * @throws ApiError `internal` when an object does not answer.
 */
export const verifyHeads = (
  scope: ChangeScope,
  organizationId: string,
): Promise<{ attested: Attested<HeadsStatement>; faults: HeadFault[] }> =>
  verifyBesideSweeps(scope, organizationId, (parts) => compareHeads(scope, organizationId, parts))

async function compareHeads(
  { database, clock, ledgerOf, pepperRing }: ChangeScope,
  organizationId: string,
  parts: PrunedParts,
): Promise<{ attested: Attested<HeadsStatement>; faults: HeadFault[] }> {
  // This order matters: records reach the ledger before Postgres.
  const stored = await readStoredChains(database, organizationId)
  const ledger = ledgerOf(organizationId, HOME_SHARD)
  const held = await ledger.chains().catch((cause: unknown) => {
    throw new ApiError('internal', 'The ledger did not return its chains.', { cause })
  })
  const chains = held.map(({ shard, head, flushed, pending }) => ({ shard, head, flushed, pending }))
  const expected = expectedHeads(chains)
  const hashes = await readHashes(
    database,
    expected.map((head) => ({ organizationId, ...head })),
  )
  const differing = expected.flatMap((head, index) => verifyHead(head, hashes[index] ?? null) ?? [])
  const pruned = prunedRows(parts)
  const statement = { organizationId, at: new Date(clock()).toISOString(), chains, stored, pruned }
  const faults = [...findUnknown(stored, chains), ...differing, ...(await verifyPruned(database, parts))]
  return { attested: attest(pepperRing, statement), faults }
}

/** Verifies the statements of retention, and the credits that were moved by the records that it has removed. */
async function verifyPruned(database: Database, { records, faults }: PrunedParts): Promise<HeadFault[]> {
  const found: HeadFault[] = faults.map(({ shard, detail }) => ({
    shard,
    sequence: 0,
    reason: 'pruning_forged',
    detail,
  }))
  const stored = await sumPrunedCredits(database, [...records.values()])
  for (const { shard, sequence, entries, amount } of records.values()) {
    const sum = stored.get(shard) ?? { entries: 0, amount: 0 }
    if (sum.entries === entries && sum.amount === amount) continue
    const detail = `the credits of the records up to it differ: ${sum.entries} entries, and ${entries} when they were pruned`
    found.push({ shard, sequence, reason: 'pruned_credits_differ', detail })
  }
  return found
}
