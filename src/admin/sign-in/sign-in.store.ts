import { and, desc, eq, gt, inArray, isNull, sql } from 'drizzle-orm'
import type { Database } from '../../../schema/database.ts'
import {
  memberships,
  organizations,
  passkeys,
  sessions,
  setupLinks,
  users,
} from '../../../schema/identity.ts'
import type { OrganizationScope } from '../../ledger/changes/scoped-statements.store.ts'
import { lockMembership, lockOrganization } from '../lock-members.store.ts'

export type PasskeyRow = typeof passkeys.$inferSelect
export type SessionRow = typeof sessions.$inferSelect
type SetupLinkRow = typeof setupLinks.$inferSelect

/** A membership: what a sign-in credential belongs to. */
export interface MembershipId {
  organizationId: string
  userId: string
}

/** The person of a membership, for whom credentials are made. */
export interface SignInMember extends MembershipId {
  email: string
  name: string
  role: 'owner' | 'admin' | 'member'
  organizationName: string
  organizationSlug: string
}

/** A new session, as it is stored. */
export type NewSession = Pick<
  SessionRow,
  'id' | 'digest' | 'pepperId' | 'ceremonyId' | 'userAgent' | 'signedInAt' | 'expiresAt'
>

const isOf = (
  table: typeof memberships | typeof passkeys | typeof sessions | typeof setupLinks,
  { organizationId, userId }: MembershipId,
) => and(eq(table.organizationId, organizationId), eq(table.userId, userId))

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

/** The passkey of an authenticator. It has no organization id: it finds the organization. */
export async function selectPasskeyOfCredential(
  database: Database,
  credentialId: string,
): Promise<PasskeyRow | null> {
  const [row] = await database.select().from(passkeys).where(eq(passkeys.credentialId, credentialId))
  return row ?? null
}

/** @returns null for a member that is disabled, or whose organization is, and for a service account. */
export async function selectSignInMember(
  database: Database,
  { organizationId, userId }: MembershipId,
): Promise<SignInMember | null> {
  const [row] = await database
    .select({
      organizationId: memberships.organizationId,
      userId: memberships.userId,
      email: users.email,
      name: users.name,
      role: memberships.role,
      organizationName: organizations.name,
      organizationSlug: organizations.slug,
    })
    .from(memberships)
    .innerJoin(users, eq(users.id, memberships.userId))
    .innerJoin(organizations, eq(organizations.id, memberships.organizationId))
    .where(
      and(
        eq(memberships.organizationId, organizationId),
        eq(memberships.userId, userId),
        isNull(memberships.disabledAt),
        isNull(organizations.disabledAt),
        eq(users.kind, 'person'),
      ),
    )
  return row ?? null
}

/** Whether a member has ever signed in, or has an API key, a connection, an agent or an entitlement. */
export async function selectIsInUse(
  { database, organizationId }: OrganizationScope,
  userId: string,
): Promise<boolean> {
  const has = (table: string, column: string, more = '') =>
    sql`EXISTS (SELECT 1 FROM ${sql.raw(table)} WHERE organization_id = ${organizationId}::uuid
      AND ${sql.raw(column)} = ${userId}::uuid ${sql.raw(more)})`
  const { rows } = await database.execute(sql`
    SELECT 1 FROM ${memberships}
    WHERE organization_id = ${organizationId}::uuid AND user_id = ${userId}::uuid AND (
      last_signed_in_at IS NOT NULL
      OR ${has('api_keys', 'user_id', 'AND revoked_at IS NULL')}
      OR ${has('connections', 'owner_user_id')}
      OR ${has('agents', 'created_by')}
      OR ${has('entitlements', 'user_id')})`)
  return rows.length > 0
}

/**
 * Stores a setup link in place of earlier ones, and removes the passkeys and ends the sessions of the member.
 * @param isForNewMember only for a member that has never signed in and is no owner at that moment.
 * @returns whether it was stored; nothing is changed otherwise.
 */
export async function replaceSetupLink(
  { database, organizationId }: OrganizationScope,
  link: Pick<SetupLinkRow, 'id' | 'userId' | 'digest' | 'pepperId' | 'expiresAt'>,
  { now, isForNewMember }: { now: Date; isForNewMember: boolean },
): Promise<boolean> {
  const member = { organizationId, userId: link.userId }
  const isAllowed = sql`EXISTS (SELECT 1 FROM ${memberships} WHERE organization_id = ${organizationId}::uuid
    AND user_id = ${link.userId}::uuid
    AND (${!isForNewMember}::boolean OR (role <> 'owner' AND last_signed_in_at IS NULL)))`
  const [, , , , inserted] = await database.batch([
    lockMembership({ database, organizationId }, link.userId),
    database.delete(setupLinks).where(and(isOf(setupLinks, member), isNull(setupLinks.usedAt), isAllowed)),
    database.delete(passkeys).where(and(isOf(passkeys, member), isAllowed)),
    database
      .update(sessions)
      .set({ endedAt: sql`now()` })
      .where(and(isOpen(member, now), isAllowed)),
    database.execute(sql`
      INSERT INTO ${setupLinks} (id, organization_id, user_id, digest, pepper_id, expires_at)
      SELECT ${link.id}, ${organizationId}::uuid, ${link.userId}::uuid, ${link.digest}, ${link.pepperId},
        ${link.expiresAt.toISOString()}::timestamptz
      WHERE ${isAllowed} RETURNING id`),
  ])
  return inserted.rows.length > 0
}

