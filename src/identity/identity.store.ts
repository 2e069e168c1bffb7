import { and, eq, exists, gt, inArray, isNull, lt, or, type SQL, sql } from 'drizzle-orm'
import type { Database } from '../../schema/database.ts'
import {
  apiKeys,
  entitlements,
  groupMemberships,
  groups,
  memberships,
  organizations,
  sessions,
} from '../../schema/identity.ts'
import { integrationGrants } from '../../schema/integrations.ts'
import { grants } from '../../schema/models.ts'
import type { Compatibility } from '../wire/compatibility.ts'
import type { GrantedIntegration } from './integration-rights.ts'
import type { Role } from './principal.ts'

/** The rights of a user in an organization, read from one snapshot of the database. */
export interface UserRights {
  organizationId: string
  userId: string
  organizationDisabledAt: Date | null
  /** Null when the user is not a member of the organization any more. */
  role: Role | null
  membershipDisabledAt: Date | null
  groupIds: string[]
  entitlements: string[]
  /** Model ids granted to the organization, a group of the user, its role or the user; `*` stands for every model. */
  grantedModels: string[]
  grantedIntegrations: GrantedIntegration[]
  /** Calls a minute; null where the deployment's default holds. */
  organizationLimit: number | null
  organizationUserLimit: number | null
  membershipLimit: number | null
  ledgerShards: number
  /** Null where the defaults hold. */
  toolSettings: Record<string, unknown> | null
  epoch: number
}

/** A key, with the rights of its user. */
export interface KeyRights extends UserRights {
  keyId: string
  scopes: string[]
  compatibility: Compatibility
  expiresAt: Date | null
  revokedAt: Date | null
}

/**
 * Finds a key by its possible digests, with the rights of its user. It is one statement, so that rights and epoch are of the
 * same snapshot: a cached record is stale exactly when its epoch is. It has no organization id: it finds the organization.
 * @param digests hex digests of one key, one for each pepper.
 * @returns null when no key has any of them.
 */
export function findKeyRights(database: Database, digests: readonly string[]): Promise<KeyRights | null> {
  return keyRights(database, inArray(apiKeys.digest, [...digests]))
}

/** Finds a key by its id, with the rights of its user. @returns null when the organization has no such key. */
export function findKeyRightsById(
  database: Database,
  organizationId: string,
  keyId: string,
): Promise<KeyRights | null> {
  return keyRights(database, and(eq(apiKeys.organizationId, organizationId), eq(apiKeys.id, keyId)))
}

/** The membership whose rights a key or a session has. */
const isMembershipOf = (table: typeof apiKeys | typeof sessions) =>
  and(eq(memberships.organizationId, table.organizationId), eq(memberships.userId, table.userId))

/** Whether the session of a playground's key is open. */
const hasSession = (database: Database) => {
  const open = database
    .select({ id: sessions.id })
    .from(sessions)
    .where(
      and(eq(sessions.id, apiKeys.sessionId), isNull(sessions.endedAt), gt(sessions.expiresAt, sql`now()`)),
    )
  return or(isNull(apiKeys.sessionId), exists(open))
}

async function keyRights(database: Database, condition: SQL | undefined): Promise<KeyRights | null> {
  const [row] = await database
    .select({
      keyId: apiKeys.id,
      scopes: apiKeys.scopes,
      compatibility: apiKeys.compatibility,
      expiresAt: apiKeys.expiresAt,
      revokedAt: apiKeys.revokedAt,
      ...userRights(database, apiKeys),
    })
    .from(apiKeys)
    .innerJoin(organizations, eq(organizations.id, apiKeys.organizationId))
    .leftJoin(memberships, isMembershipOf(apiKeys))
    .where(and(condition, hasSession(database)))
    .limit(1)
  // drizzle's type makes all columns nullable, also those of the key's own row.
  return (row as KeyRights | undefined) ?? null
}

/** A session, with the rights of its user. */
export interface SessionRights extends UserRights {
  sessionId: string
  signedInAt: Date
  /** Null where the sign-in was the proof. */
  authenticatedAt: Date | null
  lastSeenAt: Date
  expiresAt: Date
  endedAt: Date | null
}

/** Finds a session by its possible digests, as `findKeyRights` finds a key. @returns null when no session has any of them. */
export async function findSessionRights(
  database: Database,
  digests: readonly string[],
): Promise<SessionRights | null> {
  const [row] = await database
    .select({
      sessionId: sessions.id,
      signedInAt: sessions.signedInAt,
      authenticatedAt: sessions.authenticatedAt,
      lastSeenAt: sessions.lastSeenAt,
      expiresAt: sessions.expiresAt,
      endedAt: sessions.endedAt,
      ...userRights(database, sessions),
    })
    .from(sessions)
    .innerJoin(organizations, eq(organizations.id, sessions.organizationId))
    .leftJoin(memberships, isMembershipOf(sessions))
    .where(inArray(sessions.digest, [...digests]))
    .limit(1)
  return (row as SessionRights | undefined) ?? null
}

