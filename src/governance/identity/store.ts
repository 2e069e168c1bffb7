import { and, eq, inArray, or, type SQL, sql } from 'drizzle-orm'
import {
  apiKeys,
  entitlements,
  groupMemberships,
  groups,
  memberships,
  organizations,
} from '../../../schema/identity.ts'
import { deploymentEpochs, grants } from '../../../schema/models.ts'
import type { Database } from '../../deps.ts'
import type { Role } from '../principal.ts'

/** A key and what its user may do, all from one snapshot of the database. */
export interface KeyRights {
  keyId: string
  organizationId: string
  userId: string
  scopes: string[]
  expiresAt: Date | null
  revokedAt: Date | null
  organizationDisabledAt: Date | null
  /** Null when the user is no longer a member of the organization. */
  role: Role | null
  membershipDisabledAt: Date | null
  groupIds: string[]
  entitlements: string[]
  /** Model ids granted to the organization, a group of the user, its role or itself; `*` stands for every model. */
  grantedModels: string[]
  /** Calls a minute; null where the deployment's default holds. */
  organizationLimit: number | null
  organizationUserLimit: number | null
  membershipLimit: number | null
  epoch: number
}

/**
 * Finds a key by its possible digests, with the rights of its user, in one statement: rights and epoch are of the
 * same snapshot, so a cached record is stale exactly when its epoch is. The one query of this module that takes no
 * organization id, because the organization is what it finds.
 * @param digests hex digests of one key, one for each pepper.
 * @returns null when no key has any of them.
 */
export function findKeyRights(database: Database, digests: readonly string[]): Promise<KeyRights | null> {
  return keyRights(database, inArray(apiKeys.digest, [...digests]))
}

/** The same for a key that is known already, by its id. @returns null when the organization has no such key. */
export function findKeyRightsById(
  database: Database,
  organizationId: string,
  keyId: string,
): Promise<KeyRights | null> {
  return keyRights(database, and(eq(apiKeys.organizationId, organizationId), eq(apiKeys.id, keyId)))
}

async function keyRights(database: Database, condition: SQL | undefined): Promise<KeyRights | null> {
  const [row] = await database
    .select({
      keyId: apiKeys.id,
      organizationId: apiKeys.organizationId,
      userId: apiKeys.userId,
      scopes: apiKeys.scopes,
      expiresAt: apiKeys.expiresAt,
      revokedAt: apiKeys.revokedAt,
      organizationDisabledAt: organizations.disabledAt,
      role: memberships.role,
      membershipDisabledAt: memberships.disabledAt,
      groupIds: groupIdsOfKeyOwner(database),
      entitlements: entitlementsOfKeyOwner(database),
      grantedModels: modelsGrantedToKeyOwner(database),
      organizationLimit: organizations.rateLimitPerMinute,
      organizationUserLimit: organizations.userRateLimitPerMinute,
      membershipLimit: memberships.rateLimitPerMinute,
      epoch: organizations.epoch,
    })
    .from(apiKeys)
    .innerJoin(organizations, eq(organizations.id, apiKeys.organizationId))
    .leftJoin(
      memberships,
      and(eq(memberships.organizationId, apiKeys.organizationId), eq(memberships.userId, apiKeys.userId)),
    )
    .where(condition)
    .limit(1)
  return row ?? null
}

/**
 * The epochs as Postgres has them now.
 * @returns `organization` is null when there is no such organization; `catalogue` is 1 before the first change.
 */
export async function readEpochs(
  database: Database,
  organizationId: string,
): Promise<{ organization: number | null; catalogue: number }> {
  const organizationEpoch = database
    .select({ epoch: organizations.epoch })
    .from(organizations)
    .where(eq(organizations.id, organizationId))
  const catalogueEpoch = database
    .select({ epoch: deploymentEpochs.epoch })
    .from(deploymentEpochs)
    .where(eq(deploymentEpochs.name, 'catalogue'))
  const { rows } = await database.execute<{ organization: string | null; catalogue: string | null }>(
    sql`select ${organizationEpoch} as organization, ${catalogueEpoch} as catalogue`,
  )
  const epochs = rows[0]
  return {
    organization: epochs?.organization == null ? null : Number(epochs.organization),
    catalogue: Number(epochs?.catalogue ?? 1),
  }
}

/** Groups count only where group and membership row name the key's organization: no foreign key ties the two. */
function groupsOfKeyOwner(database: Database) {
  return database
    .select({ id: sql<string>`${groups.id}::text` })
    .from(groupMemberships)
    .innerJoin(groups, eq(groups.id, groupMemberships.groupId))
    .where(
      and(
        eq(groupMemberships.organizationId, apiKeys.organizationId),
        eq(groupMemberships.userId, apiKeys.userId),
        eq(groups.organizationId, apiKeys.organizationId),
      ),
    )
}

function groupIdsOfKeyOwner(database: Database): SQL<string[]> {
  return sql<string[]>`array${groupsOfKeyOwner(database)}`
}

function entitlementsOfKeyOwner(database: Database): SQL<string[]> {
  const names = database
    .select({ name: entitlements.name })
    .from(entitlements)
    .where(
      and(eq(entitlements.organizationId, apiKeys.organizationId), eq(entitlements.userId, apiKeys.userId)),
    )
  return sql<string[]>`array${names}`
}

function modelsGrantedToKeyOwner(database: Database): SQL<string[]> {
  const grantedTo = (type: 'organization' | 'group' | 'role' | 'user', subject: SQL) =>
    and(eq(grants.subjectType, type), sql`${grants.subjectId} in (${subject})`)
  const ids = database
    .selectDistinct({ modelId: grants.modelId })
    .from(grants)
    .where(
      and(
        eq(grants.organizationId, apiKeys.organizationId),
        or(
          grantedTo('organization', sql`${apiKeys.organizationId}::text`),
          grantedTo('user', sql`${apiKeys.userId}::text`),
          grantedTo('role', sql`${memberships.role}`),
          grantedTo('group', sql`${groupsOfKeyOwner(database)}`),
        ),
      ),
    )
  return sql<string[]>`array${ids}`
}