/** The condition that a member and its organization are enabled. */
const isEnabled = ({ organizationId, userId }: MembershipId) =>
  sql`EXISTS (SELECT 1 FROM ${memberships} m JOIN ${organizations} o ON o.id = m.organization_id
    WHERE m.organization_id = ${organizationId}::uuid AND m.user_id = ${userId}::uuid
      AND m.disabled_at IS NULL AND o.disabled_at IS NULL)`

/**
 * Uses a setup link: in one statement, so that of two at once only one finds the link unused.
 * @returns whether it was unused and in time, and its member may sign in.
 */
export async function spendSetupLink(
  scope: OrganizationScope,
  link: Pick<SetupLinkRow, 'id' | 'userId'>,
  passkey: Pick<PasskeyRow, 'name' | 'credentialId' | 'publicKey' | 'counter' | 'transports'>,
  session: NewSession,
): Promise<boolean> {
  const signedInAt = session.signedInAt.toISOString()
  const { database, organizationId } = scope
  const spending = database.execute(sql`
    WITH link AS (
      UPDATE ${setupLinks} SET used_at = now()
      WHERE id = ${link.id} AND organization_id = ${organizationId} AND used_at IS NULL AND expires_at > ${signedInAt}
        AND ${isEnabled({ organizationId, userId: link.userId })}
      RETURNING organization_id, user_id
    ), passkey AS (
      INSERT INTO ${passkeys} (organization_id, user_id, name, credential_id, public_key, counter, transports, last_used_at)
      SELECT organization_id, user_id, ${passkey.name}, ${passkey.credentialId}, ${passkey.publicKey},
        ${passkey.counter}::bigint, ${textArray(passkey.transports)}, ${signedInAt}::timestamptz
      FROM link
    ), member AS (
      UPDATE ${memberships} SET last_signed_in_at = ${signedInAt}::timestamptz FROM link
      WHERE ${memberships.organizationId} = link.organization_id AND ${memberships.userId} = link.user_id
    )
    INSERT INTO ${sessions} (id, organization_id, user_id, digest, pepper_id, method, ceremony_id, user_agent,
      signed_in_at, last_seen_at, expires_at)
    SELECT ${session.id}, organization_id, user_id, ${session.digest}, ${session.pepperId}, 'passkey',
      ${session.ceremonyId}, ${session.userAgent}, ${signedInAt}::timestamptz, ${signedInAt}::timestamptz,
      ${session.expiresAt.toISOString()}::timestamptz
    FROM link
    RETURNING id`)
  const [, , { rows }] = await database.batch([
    lockOrganization(scope),
    lockMembership(scope, link.userId),
    spending,
  ])
  return rows.length > 0
}

const textArray = (texts: readonly string[]) =>
  sql`ARRAY(SELECT jsonb_array_elements_text(${JSON.stringify(texts)}::jsonb))`

/**
 * Stores a session of a passkey, and the authenticator's count of signatures.
 * @returns whether the passkey is still there, and its member may sign in.
 * @throws the database's unique violation when the ceremony has made a session already.
 */
export async function insertPasskeySession(
  scope: OrganizationScope,
  passkey: Pick<PasskeyRow, 'id' | 'userId'> & { counter: number },
  session: NewSession,
): Promise<boolean> {
  const signedInAt = sql`${session.signedInAt.toISOString()}::timestamptz`
  const { database, organizationId } = scope
  const inserting = database.execute(sql`
    WITH passkey AS (
      UPDATE ${passkeys} SET counter = ${passkey.counter}::bigint, last_used_at = ${signedInAt}
      WHERE id = ${passkey.id}::uuid AND organization_id = ${organizationId}::uuid AND user_id = ${passkey.userId}::uuid
        AND ${isEnabled({ organizationId, userId: passkey.userId })}
      RETURNING organization_id, user_id
    ), seen AS (
      UPDATE ${memberships} SET last_signed_in_at = ${signedInAt} FROM passkey
      WHERE ${memberships.organizationId} = passkey.organization_id AND ${memberships.userId} = passkey.user_id
    )
    INSERT INTO ${sessions} (id, organization_id, user_id, digest, pepper_id, method, ceremony_id, user_agent,
      signed_in_at, last_seen_at, expires_at)
    SELECT ${session.id}, organization_id, user_id, ${session.digest}, ${session.pepperId}, 'passkey',
      ${session.ceremonyId}, ${session.userAgent}, ${signedInAt}, ${signedInAt},
      ${session.expiresAt.toISOString()}::timestamptz
    FROM passkey
    RETURNING id`)
  const [, , { rows }] = await database.batch([
    lockOrganization(scope),
    lockMembership(scope, passkey.userId),
    inserting,
  ])
  return rows.length > 0
}

