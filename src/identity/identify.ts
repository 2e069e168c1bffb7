import type { Database } from '../../schema/database.ts'
import { ApiError } from '../lib/api-error.ts'
import { BoundedMap } from '../lib/bounded-map.ts'
import type { Clock } from '../lib/clock.ts'
import type { KeyRing } from '../lib/crypto.ts'
import type { SharedLimitDeps } from '../lib/shared-limits.ts'
import { withinTime } from '../lib/time-limit.ts'
import { KEY_SCOPES } from '../wire/key-scopes.ts'
import { parseApiKey } from './api-key.ts'
import {
  findKeyRights,
  findKeyRightsById,
  findMemberRights,
  type KeyRights,
  type UserRights,
} from './identity.store.ts'
import { integrationGrantsOf } from './integration-rights.ts'
import { mayLookUp, noteRefusal } from './look-up-guard.ts'
import { type CallerCredential, type Entitlement, isExpired, type Principal } from './principal.ts'
import { digestsFor, digestToken } from './secret-token.ts'
import { DEFAULT_TOOL_SETTINGS, type ToolSettings, toolRightsOf } from './tool-rights.ts'

/** The owner of a refused key, for the audit record. */
export interface KeyOwner {
  organizationId: string
  userId: string
  keyId: string
  /** Limit of its refused calls: that of its user. */
  callsPerMinute: number
}

/** `unchecked`: not looked up, because too many keys from its address were refused. */
export type RefusalReason = 'malformed' | 'unknown' | 'revoked' | 'expired' | 'disabled' | 'unchecked'

export type Identification =
  | { kind: 'known'; principal: Principal }
  /** `owner` is set whenever the key was found. */
  | { kind: 'refused'; reason: RefusalReason; owner: KeyOwner | null }

/** Calls a minute where neither organization nor user has a limit of its own. */
interface DefaultLimits {
  ORGANIZATION_RATE_LIMIT: number
  USER_RATE_LIMIT: number
}

export interface RenewDeps {
  clock: Clock
  database: Database
  configuration: DefaultLimits
}

type IdentifyDeps = RenewDeps &
  SharedLimitDeps & { configuration: { KEY_PEPPERS: KeyRing; IDENTITY_CACHE_MS: number } }

interface CachedIdentity {
  principal: Principal
  /** Milliseconds since the epoch. */
  readAt: number
}

// Results, never promises: the runtime cancels pending I/O with the request that started it.

/** A look-up reads one row. A response that cannot be stored fails after about the same time (`responses/object/postgres-away`). */
const LOOK_UP_LIMIT_MS = 3_000

/** Key ids by digest: the text of a key is not kept. */
const keyIds = new BoundedMap<string, string>(5_000)
/** Indexed by key id, so that rights which were renewed by id also apply to the digest. */
const identities = new BoundedMap<string, CachedIdentity>(5_000)

/**
 * Finds the principal behind a presented key.
 *
 * This isolate caches a known key for IDENTITY_CACHE_MS at most. The ledger compares its epoch at every admission, so a
 * change applies from the next call on (`renewPrincipal`). Refusals are never cached: a new key, or a user who is enabled
 * again, must work at once.
 * @param presentedKey the credential without `Bearer`.
 * @param address of the caller, null when unknown. An address whose keys keep being refused gets few look-ups, here and
 * over all isolates, except for keys that were valid when last seen here.
 * @throws ApiError internal with a time to try again when Postgres does not answer within LOOK_UP_LIMIT_MS.
 */
export async function identify(
  deps: IdentifyDeps,
  presentedKey: string,
  address: string | null,
): Promise<Identification> {
  const peppers = deps.configuration.KEY_PEPPERS
  const now = deps.clock()
  const digest = digestOf(peppers, presentedKey)
  if (digest === null) return { kind: 'refused', reason: 'malformed', owner: null }
  const cached = identities.get(keyIds.get(digest) ?? '')
  if (cached && isFresh(deps, cached, now)) return judgeExpiry(cached.principal, now)
  // An entry that is too old stays: it shows that the key was valid.
  if (!cached && !(await mayLookUp(deps, address))) {
    return { kind: 'refused', reason: 'unchecked', owner: null }
  }
  const allDigests = digestsFor(peppers, presentedKey).map((each) => each.digest)
  const rights = await lookUp(findKeyRights(deps.database, allDigests))
  const identification = identificationOf(deps, rights, now)
  if (identification.kind === 'known' && rights) {
    keyIds.set(digest, rights.keyId)
  } else if (identification.kind === 'refused' && identification.reason !== 'expired') {
    keyIds.delete(digest)
    await noteRefusal(deps, address)
  }
  return identification
}

/**
 * The principal behind a key that is valid by what this isolate has cached, as `identify`
 * would return it; null for any other key, which `identify` decides.
 */
export function knownPrincipal(
  deps: Pick<IdentifyDeps, 'clock' | 'configuration'>,
  presentedKey: string,
): Principal | null {
  const now = deps.clock()
  const digest = digestOf(deps.configuration.KEY_PEPPERS, presentedKey)
  const cached = digest === null ? undefined : identities.get(keyIds.get(digest) ?? '')
  if (!cached || !isFresh(deps, cached, now)) return null
  const identification = judgeExpiry(cached.principal, now)
  return identification.kind === 'known' ? identification.principal : null
}

