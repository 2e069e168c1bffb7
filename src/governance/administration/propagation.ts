import { errorText, logEvent } from '../../lib/log.ts'
import { catalogueEpochKey, organizationEpochKey, publishEpoch } from '../epochs.ts'
import type { Administration } from './administration.ts'

/** Longer than this, the caller waits for nothing: the change stands and caches of rights expire by themselves. */
const PUBLISH_TIMEOUT_MS = 2_000

/** Tells every isolate, through Redis, that an organization's rights are not what it may have cached. Never throws. */
export function publishRights(administration: Administration, organizationId: string, epoch: number) {
  return publish(administration, organizationEpochKey(organizationId), epoch)
}

/** The same for providers and models. Never throws. */
export function publishCatalogue(administration: Administration, epoch: number) {
  return publish(administration, catalogueEpochKey, epoch)
}

async function publish(administration: Administration, key: string, epoch: number): Promise<void> {
  let timer: ReturnType<typeof setTimeout> | undefined
  const expiry = new Promise<never>((_resolve, reject) => {
    timer = setTimeout(() => reject(new Error('Redis did not answer in time')), PUBLISH_TIMEOUT_MS)
  })
  try {
    await Promise.race([publishEpoch(administration.redis, key, epoch), expiry])
  } catch (error) {
    logEvent('warn', 'epoch.publish_failed', { key, epoch, error: errorText(error) })
    administration.propagationDelayed()
  } finally {
    clearTimeout(timer)
  }
}