/**
 * Stores a session of the start token of a local system.
 * @throws the database's unique violation when the token was used already.
 */
export async function insertLocalSession(
  { database, organizationId }: OrganizationScope,
  userId: string,
  session: NewSession,
): Promise<void> {
  const { signedInAt } = session
  await database.batch([
    database
      .insert(sessions)
      .values({ ...session, organizationId, userId, method: 'local', lastSeenAt: signedInAt }),
    database
      .update(memberships)
      .set({ lastSignedInAt: signedInAt })
      .where(isOf(memberships, { organizationId, userId })),
  ])
}

/** Whether a session was made with the start token of a local system. */
export async function selectIsLocalSession(
  { database, organizationId }: OrganizationScope,
  sessionId: string,
): Promise<boolean> {
  const rows = await database
    .select({ id: sessions.id })
    .from(sessions)
    .where(
      and(
        eq(sessions.organizationId, organizationId),
        eq(sessions.id, sessionId),
        eq(sessions.method, 'local'),
        isNull(sessions.endedAt),
      ),
    )
  return rows.length > 0
}

/** Sessions that were not ended and have not expired, newest first. */
export const selectOpenSessions = (
  { database, organizationId }: OrganizationScope,
  userId: string,
  now: Date,
): Promise<SessionRow[]> =>
  database
    .select()
    .from(sessions)
    .where(isOpen({ organizationId, userId }, now))
    .orderBy(desc(sessions.signedInAt))

/** Sessions of a member that were not ended and have not expired. */
const isOpen = (member: MembershipId, now: Date) =>
  and(isOf(sessions, member), isNull(sessions.endedAt), gt(sessions.expiresAt, now))

/** Ends a session of a user. @returns whether there was an open one. */
export async function updateSessionEnded(
  { database, organizationId }: OrganizationScope,
  userId: string,
  sessionId: string,
): Promise<boolean> {
  const rows = await database
    .update(sessions)
    .set({ endedAt: sql`now()` })
    .where(
      and(
        eq(sessions.id, sessionId),
        // A plain comparison could be read by the index of a member, which has more sessions than this one.
        sql`${sessions.organizationId} IS NOT DISTINCT FROM ${organizationId}::uuid`,
        sql`${sessions.userId} IS NOT DISTINCT FROM ${userId}::uuid`,
        isNull(sessions.endedAt),
      ),
    )
    .returning({ id: sessions.id })
  return rows.length > 0
}

export const selectPasskeys = (
  { database, organizationId }: OrganizationScope,
  userId: string,
): Promise<PasskeyRow[]> =>
  database
    .select()
    .from(passkeys)
    .where(isOf(passkeys, { organizationId, userId }))
    .orderBy(desc(passkeys.createdAt))

/**
 * Stores a passkey that a session registers.
 * @param most how many the user may have.
 * @returns null when the session has ended, or the user has as many. @throws the database's unique violation for a credential that is registered.
 */
export async function insertPasskey(
  scope: OrganizationScope,
  { sessionId, most }: { sessionId: string; most: number },
  passkey: Pick<PasskeyRow, 'userId' | 'name' | 'credentialId' | 'publicKey' | 'counter' | 'transports'>,
): Promise<PasskeyRow | null> {
  const { database, organizationId } = scope
  const member = { organizationId, userId: passkey.userId }
  const inserting = database.execute(sql`
    INSERT INTO ${passkeys} (organization_id, user_id, name, credential_id, public_key, counter, transports)
    SELECT organization_id, user_id, ${passkey.name}, ${passkey.credentialId}, ${passkey.publicKey},
      ${passkey.counter}::bigint, ${textArray(passkey.transports)}
    FROM (SELECT organization_id, user_id FROM ${sessions} WHERE id = ${sessionId}
      AND organization_id IS NOT DISTINCT FROM ${organizationId}::uuid
      AND user_id IS NOT DISTINCT FROM ${passkey.userId}::uuid AND ended_at IS NULL FOR UPDATE) AS open
    WHERE (SELECT count(*) FROM ${passkeys} WHERE ${isOf(passkeys, member)}) < ${most}::int
    RETURNING id`)
  const reading = database
    .select()
    .from(passkeys)
    .where(and(isOf(passkeys, member), eq(passkeys.credentialId, passkey.credentialId)))
  // Read in the same transaction: once it is over, a setup link may remove the passkey.
  const [, { rows }, [row]] = await database.batch([
    lockMembership(scope, passkey.userId),
    inserting,
    reading,
  ])
  return rows.length > 0 ? (row ?? null) : null
}

/** @returns whether the user had it. */
export async function deletePasskey(
  { database, organizationId }: OrganizationScope,
  userId: string,
  passkeyId: string,
): Promise<boolean> {
  const rows = await database
    .delete(passkeys)
    .where(and(isOf(passkeys, { organizationId, userId }), eq(passkeys.id, passkeyId)))
    .returning({ id: passkeys.id })
  return rows.length > 0
}