const isFresh = (
  { configuration }: Pick<IdentifyDeps, 'configuration'>,
  { readAt }: CachedIdentity,
  now: number,
): boolean => now - readAt < configuration.IDENTITY_CACHE_MS

/** The digest of a presented key under the current pepper; null for a text that is no key. */
function digestOf(peppers: KeyRing, presentedKey: string): string | null {
  return parseApiKey(presentedKey) === null ? null : digestToken(peppers, presentedKey).digest
}

/** Rights that are read, in time for the caller to get the error. @throws ApiError internal */
export async function lookUp<Rights>(
  reading: Promise<Rights>,
  credentials: 'API keys' | 'Sessions' = 'API keys',
): Promise<Rights> {
  try {
    return await withinTime(reading, LOOK_UP_LIMIT_MS, 'looking up a credential')
  } catch (error) {
    const message = `${credentials} cannot be checked at the moment. Try again soon.`
    throw new ApiError('internal', message, { retryAfterSeconds: 2, cause: error })
  }
}

/** The members of a principal that identify it. */
export type PrincipalIdentity = Pick<Principal, 'organizationId' | 'userId' | 'credential'>

/**
 * Reads the rights of a principal again, by the id of its key or by its user: the key itself is not needed.
 * @throws what the database throws. The caller is refused then.
 */
export async function renewPrincipal(
  deps: RenewDeps,
  { organizationId, userId, credential }: PrincipalIdentity,
): Promise<Identification> {
  const readAt = deps.clock()
  if (credential.kind === 'key') {
    const rights = await findKeyRightsById(deps.database, organizationId, credential.keyId)
    return identificationOf(deps, rights, readAt)
  }
  const rights = await findMemberRights(deps.database, organizationId, userId)
  if (!rights || !mayCall(rights)) return { kind: 'refused', reason: 'disabled', owner: null }
  return { kind: 'known', principal: rightsOf(deps, rights, credential) }
}

/** Decides on a key by the rights that were read, and caches those of a valid one. */
function identificationOf(
  deps: Omit<RenewDeps, 'database'>,
  rights: KeyRights | null,
  readAt: number,
): Identification {
  if (!rights) return { kind: 'refused', reason: 'unknown', owner: null }
  if (rights.revokedAt || !mayCall(rights)) {
    identities.delete(rights.keyId)
    const reason = rights.revokedAt ? 'revoked' : 'disabled'
    return { kind: 'refused', reason, owner: ownerOf(principalOf(deps, rights), rights.keyId) }
  }
  const principal = principalOf(deps, rights)
  identities.set(rights.keyId, { principal, readAt })
  return judgeExpiry(principal, deps.clock())
}

const ownerOf = (
  { organizationId, userId, userLimitPerMinute: callsPerMinute }: Principal,
  keyId: string,
): KeyOwner => ({ organizationId, userId, keyId, callsPerMinute })

function judgeExpiry(principal: Principal, now: number): Identification {
  const { credential } = principal
  if (credential.kind !== 'key' || !isExpired(principal, now)) return { kind: 'known', principal }
  return { kind: 'refused', reason: 'expired', owner: ownerOf(principal, credential.keyId) }
}

/** Whether organization and membership are enabled. */
export const mayCall = ({ organizationDisabledAt, role, membershipDisabledAt }: UserRights): boolean =>
  !organizationDisabledAt && role !== null && !membershipDisabledAt

function principalOf(deps: { configuration: DefaultLimits }, rights: KeyRights): Principal {
  const { keyId, compatibility } = rights
  const scopes = KEY_SCOPES.filter((scope) => rights.scopes.includes(scope))
  const expiresAt = rights.expiresAt?.getTime() ?? null
  return rightsOf(deps, rights, { kind: 'key', keyId, scopes, compatibility, expiresAt })
}

/** The principal with the rights that were read. */
export function rightsOf(
  { configuration }: { configuration: DefaultLimits },
  rights: UserRights,
  credential: CallerCredential,
): Principal {
  const { ORGANIZATION_RATE_LIMIT, USER_RATE_LIMIT } = configuration
  const { userId, groupIds } = rights
  // Written by the management API only, which checks it.
  const settings = rights.toolSettings as ToolSettings | null
  return {
    credential,
    organizationId: rights.organizationId,
    userId: rights.userId,
    role: rights.role ?? 'member',
    groupIds: rights.groupIds,
    entitlements: rights.entitlements as Entitlement[],
    tools: toolRightsOf(settings ?? DEFAULT_TOOL_SETTINGS, { userId, groupIds, credential }),
    models: {
      all: rights.grantedModels.includes('*'),
      ids: new Set(rights.grantedModels.filter((id) => id !== '*')),
    },
    integrations: integrationGrantsOf(rights.grantedIntegrations),
    organizationLimitPerMinute: rights.organizationLimit ?? ORGANIZATION_RATE_LIMIT,
    userLimitPerMinute: rights.membershipLimit ?? rights.organizationUserLimit ?? USER_RATE_LIMIT,
    ledgerShards: rights.ledgerShards,
    epoch: rights.epoch,
  }
}
