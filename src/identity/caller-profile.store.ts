import { and, eq } from 'drizzle-orm'
import type { Database } from '../../schema/database.ts'
import { apiKeys, organizations, users } from '../../schema/identity.ts'
import { keyIdOf, type Principal } from './principal.ts'

/** The names behind the ids of a principal. */
interface CallerProfile {
  userName: string
  email: string
  organizationName: string
  organizationSlug: string
  /** Null for a caller without a key. */
  keyLabel: string | null
}

/** @returns null when the organization or the user does not exist any more. */
export async function selectCallerProfile(
  database: Database,
  principal: Pick<Principal, 'organizationId' | 'userId' | 'credential'>,
): Promise<CallerProfile | null> {
  const { organizationId, userId } = principal
  const ofKey = and(eq(apiKeys.organizationId, organizationId), eq(apiKeys.id, keyIdOf(principal) ?? ''))
  const [row] = await database
    .select({
      userName: users.name,
      email: users.email,
      organizationName: organizations.name,
      organizationSlug: organizations.slug,
      keyLabel: apiKeys.label,
    })
    .from(organizations)
    .innerJoin(users, eq(users.id, userId))
    .leftJoin(apiKeys, ofKey)
    .where(eq(organizations.id, organizationId))
    .limit(1)
  return row ?? null
}
