import { Hono } from 'hono'
import {
  createCheckpoint,
  listChains,
  type VerifiedRange,
  verifyAudit,
  verifyNewestCheckpoints,
  viewAudit,
} from '../../../governance/administration/audit.ts'
import type { AuditRecordRow } from '../../../governance/administration/records.store.ts'
import { HOME_SHARD } from '../../../governance/ledger/shards/shards.ts'
import { DEPLOYMENT_ORGANIZATION_ID } from '../../../governance/principal.ts'
import {
  type AuditQuery,
  auditQuery,
  auditVerificationQuery,
  deploymentVerificationQuery,
  noQuery,
} from '../../../wire/management.ts'
import { listBody } from '../../../wire/page-cursor.ts'
import type { AppContext, AppEnv } from '../../context.ts'
import { query } from '../../validated-request.ts'
import { administrationOf, deploymentScope, pageRequest } from './request.ts'

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

const presentRange = (organizationId: string, shard: number, range: VerifiedRange) => ({
  organization_id: organizationId,
  shard,
  after_sequence: range.afterSequence,
  to_sequence: range.toSequence,
  verified: range.toSequence - range.afterSequence,
  ok: range.firstBroken === null,
  first_broken: range.firstBroken,
  has_more: range.hasMore,
})

/** Chains of an organization; the deployment's own changes are a chain as well. */
export const auditRoutes = new Hono<AppEnv>()
  .get(`${ORGANIZATION}/audit`, query(auditQuery), (context) =>
    auditPage(context, context.req.valid('query')),
  )
  .get(`${ORGANIZATION}/audit/verify`, query(auditVerificationQuery), (context) =>
    verifyPage(context, { ...context.req.valid('query'), ...context.req.param() }),
  )
  .get(`${ORGANIZATION}/audit/chains`, query(noQuery), (context) =>
    chains(context, context.req.param('organizationId')),
  )
  .post(`${ORGANIZATION}/ledger/flush`, query(noQuery), flush)
  .use('/audit/*', deploymentScope())
  .use('/ledger/*', deploymentScope())
  .get('/audit', query(auditQuery), (context) => auditPage(context, context.req.valid('query')))
  .get('/audit/verify', query(deploymentVerificationQuery), (context) => {
    const { organization_id: organizationId = DEPLOYMENT_ORGANIZATION_ID, ...range } =
      context.req.valid('query')
    return verifyPage(context, { ...range, organizationId })
  })
  .get('/audit/chains', query(noQuery), (context) => chains(context, null))
  .post('/audit/checkpoints', query(noQuery), async (context) => {
    const { id, at, heads } = await createCheckpoint(administrationOf(context))
    return context.json({ id, at, chains: heads.length }, 201)
  })
  .get('/audit/checkpoints/verify', query(noQuery), async (context) => {
    const result = await verifyNewestCheckpoints(administrationOf(context))
    return context.json(
      result.intact
        ? { ok: true, checkpoints: result.checkpoints, first_broken: null }
        : {
            ok: false,
            checkpoints: null,
            first_broken: {
              checkpoint_id: result.checkpointId,
              reason: result.reason,
              detail: result.detail,
            },
          },
    )
  })
  .post('/ledger/flush', query(noQuery), flush)

async function auditPage(context: AppContext, parameters: AuditQuery): Promise<Response> {
  const { limit, cursor, ...filter } = parameters
  const page = await viewAudit(administrationOf(context), filter, pageRequest({ limit, cursor }))
  return context.json(listBody(page, present))
}

async function flush(context: AppContext): Promise<Response> {
  const { ledgerOf, organizationId } = administrationOf(context)
  return context.json(await ledgerOf(organizationId, HOME_SHARD).flush())
}

async function verifyPage(
  context: AppContext,
  range: { organizationId: string; shard: number; after_sequence: number; limit: number },
): Promise<Response> {
  const { organizationId, shard, after_sequence: afterSequence, limit } = range
  const chain = { organizationId, shard }
  const verified = await verifyAudit(administrationOf(context), chain, afterSequence, limit)
  return context.json(presentRange(organizationId, shard, verified))
}

async function chains(context: AppContext, organizationId: string | null): Promise<Response> {
  const heads = await listChains(administrationOf(context), organizationId)
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
