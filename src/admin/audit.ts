import type { Database } from '../../schema/database.ts'
import { audited, type ChangeScope, recordView } from '../ledger/changes/audited-change.ts'
import {
  type ChainPlace,
  type Checkpoint,
  readChainHeads,
  readChainPage,
  readHashes,
  readStoredChains,
  type StoredChain,
} from '../ledger/records/chain.store.ts'
import { type ChainHead, type ChainIdentity, GENESIS, type LedgerChain } from '../ledger/records/chain.ts'
import {
  type Attested,
  attest,
  type CheckpointDeps,
  type CheckpointPage,
  exportCheckpoints,
  verifyCheckpoints,
  writeCheckpoint,
} from '../ledger/records/checkpoint.ts'
import {
  findUnrecordedCredits,
  findUnrecordedUsage,
  type UnrecordedRow,
  withExtractedRows,
} from '../ledger/records/extracted-rows.store.ts'
import type { RecordWithRows } from '../ledger/records/extracted-rows.ts'
import { expectedHeads, findUnknown, type HeadFault, verifyHead } from '../ledger/records/ledger-heads.ts'
import {
  type AuditFilter,
  type AuditRecordRow,
  selectAuditRecords,
} from '../ledger/records/read-records.store.ts'
import { type RecordFault, verifyRecord } from '../ledger/records/verify.ts'
import {
  type PrunedParts,
  type PrunedRows,
  prunedParts,
  prunedRows,
  type RecordsPruning,
  removedBefore,
} from '../ledger/retention/pruning.ts'
import { selectPrunings, sumPrunedCredits } from '../ledger/retention/prunings.store.ts'
import { HOME_SHARD } from '../ledger/shards/shards.ts'
import { ApiError, invalidRequest } from '../lib/api-error.ts'
import type { Page, PageRequest } from '../wire/page-cursor.ts'
import type { UnrecordedPosition } from '../wire/records.ts'
import { readInView } from './begun-view.ts'

/**
 * Returns audit records, newest first. The view is recorded itself, before anything is returned: once for all pages that are read with
 * the cursors of the first one.
 * @throws ApiError `internal` when that record cannot be stored.
 */
