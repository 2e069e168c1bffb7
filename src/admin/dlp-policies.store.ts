import { and, asc, desc, eq, isNull, lt, ne, sql } from 'drizzle-orm'
import { dlpPolicies, dlpPolicyVersions } from '../../schema/dlp.ts'
import {
  type OrganizationScope,
  raisingEpoch,
  selectPage,
  toPage,
} from '../ledger/changes/scoped-statements.store.ts'
import type { Page, PageRequest } from '../wire/page-cursor.ts'

const policyColumns = {
  id: dlpPolicies.id,
  name: dlpPolicies.name,
  enabled: dlpPolicies.enabled,
  version: dlpPolicies.version,
  createdAt: dlpPolicies.createdAt,
  updatedAt: dlpPolicies.updatedAt,
  body: dlpPolicyVersions.body,
}

/** A policy with the body of its current version, as it was stored. */
export type PolicyRow = Pick<
  typeof dlpPolicies.$inferSelect,
  'id' | 'name' | 'enabled' | 'version' | 'createdAt' | 'updatedAt'
> & { body: unknown }

const versionColumns = {
  version: dlpPolicyVersions.version,
  name: dlpPolicyVersions.name,
  enabled: dlpPolicyVersions.enabled,
  author: dlpPolicyVersions.author,
  createdAt: dlpPolicyVersions.createdAt,
}

export type PolicyVersionRow = Pick<typeof dlpPolicyVersions.$inferSelect, keyof typeof versionColumns>

/** The content of one version. */
export interface PolicyState {
  name: string
  enabled: boolean
  /** The body in the form of `src/wire/dlp.ts`. */
  body: unknown
  author: string
}

const isCurrent = (organizationId: string) =>
  and(eq(dlpPolicies.organizationId, organizationId), isNull(dlpPolicies.deletedAt))

const isCurrentPolicy = (organizationId: string, policyId: string) =>
  and(isCurrent(organizationId), eq(dlpPolicies.id, policyId))

const isCurrentVersion = and(
  eq(dlpPolicyVersions.policyId, dlpPolicies.id),
  eq(dlpPolicyVersions.version, dlpPolicies.version),
)

/** Stores a policy with its first version. @throws the database's unique violation for its name. */
export function insertPolicy(scope: OrganizationScope, policyId: string, state: PolicyState) {
  const { database, organizationId } = scope
  const { name, enabled } = state
  const row = { organizationId, version: 1, name, enabled }
  return raisingEpoch(
    scope,
    database.insert(dlpPolicies).values({ ...row, id: policyId }),
    database.insert(dlpPolicyVersions).values({ ...row, ...state, policyId }),
  )
}

/**
 * Stores the next version of a policy and points the policy to it, if its version still is the one that the change was
 * made for.
 * @returns the id of the policy; no row when another change came first.
 */
export function updatePolicy(
  scope: OrganizationScope,
  at: { policyId: string; version: number },
  { name, enabled, body, author }: PolicyState,
) {
  const { database, organizationId } = scope
  const isUnchanged = and(isCurrentPolicy(organizationId, at.policyId), eq(dlpPolicies.version, at.version))
  return raisingEpoch(
    scope,
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
  )
}

/** Deletes a policy; its versions stay. @returns its id; no row when it was deleted already. */
export const deletePolicy = (scope: OrganizationScope, policyId: string) =>
  raisingEpoch(
    scope,
    scope.database
      .update(dlpPolicies)
      .set({ deletedAt: sql`now()`, updatedAt: sql`now()` })
      .where(isCurrentPolicy(scope.organizationId, policyId))
      .returning({ id: dlpPolicies.id }),
  )

/** @returns null for a deleted policy, too. */
export async function selectPolicy(
  { database, organizationId }: OrganizationScope,
  policyId: string,
): Promise<PolicyRow | null> {
  const [row] = await database
    .select(policyColumns)
    .from(dlpPolicies)
    .innerJoin(dlpPolicyVersions, isCurrentVersion)
    .where(isCurrentPolicy(organizationId, policyId))
  return row ?? null
}

export function selectPolicies(
  { database, organizationId }: OrganizationScope,
  page: PageRequest,
): Promise<Page<PolicyRow>> {
  return selectPage(page, { at: dlpPolicies.createdAt, id: dlpPolicies.id }, (position, isAfter) =>
    database
      .select({ ...policyColumns, position })
      .from(dlpPolicies)
      .innerJoin(dlpPolicyVersions, isCurrentVersion)
      .where(and(isCurrent(organizationId), isAfter)),
  )
}

/** Enabled policies whose scope names a group, as a query that can also be a part of another. */
export function policiesNamingGroup({ database, organizationId }: OrganizationScope, groupId: string) {
  const named = JSON.stringify({ scope: { group_ids: [groupId] } })
  return database
    .select({ name: dlpPolicies.name })
    .from(dlpPolicies)
    .innerJoin(dlpPolicyVersions, isCurrentVersion)
    .where(
      and(
        isCurrent(organizationId),
        eq(dlpPolicies.enabled, true),
        sql`${dlpPolicyVersions.body} @> ${named}::jsonb`,
      ),
    )
    .orderBy(asc(dlpPolicies.name))
}

/** Number of an organization's policies besides one, and the length of their bodies together, normalised (NFKC). */
export async function selectPolicyTotals(
  { database, organizationId }: OrganizationScope,
  exceptId: string,
): Promise<{ count: number; length: number }> {
  const length = sql`length(normalize(${dlpPolicyVersions.body}::text, nfkc))`
  const [row] = await database
    .select({
      count: sql`count(*)`.mapWith(Number),
      length: sql`coalesce(sum(${length}), 0)`.mapWith(Number),
    })
    .from(dlpPolicies)
    .innerJoin(dlpPolicyVersions, isCurrentVersion)
    .where(and(isCurrent(organizationId), ne(dlpPolicies.id, exceptId)))
  return row ?? { count: 0, length: 0 }
}

const isVersionOf = (organizationId: string, policyId: string) =>
  and(eq(dlpPolicyVersions.organizationId, organizationId), eq(dlpPolicyVersions.policyId, policyId))

/** Versions of a policy, deleted or not, newest first. */
export async function selectPolicyVersions(
  { database, organizationId }: OrganizationScope,
  policyId: string,
  page: PageRequest,
): Promise<Page<PolicyVersionRow>> {
  const isAfter = page.after === null ? undefined : lt(dlpPolicyVersions.version, page.after.at)
  const rows = await database
    .select(versionColumns)
    .from(dlpPolicyVersions)
    .where(and(isVersionOf(organizationId, policyId), isAfter))
    .orderBy(desc(dlpPolicyVersions.version))
    .limit(page.limit + 1)
  return toPage(rows, page, ({ version }) => ({ at: version, id: policyId }))
}

export async function selectPolicyVersion(
  { database, organizationId }: OrganizationScope,
  policyId: string,
  version: number,
): Promise<(PolicyVersionRow & { body: unknown }) | null> {
  const [row] = await database
    .select({ ...versionColumns, body: dlpPolicyVersions.body })
    .from(dlpPolicyVersions)
    .where(and(isVersionOf(organizationId, policyId), eq(dlpPolicyVersions.version, version)))
  return row ?? null
}
