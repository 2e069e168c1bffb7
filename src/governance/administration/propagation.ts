import { errorText, logEvent } from '../../lib/log.ts'
import { HOME_SHARD } from '../ledger/shards/shards.ts'
import { DEPLOYMENT_ORGANIZATION_ID } from '../principal.ts'
import type { Administration } from './administration.ts'

/** Tells the organization's ledger, which admits its calls, of a change of rights. Never throws. */
export function publishRights(administration: Administration, organizationId: string, epoch: number) {
  return publish(administration, organizationId, (ledger) => ledger.learnEpoch(epoch))
}

/** Tells every ledger of a change of providers or models, through the deployment's own. Never throws. */
export function publishCatalogue(administration: Administration, epoch: number) {
  return publish(administration, DEPLOYMENT_ORGANIZATION_ID, (ledger) => ledger.announceCatalogue(epoch))
}

/** The change stands whatever happens here: what ledgers believe of epochs, and caches of rights, expire by themselves. */
async function publish(
  administration: Administration,
  organizationId: string,
  tell: (ledger: ReturnType<Administration['ledgerOf']>) => Promise<void>,
): Promise<void> {
  try {
    await tell(administration.ledgerOf(organizationId, HOME_SHARD))
  } catch (error) {
    logEvent('warn', 'epoch.publish_failed', { organizationId, error: errorText(error) })
    administration.propagationDelayed()
  }
}
