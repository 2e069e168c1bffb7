import { and, asc, eq, inArray, isNull, sql } from 'drizzle-orm'
import type { Database } from '../../../schema/database.ts'
import { dlpPolicies, dlpPolicyVersions } from '../../../schema/dlp.ts'

/** The current version of a policy. */
export interface CurrentPolicyRow {
  id: string
  version: number
  name: string
  /** Null where the caller has this version already: a version never changes. */
  body: unknown
}

/** Names one version of one policy. */
export const versionKey = ({ id, version }: { id: string; version: number }) => `${id}@${version}`

/**
 * Every policy that holds in an organization now, in order of the ids.
 * @param known versions (`versionKey`) whose bodies need not be read again.
 */
export async function selectEnabledPolicies(
  database: Database,
  organizationId: string,
  known: readonly string[],
): Promise<CurrentPolicyRow[]> {
  const key = sql<string>`${dlpPolicies.id}::text || '@' || ${dlpPolicies.version}::text`
  const isKnown = known.length === 0 ? sql`false` : inArray(key, [...known])
  return (
    database
      .select({
        id: dlpPolicies.id,
        version: dlpPolicies.version,
        name: dlpPolicies.name,
        body: sql<unknown>`case when ${isKnown} then null else ${dlpPolicyVersions.body} end`.mapWith(
          dlpPolicyVersions.body,
        ),
      })
      .from(dlpPolicies)
      // A left join: a policy whose version is missing must fail as unreadable, not disappear.
      .leftJoin(
        dlpPolicyVersions,
        and(
          eq(dlpPolicyVersions.policyId, dlpPolicies.id),
          eq(dlpPolicyVersions.version, dlpPolicies.version),
          eq(dlpPolicyVersions.organizationId, dlpPolicies.organizationId),
        ),
      )
      .where(
        and(
          eq(dlpPolicies.organizationId, organizationId),
          eq(dlpPolicies.enabled, true),
          isNull(dlpPolicies.deletedAt),
        ),
      )
      .orderBy(asc(dlpPolicies.id))
  )
}