export function viewAudit(
  scope: ChangeScope,
  filter: AuditFilter,
  page: PageRequest,
): Promise<Page<AuditRecordRow>> {
  return readInView(scope, { action: 'audit.viewed', list: 'audit', filter }, page, () =>
    selectAuditRecords(scope, filter, page),
  )
}

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
export async function verifyChainRange(
  { database, pepperRing }: ChangeScope,
  chain: ChainIdentity,
  after: number,
  most: number,
): Promise<VerifiedRange> {
  const parts = prunedParts(pepperRing, await selectPrunings(database, [chain.organizationId]))
  const pruned = parts.records.get(chain.shard)
  const prunedTo = pruned?.sequence ?? 0
  const afterSequence = Math.max(after, prunedTo)
  const previous = await hashBefore(database, chain, afterSequence, pruned)
  if (!previous) {
    const detail = 'the record to go on from is not there'
    const faults = [{ sequence: afterSequence, reason: 'missing' as const, detail }]
    return { afterSequence, toSequence: afterSequence, prunedTo, faults, hasMore: false }
  }
  const { records, hasMore } = await readChainPage(
    database,
    { ...chain, afterSequence, toSequence: null },
    most,
  )
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
export async function verifyHeads(
  { database, clock, ledgerOf, pepperRing }: ChangeScope,
  organizationId: string,
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
  const parts = prunedParts(pepperRing, await selectPrunings(database, [organizationId]))
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
  for (const pruning of records.values()) {
    const { shard, sequence, entries, amount } = pruning
    const stored = await sumPrunedCredits(database, pruning)
    if (stored.entries === entries && stored.amount === amount) continue
    const detail = `the credits of the records up to it differ: ${stored.entries} entries, and ${entries} when they were pruned`
    found.push({ shard, sequence, reason: 'pruned_credits_differ', detail })
  }
  return found
}

/**
 * Finds rows of usage and credits that no record accounts for: all usage first, then all credits.
 * @param organizationId null for all of the deployment. @param most rows to look at.
 * @throws ApiError `invalid_request` when the row to continue from is missing.
 */
export async function findUnrecorded(
  scope: ChangeScope,
  organizationId: string | null,
  position: UnrecordedPosition,
  most: number,
): Promise<{ rows: UnrecordedRow[]; next: UnrecordedPosition | null }> {
  const { database } = scope
  if (position.table === 'credit_entries') {
    const { rows, next } = await findUnrecordedCredits(database, organizationId, position.after, most)
    return { rows: await withoutPruned(scope, rows), next: next && { table: 'credit_entries', after: next } }
  }
  const page = await findUnrecordedUsage(database, organizationId, position.after, most)
  if (page === null) throw invalidRequest('cursor: the row to go on from is not there')
  const { next } = page
  const rows = await withoutPruned(scope, page.rows)
  const isEnd = next === null
  return {
    rows,
    next: isEnd ? { table: 'credit_entries', after: null } : { table: 'usage_events', after: next },
  }
}

/**
 * The rows without those whose records retention may have removed. The statement about a chain vouches for the credits of its records;
 * old rows of usage without a record are not verified.
 */
async function withoutPruned(
  { database, pepperRing }: ChangeScope,
  rows: UnrecordedRow[],
): Promise<UnrecordedRow[]> {
  const owners = [...new Set(rows.map(({ organizationId }) => organizationId))]
  const prunings = await selectPrunings(database, owners)
  return rows.filter(({ table, organizationId, row }) => {
    const own = prunings.filter((pruning) => pruning.organizationId === organizationId)
    const { records } = prunedParts(pepperRing, own)
    const pruned = table === 'credit_entries' ? [records.get(row.shard)] : [...records.values()]
    return !pruned.some((each) => each !== undefined && row.at < new Date(each.before))
  })
}

/**
 * Returns a page of a chain of this organization with its rows of usage and credits. The view is recorded before.
 * @param most records to read. @throws ApiError `internal` when the view cannot be recorded.
 */
export async function exportRecords(
  scope: ChangeScope,
  { shard, afterSequence, toSequence }: Omit<ChainPlace, 'organizationId'>,
  most: number,
): Promise<{ entries: RecordWithRows[]; hasMore: boolean }> {
  const { database, organizationId, pepperRing } = scope
  await recordView(scope, {
    action: 'audit.exported',
    resource: 'audit',
    detail: { shard, after_sequence: afterSequence, to_sequence: toSequence, limit: most },
  })
  // Records that may be missing, and are not deleted yet, are left out: the export states what retention has removed.
  const pruned = prunedParts(pepperRing, await selectPrunings(database, [organizationId])).records.get(shard)
  const after = Math.max(afterSequence, pruned?.sequence ?? 0)
  const place = { organizationId, shard, afterSequence: after, toSequence }
  const { records, hasMore } = await readChainPage(database, place, most)
  return { entries: await withExtractedRows(database, records), hasMore }
}

/** Chains that Postgres has records of. @param organizationId whose, or null for all of the deployment. */
export const listChains = ({ database }: ChangeScope, organizationId: string | null) =>
  readChainHeads(database, organizationId)

/** Stores the heads of all chains under a MAC, which is audited as a change to the deployment. */
export function createCheckpoint(scope: ChangeScope): Promise<Checkpoint> {
  return audited(
    scope,
    { action: 'audit_checkpoint.created', resource: 'audit/checkpoints', detail: {} },
    () => writeCheckpoint({ ...checkpointDeps(scope), ledgerOf: scope.ledgerOf }),
  )
}

/** Verifies a page of checkpoints against the chains. */
export const verifyCheckpointPage = (scope: ChangeScope, page: CheckpointPage) =>
  verifyCheckpoints(checkpointDeps(scope), page)

/** Returns a page of checkpoints, reduced to this organization, for an export. */
export const exportCheckpointPage = (scope: ChangeScope, page: Omit<CheckpointPage, 'organizationId'>) =>
  exportCheckpoints(checkpointDeps(scope), {
    ...page,
    organizationId: scope.organizationId,
  })

const checkpointDeps = ({ database, clock, pepperRing }: ChangeScope): CheckpointDeps => ({
  database,
  clock,
  configuration: { KEY_PEPPERS: pepperRing },
})
