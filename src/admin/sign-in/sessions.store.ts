import { and, desc, eq, gt, inArray, isNull, type SQL, sql } from 'drizzle-orm'
import { memberships, sessions } from '../../../schema/identity.ts'
import type { OrganizationScope } from '../../ledger/changes/scoped-statements.store.ts'
import { lockMembership, lockOrganization } from '../lock-members.store.ts'
import { isEnabled, isOf, type MembershipId } from './sign-in-members.store.ts'

export type SessionRow = typeof sessions.$inferSelect

/** A new session, as it is stored. */
export type NewSession = Pick<
  SessionRow,
  'id' | 'digest' | 'pepperId' | 'ceremonyId' | 'userAgent' | 'signedInAt' | 'authenticatedAt' | 'expiresAt'
>

/**
 * Stores the session of a member that signs in, and the time. One transaction, which locks first what disabling the member, a new
 * role and a setup link lock as well.
 * @param admitted common table expressions, of which one is called `admitted`: it has the organization_id and user_id of the
 * member if that may sign in, and else no row.
 * @returns whether there was one. @throws the database's unique violation when the ceremony has made a session already.
 */
export async function startSessionOf(
  scope: OrganizationScope,
  { userId, method }: Pick<SessionRow, 'userId' | 'method'>,
  admitted: SQL,
  session: NewSession,
): Promise<boolean> {
  const signedInAt = sql`${session.signedInAt.toISOString()}::timestamptz`
  const starting = scope.database.execute(sql`
    WITH ${admitted}, seen AS (
      UPDATE ${memberships} SET last_signed_in_at = ${signedInAt} FROM admitted
      WHERE ${memberships.organizationId} = admitted.organization_id AND ${memberships.userId} = admitted.user_id
    )
    INSERT INTO ${sessions} (id, organization_id, user_id, digest, pepper_id, method, ceremony_id, user_agent,
      signed_in_at, authenticated_at, last_seen_at, expires_at)
    SELECT ${session.id}, organization_id, user_id, ${session.digest}, ${session.pepperId}, ${method},
      ${session.ceremonyId}, ${session.userAgent}, ${signedInAt},
      ${session.authenticatedAt?.toISOString() ?? null}::timestamptz, ${signedInAt},
      ${session.expiresAt.toISOString()}::timestamptz
    FROM admitted
    RETURNING id`)
  const [, , { rows }] = await scope.database.batch([
    lockOrganization(scope),
    lockMembership(scope, userId),
    starting,
  ])
  return rows.length > 0
}

/**
 * Stores a session of the start token of a local system.
 * @returns whether the member may sign in. @throws the database's unique violation when the token was used already.
 */
export const insertLocalSession = (scope: OrganizationScope, userId: string, session: NewSession) => {
  const { organizationId } = scope
  const admitted = sql`admitted AS (
    SELECT ${organizationId}::uuid AS organization_id, ${userId}::uuid AS user_id
    WHERE ${isEnabled({ organizationId, userId })})`
  return startSessionOf(scope, { userId, method: 'local' }, admitted, session)
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

/** The id of the open session of a user that a token is of. @param digests possible ones of the token. */
export async function selectSessionOfToken(
  { database, organizationId }: OrganizationScope,
  userId: string,
  digests: readonly string[],
): Promise<string | null> {
  const [row] = await database
    .select({ id: sessions.id })
    .from(sessions)
    .where(
      and(
        inArray(sessions.digest, [...digests]),
        isMembers({ organizationId, userId }),
        isNull(sessions.endedAt),
      ),
    )
  return row?.id ?? null
}

/** Ends a session of a user. @returns whether there was an open one. */
export async function updateSessionEnded(
  { database, organizationId }: OrganizationScope,
  userId: string,
  sessionId: string,
): Promise<boolean> {
  const rows = await database
    .update(sessions)
    .set({ endedAt: sql`now()` })
    .where(and(eq(sessions.id, sessionId), isMembers({ organizationId, userId }), isNull(sessions.endedAt)))
    .returning({ id: sessions.id })
  return rows.length > 0
}

/**
 * `isOf` beside a condition that names one session. A plain comparison could be read by the index of a member, which has more sessions
 * than this one.
 */
const isMembers = ({ organizationId, userId }: MembershipId) =>
  and(
    sql`${sessions.organizationId} IS NOT DISTINCT FROM ${organizationId}::uuid`,
    sql`${sessions.userId} IS NOT DISTINCT FROM ${userId}::uuid`,
  )

/** Ends the open sessions of an organization, or of one of its members. @param guard must hold as well. */
export const endSessions = (
  { database, organizationId }: OrganizationScope,
  userId: string | null,
  guard?: SQL | undefined,
) =>
  database
    .update(sessions)
    .set({ endedAt: sql`now()` })
    .where(
      and(
        eq(sessions.organizationId, organizationId),
        userId === null ? undefined : eq(sessions.userId, userId),
        isNull(sessions.endedAt),
        guard,
      ),
    )
