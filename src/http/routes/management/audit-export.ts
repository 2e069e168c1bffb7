import type * as z from 'zod'
import { exportCheckpointPage, exportRecords, findUnrecorded } from '../../../admin/audit.ts'
import { verifyHeads } from '../../../admin/verify-chains.ts'
import type { ChangeScope } from '../../../ledger/changes/audited-change.ts'
import { exportedRecord, exportedRow } from '../../../ledger/records/exported-rows.store.ts'
import { encodeJsonCursor } from '../../../wire/page-cursor.ts'
import type { checkpointPageQuery, exportQuery, unrecordedPageQuery } from '../../../wire/records.ts'
import type { HandlersOf } from './mount-endpoints.ts'

type Query<Schema extends z.ZodType> = z.output<Schema>

/** The parts of an export that can be verified offline, of the organization in the path or of the deployment itself. */
export const auditExportHandlers: HandlersOf<'audit-export' | 'installation-audit-export'> = {
  'audit-export.heads': ({ scope }) => heads(scope),
  'audit-export.checkpoints': ({ scope, query }) => checkpoints(scope, query),
  'audit-export.records': ({ scope, query }) => records(scope, query),
  'audit-export.unrecorded': ({ scope, query }) => unrecorded(scope, query),
  'installation-audit-export.heads': ({ scope }) => heads(scope),
  'installation-audit-export.checkpoints': ({ scope, query }) => checkpoints(scope, query),
  'installation-audit-export.records': ({ scope, query }) => records(scope, query),
  'installation-audit-export.unrecorded': ({ scope, query }) => unrecorded(scope, query),
}

async function heads(scope: ChangeScope) {
  const { attested } = await verifyHeads(scope, scope.organizationId)
  return presentAttested(attested)
}

async function checkpoints(scope: ChangeScope, query: Query<typeof checkpointPageQuery>) {
  const { limit, cursor: after = null } = query
  const page = await exportCheckpointPage(scope, { after, limit })
  return {
    data: page.checkpoints.map(presentAttested),
    has_more: page.next !== null,
    next_cursor: page.next,
  }
}

async function records(scope: ChangeScope, query: Query<typeof exportQuery>) {
  const { shard, after_sequence: afterSequence, to_sequence: toSequence = null, limit } = query
  const place = { shard, afterSequence, toSequence }
  const { entries, hasMore } = await exportRecords(scope, place, limit)
  return { data: entries.map(exportedRecord), has_more: hasMore }
}

async function unrecorded(scope: ChangeScope, query: Query<typeof unrecordedPageQuery>) {
  const { limit, cursor } = query
  const { rows, next } = await findUnrecorded(scope, scope.organizationId, cursor, limit)
  const data = rows.map((found) => ({
    table: found.table,
    name: found.name,
    row:
      found.table === 'usage_events'
        ? exportedRow(found.table, found.row)
        : exportedRow(found.table, found.row),
  }))
  return { data, has_more: next !== null, next_cursor: next && encodeJsonCursor(next) }
}

function presentAttested(attested: { statement: object; pepperId: string; mac: string }) {
  const { statement, pepperId, mac } = attested
  return { statement: statement as Record<string, unknown>, pepper_id: pepperId, mac }
}
