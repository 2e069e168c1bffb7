import { findUnrecorded, verifyCheckpointPage } from '../../../admin/audit.ts'
import { verifyChainRange, verifyHeads } from '../../../admin/verify-chains.ts'
import { DEPLOYMENT_ORGANIZATION_ID } from '../../../ledger/audit-record.ts'
import type { ChangeScope } from '../../../ledger/changes/audited-change.ts'
import { encodeJsonCursor } from '../../../wire/page-cursor.ts'
import type { HandlersOf } from './mount-endpoints.ts'

/**
 * Verification of chains, usage, credits and checkpoints, page by page. Answers name records, columns and ids, and hold
 * no value of a record, so that they are not recorded as views.
 */
export const auditVerificationHandlers: HandlersOf<'audit-verification' | 'installation-audit-verification'> =
  {
    'audit-verification.chain': ({ scope, path, query }) =>
      verifyPage(scope, { ...query, organizationId: path.organizationId }),
    'installation-audit-verification.chain': ({ scope, query }) => {
      const { organization_id: organizationId = DEPLOYMENT_ORGANIZATION_ID, ...range } = query
      return verifyPage(scope, { ...range, organizationId })
    },
    'installation-audit-verification.heads': async ({ scope, query }) => {
      const { organization_id: organizationId = DEPLOYMENT_ORGANIZATION_ID } = query
      const { faults } = await verifyHeads(scope, organizationId)
      return { organization_id: organizationId, ok: faults.length === 0, faults }
    },
    'installation-audit-verification.unrecorded': async ({ scope, query }) => {
      const { organization_id: organizationId = null, limit, cursor } = query
      const { rows, next } = await findUnrecorded(scope, organizationId, cursor, limit)
      const data = rows.map(({ table, organizationId: owner, name }) => ({
        table,
        organization_id: owner,
        name,
      }))
      return { data, has_more: next !== null, next_cursor: next && encodeJsonCursor(next) }
    },
    'installation-audit-verification.checkpoints': async ({ scope, query }) => {
      const { organization_id: organizationId = null, limit, cursor: after = null } = query
      const page = { organizationId, after, limit }
      const { checkpoints, faults, next } = await verifyCheckpointPage(scope, page)
      const found = faults.map(({ checkpointId, ...fault }) => ({ checkpoint_id: checkpointId, ...fault }))
      return {
        ok: found.length === 0,
        checkpoints,
        first_broken: found[0] ?? null,
        faults: found,
        has_more: next !== null,
        next_cursor: next,
      }
    },
  }

async function verifyPage(
  scope: ChangeScope,
  range: { organizationId: string; shard: number; after_sequence: number; limit: number },
) {
  const { organizationId, shard, after_sequence, limit } = range
  const chain = { organizationId, shard }
  const verified = await verifyChainRange(scope, chain, after_sequence, limit)
  const { afterSequence, toSequence, prunedTo, faults, hasMore } = verified
  const [first] = faults
  const intactTo = first ? Math.max(afterSequence, first.sequence - 1) : toSequence
  return {
    organization_id: organizationId,
    shard,
    after_sequence: afterSequence,
    to_sequence: toSequence,
    pruned_to: prunedTo,
    verified: intactTo - afterSequence,
    ok: first === undefined,
    first_broken: first ?? null,
    faults,
    has_more: hasMore,
  }
}
