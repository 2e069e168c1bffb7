import { Hono } from 'hono'
import { findUnrecorded, verifyChainRange, verifyCheckpointPage, verifyHeads } from '../../../admin/audit.ts'
import { DEPLOYMENT_ORGANIZATION_ID } from '../../../ledger/audit-record.ts'
import { encodeJsonCursor } from '../../../wire/page-cursor.ts'
import {
  auditVerificationQuery,
  checkpointQuery,
  deploymentVerificationQuery,
  headsQuery,
  unrecordedQuery,
} from '../../../wire/records.ts'
import type { AppContext, AppEnv } from '../../context.ts'
import { query } from '../../validated-request.ts'
import { changeScope } from './request.ts'

/**
 * Verification of chains, usage, credits and checkpoints, page by page. Answers name records, columns and ids, and hold
 * no value of a record, so that they are not recorded as views. Mounted behind the scope of the deployment.
 */
export const auditVerificationRoutes = new Hono<AppEnv>()
  .get('/organizations/:organizationId/audit/verify', query(auditVerificationQuery), (context) =>
    verifyPage(context, { ...context.req.valid('query'), ...context.req.param() }),
  )
  .get('/audit/verify', query(deploymentVerificationQuery), (context) => {
    const { organization_id: organizationId = DEPLOYMENT_ORGANIZATION_ID, ...range } =
      context.req.valid('query')
    return verifyPage(context, { ...range, organizationId })
  })
  .get('/audit/heads', query(headsQuery), async (context) => {
    const { organization_id: organizationId = DEPLOYMENT_ORGANIZATION_ID } = context.req.valid('query')
    const { faults } = await verifyHeads(changeScope(context), organizationId)
    return context.json({ organization_id: organizationId, ok: faults.length === 0, faults })
  })
  .get('/audit/unrecorded', query(unrecordedQuery), async (context) => {
    const { organization_id: organizationId = null, limit, cursor } = context.req.valid('query')
    const scope = changeScope(context)
    const { rows, next } = await findUnrecorded(scope, organizationId, cursor, limit)
    const data = rows.map(({ table, organizationId: owner, name }) => ({
      table,
      organization_id: owner,
      name,
    }))
    return context.json({ data, has_more: next !== null, next_cursor: next && encodeJsonCursor(next) })
  })
  .get('/audit/checkpoints/verify', query(checkpointQuery), async (context) => {
    const { organization_id: organizationId = null, limit, cursor: after = null } = context.req.valid('query')
    const page = { organizationId, after, limit }
    const { checkpoints, faults, next } = await verifyCheckpointPage(changeScope(context), page)
    const found = faults.map(({ checkpointId, ...fault }) => ({ checkpoint_id: checkpointId, ...fault }))
    return context.json({
      ok: found.length === 0,
      checkpoints,
      first_broken: found[0] ?? null,
      faults: found,
      has_more: next !== null,
      next_cursor: next,
    })
  })

async function verifyPage(
  context: AppContext,
  range: { organizationId: string; shard: number; after_sequence: number; limit: number },
): Promise<Response> {
  const { organizationId, shard, after_sequence, limit } = range
  const chain = { organizationId, shard }
  const verified = await verifyChainRange(changeScope(context), chain, after_sequence, limit)
  const { toSequence, faults, hasMore } = verified
  const [first] = faults
  const intactTo = first ? Math.max(after_sequence, first.sequence - 1) : toSequence
  return context.json({
    organization_id: organizationId,
    shard,
    after_sequence,
    to_sequence: toSequence,
    /** Records before the first fault. */
    verified: intactTo - after_sequence,
    ok: first === undefined,
    first_broken: first ?? null,
    faults,
    has_more: hasMore,
  })
}
