import { audited, type ChangeScope, recordView } from '../ledger/changes/audited-change.ts'
import {
  type ChainPlace,
  type Checkpoint,
  readChainHeads,
  readChainPage,
} from '../ledger/records/chain.store.ts'
import {
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
import {
  type AuditFilter,
  type AuditRecordRow,
  selectAuditRecords,
} from '../ledger/records/read-records.store.ts'
import { prunedParts } from '../ledger/retention/pruning.ts'
import { selectPrunings } from '../ledger/retention/prunings.store.ts'
import { invalidRequest } from '../lib/api-error.ts'
import { isDataException } from '../lib/database-error.ts'
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

/**
 * Finds rows of usage and credits that no record accounts for: all usage first, then all credits.
 * @param organizationId null for all of the deployment. @param most rows to look at.
 * @throws ApiError `invalid_request` for a position whose time is none. Rows that were tampered with have times that only Postgres can tell.
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
  const { rows, next } = await findUnrecordedUsage(database, organizationId, position.after, most).catch(
    (error: unknown) => {
      throw isDataException(error) ? invalidRequest('cursor: is not a cursor of this list') : error
    },
  )
  return {
    rows: await withoutPruned(scope, rows),
    next: next === null ? { table: 'credit_entries', after: null } : { table: 'usage_events', after: next },
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
