import { errorText, logEvent } from '../../lib/log.ts'
import { DEPLOYMENT_ORGANIZATION_ID } from '../audit-record.ts'
import { HOME_SHARD } from '../shards/shards.ts'
import type { ChangeScope } from './audited-change.ts'

/** Publishes a change of rights to the organization's ledger, which admits its calls. Never throws. */
export function publishRights(scope: ChangeScope, epoch: number) {
  return publish(scope, scope.organizationId, (ledger) => ledger.learnEpoch(epoch))
}

/** Publishes a change of providers or models to every ledger, through the deployment's own. Never throws. */
export function publishCatalogue(scope: ChangeScope, epoch: number) {
  return publish(scope, DEPLOYMENT_ORGANIZATION_ID, (ledger) => ledger.announceCatalogue(epoch))
}

/** A failure here does not undo the change: epochs that ledgers hold, and cached rights, expire by themselves. */
async function publish(
  scope: ChangeScope,
  organizationId: string,
  send: (ledger: ReturnType<ChangeScope['ledgerOf']>) => Promise<void>,
): Promise<void> {
  try {
    await send(scope.ledgerOf(organizationId, HOME_SHARD))
  } catch (error) {
    logEvent('warn', 'epoch.publish_failed', { organizationId, error: errorText(error) })
    scope.propagationDelayed()
  }
}
