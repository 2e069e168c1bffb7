import { Hono } from 'hono'
import {
  type AuditRow,
  createCheckpoint,
  listChains,
  type VerifiedRange,
  verifyAudit,
  verifyNewestCheckpoints,
  viewAudit,
} from '../../../governance/administration/audit.ts'
import { HOME_SHARD } from '../../../governance/ledger/shards/shards.ts'
import { DEPLOYMENT_ORGANIZATION_ID } from '../../../governance/principal.ts'
import {
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

const present = (row: AuditRow) => ({
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

/** A body that somebody altered may be no JSON any more, and has to be shown all the same. */
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
  .get(`${ORGANIZATION}/audit`, query(auditQuery), async (context) => {
    const { limit, cursor, ...filter } = context.req.valid('query')
    const { organizationId } = context.req.param()
    const page = pageRequest({ limit, cursor })
    return context.json(
      listBody(await viewAudit(administrationOf(context), organizationId, filter, page), present),
    )
  })
  .get(`${ORGANIZATION}/audit/verify`, query(auditVerificationQuery), async (context) => {
    const { organizationId } = context.req.param()
    return verifyPage(context, { ...context.req.valid('query'), organizationId })
  })
  .get(`${ORGANIZATION}/audit/chains`, query(noQuery), async (context) => {
    const { organizationId } = context.req.param()
    return chains(context, organizationId)
  })
  .post(`${ORGANIZATION}/ledger/flush`, query(noQuery), async (context) => {
    const { organizationId } = context.req.param()
    return context.json(await context.get('deps').ledgerOf(organizationId, HOME_SHARD).flush())
  })
  .use('/audit/*', deploymentScope())
  .use('/ledger/*', deploymentScope())
  .get('/audit', query(auditQuery), async (context) => {
    const { limit, cursor, ...filter } = context.req.valid('query')
    const page = pageRequest({ limit, cursor })
    return context.json(
      listBody(await viewAudit(administrationOf(context), DEPLOYMENT_ORGANIZATION_ID, filter, page), present),
    )
  })
  .get('/audit/verify', query(deploymentVerificationQuery), async (context) => {
    const { organization_id: organizationId = DEPLOYMENT_ORGANIZATION_ID, ...range } =
      context.req.valid('query')
    return verifyPage(context, { ...range, organizationId })
  })
  .get('/audit/chains', query(noQuery), async (context) => chains(context, null))
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
  .post('/ledger/flush', query(noQuery), async (context) => {
    return context.json(await context.get('deps').ledgerOf(DEPLOYMENT_ORGANIZATION_ID, HOME_SHARD).flush())
  })

async function verifyPage(
  context: AppContext,
  asked: { organizationId: string; shard: number; after_sequence: number; limit: number },
): Promise<Response> {
  const { organizationId, shard, after_sequence: afterSequence, limit } = asked
  const range = await verifyAudit(administrationOf(context), { organizationId, shard }, afterSequence, limit)
  return context.json(presentRange(organizationId, shard, range))
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
