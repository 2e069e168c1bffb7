import type { Deps } from '../../deps.ts'
import { BoundedMap } from '../../lib/bounded-map.ts'
import { type Entitlement, KEY_SCOPES, type Principal } from '../principal.ts'
import { digestApiKey, digestsFor, parseApiKey } from './api-key.ts'
import { mayLookUp, noteRefusal } from './look-up-guard.ts'
import { findKeyRights, findKeyRightsById, type KeyRights } from './store.ts'

/** Whose key was refused, for the audit record. */
export interface KeyOwner {
  organizationId: string
  userId: string
  keyId: string
}

/** `unchecked`: nobody looked, because too many keys from its address were refused. */
export type RefusalReason = 'malformed' | 'unknown' | 'revoked' | 'expired' | 'disabled' | 'unchecked'

export type Identification =
  | { kind: 'known'; principal: Principal }
  /** `owner` is set whenever the key was found. */
  | { kind: 'refused'; reason: RefusalReason; owner: KeyOwner | null }

type IdentifyDeps = Pick<Deps, 'configuration' | 'clock' | 'database'>

interface OwnerDeps extends Pick<Deps, 'clock' | 'database'> {
  configuration: DefaultLimits
}

type DefaultLimits = Pick<Deps['configuration'], 'ORGANIZATION_RATE_LIMIT' | 'USER_RATE_LIMIT'>

interface CachedIdentity {
  principal: Principal
  /** Milliseconds since the epoch; null for a key without an end. */
  keyExpiresAt: number | null
  readAt: number
}

/** Results, never promises: pending I/O that requests share dies with the request that started it. */
const cache = new BoundedMap<string, CachedIdentity>(5_000)

/**
 * Who presents this key, and what may they do?
 *
 * A known key is remembered by this isolate for IDENTITY_CACHE_MS at most; the caller still has to compare its epoch
 * (`confirmRights`), which is what makes a change count on the next call. Refusals are never remembered: a new key,
 * or a user let in again, must work at once.
 * @param presentedKey the credential as it came, without `Bearer`.
 * @param options `fresh` skips what the isolate remembers. `address` is where the key comes from, null when unknown:
 * an address whose keys keep being refused gets few look-ups, save for keys that were good when last seen here.
 * @throws whatever the database throws when it cannot be asked. Nobody is let in then.
 */
export async function identify(
  deps: IdentifyDeps,
  presentedKey: string,
  options: { fresh?: boolean; address?: string | null } = {},
): Promise<Identification> {
  if (parseApiKey(presentedKey) === null) return { kind: 'refused', reason: 'malformed', owner: null }
  const peppers = deps.configuration.KEY_PEPPERS
  const cacheKey = digestApiKey(peppers, presentedKey).digest
  const remembered = options.fresh ? undefined : recall(deps, cacheKey)
  if (remembered) return judgeExpiry(remembered, deps.clock())

  const readAt = deps.clock()
  const { address } = options
  const wasGood = cache.get(cacheKey) !== undefined
  if (address !== undefined && !wasGood && !mayLookUp(address, readAt)) {
    return { kind: 'refused', reason: 'unchecked', owner: null }
  }
  const digests = digestsFor(peppers, presentedKey).map(({ digest }) => digest)
  const rights = await findKeyRights(deps.database, digests)
  const identity = rights && admit(deps, rights, readAt)
  if (!identity) {
    cache.delete(cacheKey)
    if (address !== undefined) noteRefusal(address, deps.clock())
    return refusal(rights)
  }
  cache.set(cacheKey, identity)
  return judgeExpiry(identity, deps.clock())
}

/**
 * The same for a caller that was identified before, by the id of its key: what it may do now, nothing remembered.
 * @throws whatever the database throws when it cannot be asked. Nobody is let in then.
 */
export async function identifyOwner(
  deps: OwnerDeps,
  organizationId: string,
  keyId: string,
): Promise<Identification> {
  const rights = await findKeyRightsById(deps.database, organizationId, keyId)
  const identity = rights && admit(deps, rights, deps.clock())
  return identity ? judgeExpiry(identity, deps.clock()) : refusal(rights)
}

function recall(deps: IdentifyDeps, cacheKey: string): CachedIdentity | undefined {
  const entry = cache.get(cacheKey)
  // What is too old stays: it tells that the key was good.
  return entry && deps.clock() - entry.readAt < deps.configuration.IDENTITY_CACHE_MS ? entry : undefined
}

/** Expiry needs nobody to change anything, so no epoch tells of it: it is looked at on every call. */
function judgeExpiry({ principal, keyExpiresAt }: CachedIdentity, now: number): Identification {
  if (keyExpiresAt === null || now < keyExpiresAt) return { kind: 'known', principal }
  const { organizationId, userId, keyId } = principal
  return { kind: 'refused', reason: 'expired', owner: { organizationId, userId, keyId } }
}

function refusal(rights: KeyRights | null): Identification {
  if (!rights) return { kind: 'refused', reason: 'unknown', owner: null }
  const { organizationId, userId, keyId } = rights
  const reason = rights.revokedAt ? 'revoked' : 'disabled'
  return { kind: 'refused', reason, owner: { organizationId, userId, keyId } }
}

/** @returns null when the key is revoked, or its user or organization may not call at all. */
function admit(
  deps: { configuration: DefaultLimits },
  rights: KeyRights,
  readAt: number,
): CachedIdentity | null {
  if (rights.revokedAt || rights.organizationDisabledAt) return null
  if (!rights.role || rights.membershipDisabledAt) return null
  const { ORGANIZATION_RATE_LIMIT, USER_RATE_LIMIT } = deps.configuration
  const principal: Principal = {
    organizationId: rights.organizationId,
    userId: rights.userId,
    keyId: rights.keyId,
    role: rights.role,
    groupIds: rights.groupIds,
    entitlements: rights.entitlements as Entitlement[],
    scopes: KEY_SCOPES.filter((scope) => rights.scopes.includes(scope)),
    models: {
      all: rights.grantedModels.includes('*'),
      ids: new Set(rights.grantedModels.filter((id) => id !== '*')),
    },
    organizationLimitPerMinute: rights.organizationLimit ?? ORGANIZATION_RATE_LIMIT,
    userLimitPerMinute: rights.membershipLimit ?? rights.organizationUserLimit ?? USER_RATE_LIMIT,
    epoch: rights.epoch,
  }
  return { principal, keyExpiresAt: rights.expiresAt?.getTime() ?? null, readAt }
}
