import { sha256Hex } from '../../lib/crypto.ts'
import { DEPLOYMENT_ORGANIZATION_ID, NO_ACTOR } from '../audit-record.ts'
import { callLedger, DEPLOYMENT_LEDGER } from '../ledger-object.ts'
import { countsStatement, REJECTED_CALLS_COUNTED } from '../records/stated-rows.ts'
import type { RejectedCount } from './rejected-calls.ts'

/**
 * Records final totals in the deployment's chain. The id follows from the totals, so that a repetition changes nothing.
 * @param at milliseconds since the epoch.
 */
export async function stateCounts(
  namespace: DurableObjectNamespace,
  counts: readonly RejectedCount[],
  at: number,
): Promise<void> {
  const detail = countsStatement(counts)
  const name = sha256Hex(JSON.stringify(detail)).slice(0, 32)
  const record = {
    id: `change_${name}`,
    requestId: `req_${name}`,
    organizationId: DEPLOYMENT_ORGANIZATION_ID,
    at,
    actor: NO_ACTOR,
    action: REJECTED_CALLS_COUNTED,
    resource: 'rejected_calls',
    detail,
  }
  await callLedger(namespace, DEPLOYMENT_LEDGER, (ledger) => ledger.recordChange(record))
}
