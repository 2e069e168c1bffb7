import { and, asc, desc, eq, inArray, isNull, lt, sql } from 'drizzle-orm'
import type { Database } from '../../../schema/database.ts'
import { dlpPolicies, dlpPolicyVersions } from '../../../schema/dlp.ts'
import { groups, memberships } from '../../../schema/identity.ts'
import { models } from '../../../schema/models.ts'
import type { Page, PageRequest } from '../../wire/page-cursor.ts'
import {
  beyond,
  microseconds,
  newestFirst,
  raisedEpoch,
  raiseOrganizationEpoch,
  toPage,
} from './administration.store.ts'

const policyColumns = {
  id: dlpPolicies.id,
  name: dlpPolicies.name,
  enabled: dlpPolicies.enabled,
  version: dlpPolicies.version,
  createdAt: dlpPolicies.createdAt,
  updatedAt: dlpPolicies.updatedAt,
  body: dlpPolicyVersions.body,
}

/** A policy with what its current version says, as it was stored. */
export interface PolicyRow {
  id: string
  name: string
  enabled: boolean
  version: number
  createdAt: Date
  updatedAt: Date
  body: unknown
}

const versionColumns = {
  version: dlpPolicyVersions.version,
  name: dlpPolicyVersions.name,
  enabled: dlpPolicyVersions.enabled,
  author: dlpPolicyVersions.author,
  createdAt: dlpPolicyVersions.createdAt,
}

export interface VersionRow {
  version: number
  name: string
  enabled: boolean
  author: string
  createdAt: Date
}

/** What makes up a version. */
export interface PolicyState {
  name: string
  enabled: boolean
  /** As `src/wire/dlp.ts` has it. */
  body: unknown
  author: string
}

const isPolicy = (organizationId: string, policyId: string) =>
  and(eq(dlpPolicies.organizationId, organizationId), eq(dlpPolicies.id, policyId))

const isCurrentVersion = and(
  eq(dlpPolicyVersions.policyId, dlpPolicies.id),
  eq(dlpPolicyVersions.version, dlpPolicies.version),
)

/** Writes a policy with its first version and raises the epoch. @throws the database's unique violation for its name. */
export async function insertPolicy(
  database: Database,
  organizationId: string,
  policyId: string,
  { name, enabled, body, author }: PolicyState,
): Promise<number> {
  const [raised] = await database.batch([
    raiseOrganizationEpoch(database, organizationId),
    database.insert(dlpPolicies).values({ id: policyId, organizationId, name, enabled, version: 1 }),
    database
      .insert(dlpPolicyVersions)
      .values({ policyId, version: 1, organizationId, name, enabled, body, author }),
  ])
  return raisedEpoch(raised)
}

/**
 * Writes the next version of a policy and points the policy to it, if its version still is the one that the change was
 * made for. The epoch is raised first: its row lock lets one change of an organization's policies run at a time.
 * @returns the raised epoch, or null when another change came first.
 */
export async function updatePolicy(
  database: Database,
  organizationId: string,
  at: { policyId: string; version: number },
  { name, enabled, body, author }: PolicyState,
): Promise<number | null> {
  const isUnchanged = and(
    isPolicy(organizationId, at.policyId),
    eq(dlpPolicies.version, at.version),
    isNull(dlpPolicies.deletedAt),
  )
  const [raised, , updated] = await database.batch([
    raiseOrganizationEpoch(database, organizationId),
    database.insert(dlpPolicyVersions).select(
      database
        .select({
          policyId: dlpPolicies.id,
          version: sql<number>`${dlpPolicies.version} + 1`.as('version'),
          organizationId: dlpPolicies.organizationId,
          name: sql<string>`${name}::text`.as('name'),
          enabled: sql<boolean>`${enabled}::boolean`.as('enabled'),
          body: sql<unknown>`${JSON.stringify(body)}::jsonb`.as('body'),
          author: sql<string>`${author}::text`.as('author'),
          createdAt: sql<Date>`now()`.as('created_at'),
        })
        .from(dlpPolicies)
        .where(isUnchanged),
    ),
    database
      .update(dlpPolicies)
      .set({ version: sql`${dlpPolicies.version} + 1`, name, enabled, updatedAt: sql`now()` })
      .where(isUnchanged)
      .returning({ id: dlpPolicies.id }),
  ])
  return updated.length === 0 ? null : raisedEpoch(raised)
}

/** Takes a policy out of use for good; its versions stay. @returns the raised epoch, or null when it was gone already. */
export async function deletePolicy(
  database: Database,
  organizationId: string,
  policyId: string,
): Promise<number | null> {
  const [raised, deleted] = await database.batch([
    raiseOrganizationEpoch(database, organizationId),
    database
      .update(dlpPolicies)
      .set({ deletedAt: sql`now()`, updatedAt: sql`now()` })
      .where(and(isPolicy(organizationId, policyId), isNull(dlpPolicies.deletedAt)))
      .returning({ id: dlpPolicies.id }),
  ])
  return deleted.length === 0 ? null : raisedEpoch(raised)
}