/** Notes that a session is in use, so that it does not end as idle. @param seenBefore a later note makes this one needless. */
export async function updateSessionSeen(
  database: Database,
  { organizationId, sessionId }: { organizationId: string; sessionId: string },
  at: Date,
  seenBefore: Date,
): Promise<void> {
  await database
    .update(sessions)
    .set({ lastSeenAt: at })
    .where(
      and(
        eq(sessions.organizationId, organizationId),
        eq(sessions.id, sessionId),
        lt(sessions.lastSeenAt, seenBefore),
      ),
    )
}

/** The rights of a member, for a caller without a key. @returns null when the user is not a member of the organization. */
export async function findMemberRights(
  database: Database,
  organizationId: string,
  userId: string,
): Promise<UserRights | null> {
  const [row] = await database
    .select(userRights(database, memberships))
    .from(memberships)
    .innerJoin(organizations, eq(organizations.id, memberships.organizationId))
    .where(and(eq(memberships.organizationId, organizationId), eq(memberships.userId, userId)))
    .limit(1)
  return row ?? null
}

/** A table whose rows belong to a user of an organization. */
type OwnedByUser = typeof apiKeys | typeof memberships | typeof sessions

/** The columns of `UserRights`, for the user that a row of `owner` names. */
const userRights = (database: Database, owner: OwnedByUser) => ({
  organizationId: owner.organizationId,
  userId: owner.userId,
  organizationDisabledAt: organizations.disabledAt,
  role: memberships.role,
  membershipDisabledAt: memberships.disabledAt,
  groupIds: groupIdsOf(database, owner),
  entitlements: entitlementsOf(database, owner),
  grantedModels: modelsGrantedTo(database, owner),
  grantedIntegrations: integrationsGrantedTo(database, owner),
  organizationLimit: organizations.rateLimitPerMinute,
  organizationUserLimit: organizations.userRateLimitPerMinute,
  membershipLimit: memberships.rateLimitPerMinute,
  ledgerShards: organizations.ledgerShards,
  toolSettings: organizations.toolSettings,
  epoch: organizations.epoch,
})

/** Groups count only where group and membership row name the owner's organization: no foreign key ties the two. */
function groupsOf(database: Database, owner: OwnedByUser) {
  return database
    .select({ id: sql<string>`${groups.id}::text` })
    .from(groupMemberships)
    .innerJoin(groups, eq(groups.id, groupMemberships.groupId))
    .where(
      and(
        eq(groupMemberships.organizationId, owner.organizationId),
        eq(groupMemberships.userId, owner.userId),
        eq(groups.organizationId, owner.organizationId),
      ),
    )
}

function groupIdsOf(database: Database, owner: OwnedByUser): SQL<string[]> {
  return sql<string[]>`array${groupsOf(database, owner)}`
}

function entitlementsOf(database: Database, owner: OwnedByUser): SQL<string[]> {
  const names = database
    .select({ name: entitlements.name })
    .from(entitlements)
    .where(and(eq(entitlements.organizationId, owner.organizationId), eq(entitlements.userId, owner.userId)))
  return sql<string[]>`array${names}`
}

function modelsGrantedTo(database: Database, owner: OwnedByUser): SQL<string[]> {
  const ids = database
    .selectDistinct({ modelId: grants.modelId })
    .from(grants)
    .where(grantedTo(database, grants, owner))
  return sql<string[]>`array${ids}`
}

function integrationsGrantedTo(database: Database, owner: OwnedByUser): SQL<GrantedIntegration[]> {
  const rows = database
    .select({
      row: sql`jsonb_build_object('integration', ${integrationGrants.integration}, 'tools', ${integrationGrants.tools})`,
    })
    .from(integrationGrants)
    .where(grantedTo(database, integrationGrants, owner))
  return sql<GrantedIntegration[]>`to_jsonb(array${rows})`
}

/** The grants of the owner's organization to itself, to the owner, to its role and to its groups. */
function grantedTo(database: Database, table: typeof grants | typeof integrationGrants, owner: OwnedByUser) {
  const to = (type: 'organization' | 'group' | 'role' | 'user', subject: SQL) =>
    and(eq(table.subjectType, type), sql`${table.subjectId} in (${subject})`)
  return and(
    eq(table.organizationId, owner.organizationId),
    or(
      to('organization', sql`${owner.organizationId}::text`),
      to('user', sql`${owner.userId}::text`),
      to('role', sql`${memberships.role}`),
      to('group', sql`${groupsOf(database, owner)}`),
    ),
  )
}
