import { errorText, logEvent } from '../../lib/log.ts'
import { catalogueEpochKey, organizationEpochKey, publishEpoch } from '../epochs.ts'
import type { Administration } from './administration.ts'

/** Tells every isolate, through Redis, that an organization's rights are not what it may have cached. Never throws. */
export function publishRights(administration: Administration, organizationId: string, epoch: number) {
  return publish(administration, organizationEpochKey(organizationId), epoch)
}

/** The same for providers and models. Never throws. */
export function publishCatalogue(administration: Administration, epoch: number) {
  return publish(administration, catalogueEpochKey, epoch)
}

/** The change stands whatever happens here: caches of rights expire by themselves. */
async function publish(administration: Administration, key: string, epoch: number): Promise<void> {
  try {
    await publishEpoch(administration.redis, key, epoch)
  } catch (error) {
    logEvent('warn', 'epoch.publish_failed', { key, epoch, error: errorText(error) })
    administration.propagationDelayed()
  }
}
