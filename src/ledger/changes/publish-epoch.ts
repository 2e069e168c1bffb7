import { errorText, logEvent } from '../../lib/log.ts'
import { DEPLOYMENT_ORGANIZATION_ID } from '../audit-record.ts'
import { HOME_SHARD } from '../shards/shards.ts'
import type { Administration } from './audited-change.ts'

/** Publishes a change of rights to the organization's ledger, which admits its calls. Never throws. */
export function publishRights(administration: Administration, epoch: number) {
  return publish(administration, administration.organizationId, (ledger) => ledger.learnEpoch(epoch))
}

/** Publishes a change of providers or models to every ledger, through the deployment's own. Never throws. */
export function publishCatalogue(administration: Administration, epoch: number) {
  return publish(administration, DEPLOYMENT_ORGANIZATION_ID, (ledger) => ledger.announceCatalogue(epoch))
}

/** A failure here does not undo the change: epochs that ledgers hold, and cached rights, expire by themselves. */
async function publish(
  administration: Administration,
  organizationId: string,
  send: (ledger: ReturnType<Administration['ledgerOf']>) => Promise<void>,
): Promise<void> {
  try {
    await send(administration.ledgerOf(organizationId, HOME_SHARD))
  } catch (error) {
    logEvent('warn', 'epoch.publish_failed', { organizationId, error: errorText(error) })
    administration.propagationDelayed()
  }
}
