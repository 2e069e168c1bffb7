import { errorText, logEvent } from '../../lib/log.ts'
import { catalogueEpochKey, organizationEpochKey, publishEpoch } from '../epochs.ts'
import { DEPLOYMENT_ORGANIZATION_ID } from '../principal.ts'
import type { Administration } from './administration.ts'

/**
 * Tells the organization's ledger, which admits its calls, and the isolates through Redis that rights are not what they
 * may have cached. Never throws.
 */
export function publishRights(administration: Administration, organizationId: string, epoch: number) {
  const key = organizationEpochKey(organizationId)
  return publish(administration, key, epoch, administration.ledgerOf(organizationId).learnEpoch(epoch))
}

/** The same for providers and models, of every ledger. Never throws. */
export function publishCatalogue(administration: Administration, epoch: number) {
  const told = administration.ledgerOf(DEPLOYMENT_ORGANIZATION_ID).announceCatalogue(epoch)
  return publish(administration, catalogueEpochKey, epoch, told)
}

/** The change stands whatever happens here: caches of rights and what ledgers know of epochs expire by themselves. */
async function publish(
  administration: Administration,
  key: string,
  epoch: number,
  ledgerTold: Promise<void>,
): Promise<void> {
  const outcomes = await Promise.allSettled([ledgerTold, publishEpoch(administration.redis, key, epoch)])
  for (const outcome of outcomes) {
    if (outcome.status === 'fulfilled') continue
    logEvent('warn', 'epoch.publish_failed', { key, epoch, error: errorText(outcome.reason) })
    administration.propagationDelayed()
  }
}
