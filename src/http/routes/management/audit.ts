import { Hono } from 'hono'
import { createCheckpoint, listChains, viewAudit } from '../../../admin/audit.ts'
import type { AuditRecordRow } from '../../../ledger/records/read-records.store.ts'
import { HOME_SHARD } from '../../../ledger/shards/shards.ts'
import { noQuery } from '../../../wire/management-fields.ts'
import { listBody } from '../../../wire/page-cursor.ts'
import { type AuditQuery, auditQuery } from '../../../wire/records.ts'
import type { AppContext, AppEnv } from '../../context.ts'
import { query } from '../../validated-request.ts'
import { auditExportRoutes } from './audit-export.ts'
import { auditVerificationRoutes } from './audit-verification.ts'
import { changeScope, deploymentScope, pageRequest } from './request.ts'

const ORGANIZATION = '/organizations/:organizationId'

const present = (row: AuditRecordRow) => ({
  id: row.id,
  shard: row.shard,
  sequence: row.sequence,
  kind: row.kind,
  at: row.at,
  request_id: row.requestId,
  user_id: row.userId,
  key_id: row.keyId,
  surface: row.surface,
  action: row.action,
  model: row.modelId,
  status: row.status,
  credits_settled: row.creditsSettled,
  previous_hash: row.previousHash,
  hash: row.hash,
  record: readBody(row.body),
})

/** A body that was tampered with need not be JSON, and is shown all the same. */
function readBody(body: string): unknown {
  try {
    return JSON.parse(body)
  } catch {
    return body
  }
}

/** Chains of an organization; the deployment's own changes are a chain as well. */
export const auditRoutes = new Hono<AppEnv>()
  .get(`${ORGANIZATION}/audit`, query(auditQuery), (context) =>
    auditPage(context, context.req.valid('query')),
  )
  .get(`${ORGANIZATION}/audit/chains`, query(noQuery), (context) =>
    chains(context, context.req.param('organizationId')),
  )
  .post(`${ORGANIZATION}/ledger/flush`, query(noQuery), flush)
  .use('/audit/*', deploymentScope())
  .use('/ledger/*', deploymentScope())
  .get('/audit', query(auditQuery), (context) => auditPage(context, context.req.valid('query')))
  .get('/audit/chains', query(noQuery), (context) => chains(context, null))
  .post('/audit/checkpoints', query(noQuery), async (context) => {
    const { id, at, heads } = await createCheckpoint(changeScope(context))
    return context.json({ id, at, chains: heads.length }, 201)
  })
  .post('/ledger/flush', query(noQuery), flush)
  .route('/', auditVerificationRoutes)
  .route('/', auditExportRoutes)

async function auditPage(context: AppContext, parameters: AuditQuery): Promise<Response> {
  const { limit, cursor, ...filter } = parameters
  const page = await viewAudit(changeScope(context), filter, pageRequest({ limit, cursor }))
  return context.json(listBody(page, present))
}

async function flush(context: AppContext): Promise<Response> {
  const { ledgerOf, organizationId } = changeScope(context)
  return context.json(await ledgerOf(organizationId, HOME_SHARD).flush())
}

async function chains(context: AppContext, organizationId: string | null): Promise<Response> {
  const heads = await listChains(changeScope(context), organizationId)
  return context.json({
    data: heads.map((head) => ({
      organization_id: head.organizationId,
      shard: head.shard,
      sequence: head.sequence,
      hash: head.hash,
    })),
    has_more: false,
    next_cursor: null,
  })
}
