import { Hono } from 'hono'
import { exportCheckpointPage, exportRecords, findUnrecorded, verifyHeads } from '../../../admin/audit.ts'
import { exportedRecord, exportedRow } from '../../../ledger/records/exported-rows.store.ts'
import { noQuery } from '../../../wire/management-fields.ts'
import { encodeJsonCursor } from '../../../wire/page-cursor.ts'
import { checkpointPageQuery, exportQuery, unrecordedPageQuery } from '../../../wire/records.ts'
import type { AppEnv } from '../../context.ts'
import { query } from '../../validated-request.ts'
import { changeScope } from './request.ts'

/** The parts of an export that can be verified offline, of the organization in the path or of the deployment itself. */
const exportRoutes = new Hono<AppEnv>()
  .get('/heads', query(noQuery), async (context) => {
    const scope = changeScope(context)
    const { attested } = await verifyHeads(scope, scope.organizationId)
    return context.json(presentAttested(attested))
  })
  .get('/checkpoints', query(checkpointPageQuery), async (context) => {
    const { limit, cursor: after = null } = context.req.valid('query')
    const { checkpoints, next } = await exportCheckpointPage(changeScope(context), { after, limit })
    return context.json({
      data: checkpoints.map(presentAttested),
      has_more: next !== null,
      next_cursor: next,
    })
  })
  .get('/records', query(exportQuery), async (context) => {
    const {
      shard,
      after_sequence: afterSequence,
      to_sequence: toSequence = null,
      limit,
    } = context.req.valid('query')
    const place = { shard, afterSequence, toSequence }
    const { entries, hasMore } = await exportRecords(changeScope(context), place, limit)
    return context.json({ data: entries.map(exportedRecord), has_more: hasMore })
  })
  .get('/unrecorded', query(unrecordedPageQuery), async (context) => {
    const { limit, cursor } = context.req.valid('query')
    const scope = changeScope(context)
    const { rows, next } = await findUnrecorded(scope, scope.organizationId, cursor, limit)
    const data = rows.map((found) => ({
      table: found.table,
      name: found.name,
      row:
        found.table === 'usage_events'
          ? exportedRow(found.table, found.row)
          : exportedRow(found.table, found.row),
    }))
    return context.json({ data, has_more: next !== null, next_cursor: next && encodeJsonCursor(next) })
  })

export const auditExportRoutes = new Hono<AppEnv>()
  .route('/organizations/:organizationId/audit/export', exportRoutes)
  .route('/audit/export', exportRoutes)

const presentAttested = ({
  statement,
  pepperId,
  mac,
}: {
  statement: unknown
  pepperId: string
  mac: string
}) => ({
  statement,
  pepper_id: pepperId,
  mac,
})
