import { and, eq, gt, inArray, isNull, type SQL, sql } from 'drizzle-orm'
import type { Database } from '../../../schema/database.ts'
import { entitlements, memberships, passkeys, sessions, setupLinks } from '../../../schema/identity.ts'
import { textArray } from '../../../schema/sql-values.ts'
import type { OrganizationScope } from '../../ledger/changes/scoped-statements.store.ts'
import { OPERATOR } from '../../wire/endpoints/permissions.ts'
import { lockMembership } from '../lock-members.store.ts'
import { deleteIdentity } from './identities.store.ts'
import { deletePasskeys, type NewPasskey } from './passkeys.store.ts'
import { endSessions, type NewSession, startSessionOf } from './sessions.store.ts'
import { isEnabled } from './sign-in-members.store.ts'

type SetupLinkRow = typeof setupLinks.$inferSelect

/** The setup link of a token, by its possible digests. It has no organization id: it finds the organization. */
export async function selectSetupLink(
  database: Database,
  digests: readonly string[],
): Promise<SetupLinkRow | null> {
  const [row] = await database
    .select()
    .from(setupLinks)
    .where(inArray(setupLinks.digest, [...digests]))
  return row ?? null
}

/**
 * Stores a setup link in place of earlier ones, removes the passkeys and the linked account of the member, and ends its
 * sessions.
 * @param isForNewMember only for a member that has never signed in and is no owner at that moment. @param isNoOperator only for
 * a member that is no operator.
 * @returns whether it was stored; nothing is changed otherwise.
 */
export async function replaceSetupLink(
  scope: OrganizationScope,
  link: Pick<SetupLinkRow, 'id' | 'userId' | 'digest' | 'pepperId' | 'expiresAt'>,
  { now, isForNewMember, isNoOperator }: { now: Date; isForNewMember: boolean; isNoOperator: boolean },
): Promise<boolean> {
  const { database, organizationId } = scope
  const isAllowed = sql`EXISTS (SELECT 1 FROM ${memberships} WHERE organization_id = ${organizationId}::uuid
    AND user_id = ${link.userId}::uuid
    AND (${!isForNewMember}::boolean OR (role <> 'owner' AND last_signed_in_at IS NULL))
    AND (${!isNoOperator}::boolean OR NOT EXISTS (SELECT 1 FROM ${entitlements} e
      WHERE e.organization_id = ${organizationId}::uuid AND e.user_id = ${link.userId}::uuid AND e.name = ${OPERATOR})))`
  const [, , , , , inserted] = await database.batch([
    lockMembership(scope, link.userId),
    endSetupLinks(scope, link.userId, isAllowed),
    deletePasskeys(scope, link.userId, isAllowed),
    deleteIdentity(scope, link.userId, isAllowed),
    endSessions(scope, link.userId, and(gt(sessions.expiresAt, now), isAllowed)),
    database.execute(sql`
      INSERT INTO ${setupLinks} (id, organization_id, user_id, digest, pepper_id, expires_at)
      SELECT ${link.id}, ${organizationId}::uuid, ${link.userId}::uuid, ${link.digest}, ${link.pepperId},
        ${link.expiresAt.toISOString()}::timestamptz
      WHERE ${isAllowed} RETURNING id`),
  ])
  return inserted.rows.length > 0
}

/** Deletes the unused setup links of an organization, or of one of its members. @param guard must hold as well. */
export const endSetupLinks = (
  { database, organizationId }: OrganizationScope,
  userId: string | null,
  guard?: SQL | undefined,
) =>
  database
    .delete(setupLinks)
    .where(
      and(
        eq(setupLinks.organizationId, organizationId),
        userId === null ? undefined : eq(setupLinks.userId, userId),
        isNull(setupLinks.usedAt),
        guard,
      ),
    )

/**
 * Uses a setup link: stores a passkey and a session of its member. Of two at once only one finds the link unused.
 * @returns whether it was unused and in time, and its member may sign in.
 */
export function spendSetupLink(
  scope: OrganizationScope,
  { id, userId }: Pick<SetupLinkRow, 'id' | 'userId'>,
  passkey: NewPasskey,
  session: NewSession,
): Promise<boolean> {
  const { organizationId } = scope
  const signedInAt = sql`${session.signedInAt.toISOString()}::timestamptz`
  const admitted = sql`admitted AS (
      UPDATE ${setupLinks} SET used_at = now()
      WHERE id = ${id} AND organization_id = ${organizationId}::uuid AND used_at IS NULL AND expires_at > ${signedInAt}
        AND ${isEnabled({ organizationId, userId })}
      RETURNING organization_id, user_id
    ), passkey AS (
      INSERT INTO ${passkeys} (organization_id, user_id, name, credential_id, public_key, counter, transports, last_used_at)
      SELECT organization_id, user_id, ${passkey.name}, ${passkey.credentialId}, ${passkey.publicKey},
        ${passkey.counter}::bigint, ${textArray(passkey.transports)}, ${signedInAt}
      FROM admitted
    )`
  return startSessionOf(scope, { userId, method: 'passkey' }, admitted, session)
}
