import { sql } from 'drizzle-orm'
import { apiKeys } from '../../schema/identity.ts'
import type { OrganizationScope } from '../ledger/changes/scoped-statements.store.ts'

/** Keys of one session that work at one time: a few pages that are open beside each other. */
const MOST_KEYS = 20

/** A key of a playground, as it is stored. */
type NewPlaygroundKey = Pick<
  typeof apiKeys.$inferInsert,
  'id' | 'userId' | 'label' | 'digest' | 'pepperId' | 'scopes'
> & { sessionId: string; expiresAt: Date }

/** Adds a key for the playground of a session, unless that has many. Keys of the session that have expired go. @returns whether it was added. */
export async function insertPlaygroundKey(
  { database, organizationId }: OrganizationScope,
  { id, userId, sessionId, label, digest, pepperId, scopes, expiresAt }: NewPlaygroundKey,
  now: Date,
): Promise<boolean> {
  const at = sql`${now.toISOString()}::timestamptz`
  const isOfSession = sql`session_id = ${sessionId} AND organization_id IS NOT DISTINCT FROM ${organizationId}::uuid`
  const { rows } = await database.execute(sql`
    WITH expired AS (DELETE FROM ${apiKeys} WHERE ${isOfSession} AND expires_at <= ${at})
    INSERT INTO ${apiKeys} (id, organization_id, user_id, session_id, label, digest, pepper_id, scopes, expires_at)
    SELECT ${id}, ${organizationId}::uuid, ${userId}::uuid, ${sessionId}, ${label}, ${digest}, ${pepperId},
      string_to_array(${scopes.join(',')}, ','), ${expiresAt.toISOString()}::timestamptz
    WHERE (SELECT count(*) FROM ${apiKeys} WHERE ${isOfSession} AND expires_at > ${at}) < ${MOST_KEYS}
    RETURNING id`)
  return rows.length > 0
}
