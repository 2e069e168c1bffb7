import type { Redis } from '@upstash/redis'
import type { Deps } from '../deps.ts'
import { errorText, logEvent } from '../lib/log.ts'
import { type Identification, identify } from './identity/identify.ts'
import { readEpochs } from './identity/store.ts'
import type { Principal } from './principal.ts'

/** What Redis said of the epochs; null where it held none or could not be asked. */
export interface EpochReading {
  organization: number | null
  catalogue: number | null
}

/** The part of a limit decision that tells how far its epochs can be believed. */
export interface EpochEvidence {
  /** Replaced by what Postgres says where Postgres had to be asked, so that it is asked once for each call. */
  epochs: EpochReading
  /** Redis is away: nothing can be written to it either. */
  degraded: boolean
}

export const catalogueEpochKey = 'epoch:catalogue'

export const organizationEpochKey = (organizationId: string) => `epoch:${organizationId}`

/**
 * How long Redis keeps an epoch. Postgres is the record: if a change could not be told to Redis, or Redis came back
 * with an old state, the wrong value is gone after this time.
 */
const EPOCH_LIFETIME_MS = 60_000

/** Readers and writers race, so a value is only ever raised: the slow reader of an old epoch changes nothing. */
const RAISE_SCRIPT = `
local held = tonumber(redis.call('GET', KEYS[1]) or '')
if held and held >= tonumber(ARGV[1]) then return 0 end
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
return 1`

/**
 * Tells Redis of an epoch that Postgres has. Call it after the change of rights is stored, so that no isolate can
 * read the new epoch with the old rights.
 * @throws when Redis cannot be reached; callers keep what they remember for IDENTITY_CACHE_MS at most even then.
 */
export async function publishEpoch(redis: Redis, key: string, epoch: number): Promise<void> {
  await redis.eval(RAISE_SCRIPT, [key], [String(epoch), String(EPOCH_LIFETIME_MS)])
}

type ConfirmDeps = Pick<Deps, 'configuration' | 'clock' | 'database' | 'redis' | 'waitUntil'>

/**
 * Makes sure that a principal has the rights it was read with. Equal epochs settle it without a query; an epoch that
 * differs, is missing, or could not be asked for makes Postgres the judge.
 * @param presentedKey the credential the principal was identified by.
 * @param evidence what `checkLimits` learned on its way; its epochs are brought up to date.
 * @returns the principal as it was or as it is now, or the refusal of a key that no longer counts.
 * @throws whatever the database throws when it cannot be asked. Nobody is let in then.
 */
export async function confirmRights(
  deps: ConfirmDeps,
  presentedKey: string,
  principal: Principal,
  evidence: EpochEvidence,
): Promise<Identification> {
  if (evidence.epochs.organization === principal.epoch) return { kind: 'known', principal }
  const current = await readAndShareEpochs(deps, principal.organizationId, evidence)
  if (current.organization === principal.epoch) return { kind: 'known', principal }
  return identify(deps, presentedKey, { fresh: true })
}

/**
 * The catalogue's epoch, from Redis if it was there, else from Postgres.
 * @throws whatever the database throws when it has to be asked and cannot be.
 */
export async function confirmCatalogueEpoch(
  deps: ConfirmDeps,
  principal: Principal,
  evidence: EpochEvidence,
): Promise<number> {
  if (evidence.epochs.catalogue !== null) return evidence.epochs.catalogue
  const current = await readAndShareEpochs(deps, principal.organizationId, evidence)
  return current.catalogue
}

async function readAndShareEpochs(deps: ConfirmDeps, organizationId: string, evidence: EpochEvidence) {
  const current = await readEpochs(deps.database, organizationId)
  evidence.epochs = current
  if (!evidence.degraded) deps.waitUntil(shareEpochs(deps.redis, organizationId, current))
  return current
}

/** Both writes leave in one request. Only a convenience for later calls, so a failure is logged and no more. */
async function shareEpochs(
  redis: Redis,
  organizationId: string,
  epochs: Awaited<ReturnType<typeof readEpochs>>,
): Promise<void> {
  const writes = [publishEpoch(redis, catalogueEpochKey, epochs.catalogue)]
  if (epochs.organization !== null) {
    writes.push(publishEpoch(redis, organizationEpochKey(organizationId), epochs.organization))
  }
  for (const outcome of await Promise.allSettled(writes)) {
    if (outcome.status === 'rejected') {
      logEvent('warn', 'epoch_not_shared', { organizationId, reason: errorText(outcome.reason) })
    }
  }
}