/** @returns null for a deleted policy, too. */
export async function selectPolicy(
  database: Database,
  organizationId: string,
  policyId: string,
): Promise<PolicyRow | null> {
  const [row] = await database
    .select(policyColumns)
    .from(dlpPolicies)
    .innerJoin(dlpPolicyVersions, isCurrentVersion)
    .where(and(isPolicy(organizationId, policyId), isNull(dlpPolicies.deletedAt)))
  return row ?? null
}

export async function selectPolicies(
  database: Database,
  organizationId: string,
  page: PageRequest,
): Promise<Page<PolicyRow>> {
  const rows = await database
    .select({ ...policyColumns, at: microseconds(dlpPolicies.createdAt) })
    .from(dlpPolicies)
    .innerJoin(dlpPolicyVersions, isCurrentVersion)
    .where(
      and(
        eq(dlpPolicies.organizationId, organizationId),
        isNull(dlpPolicies.deletedAt),
        beyond(dlpPolicies.createdAt, dlpPolicies.id, page.after),
      ),
    )
    .orderBy(...newestFirst(dlpPolicies.createdAt, dlpPolicies.id))
    .limit(page.limit + 1)
  return toPage(rows, page, ({ at, id }) => ({ at, id }))
}

/** Enabled policies whose scope names a group, as a query that can also be a part of another. */
export function policiesNamingGroup(database: Database, organizationId: string, groupId: string) {
  const named = JSON.stringify({ scope: { group_ids: [groupId] } })
  return database
    .select({ name: dlpPolicies.name })
    .from(dlpPolicies)
    .innerJoin(dlpPolicyVersions, isCurrentVersion)
    .where(
      and(
        eq(dlpPolicies.organizationId, organizationId),
        eq(dlpPolicies.enabled, true),
        isNull(dlpPolicies.deletedAt),
        sql`${dlpPolicyVersions.body} @> ${named}::jsonb`,
      ),
    )
    .orderBy(asc(dlpPolicies.name))
}

/** How many policies an organization has, and the length of what all but one of them say, normalised (NFKC). */
export async function selectPolicyTotals(
  database: Database,
  organizationId: string,
  exceptId: string,
): Promise<{ count: number; length: number }> {
  const [row] = await database
    .select({
      count: sql<number>`count(*)`.mapWith(Number),
      length: sql<number>`coalesce(sum(length(normalize(${dlpPolicyVersions.body}::text, nfkc))), 0)`.mapWith(
        Number,
      ),
    })
    .from(dlpPolicies)
    .innerJoin(dlpPolicyVersions, isCurrentVersion)
    .where(
      and(
        eq(dlpPolicies.organizationId, organizationId),
        isNull(dlpPolicies.deletedAt),
        sql`${dlpPolicies.id} <> ${exceptId}`,
      ),
    )
  return row ?? { count: 0, length: 0 }
}

/** Versions of a policy, deleted or not, newest first. */
export async function selectVersions(
  database: Database,
  organizationId: string,
  policyId: string,
  page: PageRequest,
): Promise<Page<VersionRow>> {
  const rows = await database
    .select(versionColumns)
    .from(dlpPolicyVersions)
    .where(
      and(
        eq(dlpPolicyVersions.organizationId, organizationId),
        eq(dlpPolicyVersions.policyId, policyId),
        page.after === null ? undefined : lt(dlpPolicyVersions.version, page.after.at),
      ),
    )
    .orderBy(desc(dlpPolicyVersions.version))
    .limit(page.limit + 1)
  return toPage(rows, page, ({ version }) => ({ at: version, id: policyId }))
}

export async function selectVersion(
  database: Database,
  organizationId: string,
  policyId: string,
  version: number,
): Promise<(VersionRow & { body: unknown }) | null> {
  const [row] = await database
    .select({ ...versionColumns, body: dlpPolicyVersions.body })
    .from(dlpPolicyVersions)
    .where(
      and(
        eq(dlpPolicyVersions.organizationId, organizationId),
        eq(dlpPolicyVersions.policyId, policyId),
        eq(dlpPolicyVersions.version, version),
      ),
    )
  return row ?? null
}

/** Which of the groups, users and models of a scope the organization has. */
export async function selectKnownScope(
  database: Database,
  organizationId: string,
  scope: Record<'groupIds' | 'userIds' | 'modelIds', readonly string[]>,
): Promise<Set<string>> {
  const none = Promise.resolve<Array<{ id: string }>>([])
  const { groupIds, userIds, modelIds } = scope
  const found = await Promise.all([
    groupIds.length === 0
      ? none
      : database
          .select({ id: groups.id })
          .from(groups)
          .where(and(eq(groups.organizationId, organizationId), inArray(groups.id, [...groupIds]))),
    userIds.length === 0
      ? none
      : database
          .select({ id: memberships.userId })
          .from(memberships)
          .where(
            and(eq(memberships.organizationId, organizationId), inArray(memberships.userId, [...userIds])),
          ),
    // Models belong to the deployment, not to an organization.
    modelIds.length === 0
      ? none
      : database
          .select({ id: models.id })
          .from(models)
          .where(inArray(models.id, [...modelIds])),
  ])
  return new Set(found.flat().map(({ id }) => id))
}
