import { and, desc, eq, gt, gte, isNotNull, lt, lte, sql } from 'drizzle-orm'
import type { Database } from '../../../../schema/database.ts'
import { memberships, organizations, users } from '../../../../schema/identity.ts'
import { connections, connectSessions, integrations } from '../../../../schema/integrations.ts'

/** A session with what its page shows. */
export interface ConnectSession {
  id: string
  organizationId: string
  connectionId: string
  userId: string
  sealedState: string | null
  status: 'pending' | 'completed' | 'failed' | 'expired'
  failure: string | null
  expiresAt: Date
  slug: string
  integrationName: string
  connectionName: string
  organizationName: string
  userEmail: string
  /** Whether the user may still connect the account: an enabled member of an enabled organization. */
  isUserEnabled: boolean
}

const sessionColumns = {
  id: connectSessions.id,
  organizationId: connectSessions.organizationId,
  connectionId: connectSessions.connectionId,
  userId: connectSessions.userId,
  sealedState: connectSessions.sealedState,
  status: connectSessions.status,
  failure: connectSessions.failure,
  expiresAt: connectSessions.expiresAt,
  slug: integrations.slug,
  integrationName: integrations.displayName,
  connectionName: connections.displayName,
  organizationName: organizations.name,
  userEmail: users.email,
  // Joined by its table, all members of the organization may be read.
  isUserEnabled: sql<boolean>`(${organizations.disabledAt} is null and exists (select from ${memberships}
    where ${memberships.organizationId} = ${connectSessions.organizationId}
    and ${memberships.userId} = ${connectSessions.userId} and ${memberships.disabledAt} is null offset 0))`,
}

const selectSessions = (database: Database) =>
  database
    .select(sessionColumns)
    .from(connectSessions)
    .innerJoin(
      connections,
      and(
        eq(connections.id, connectSessions.connectionId),
        eq(connections.organizationId, connectSessions.organizationId),
      ),
    )
    .innerJoin(integrations, eq(integrations.id, connections.integrationId))
    .innerJoin(organizations, eq(organizations.id, connectSessions.organizationId))
    .innerJoin(users, eq(users.id, connectSessions.userId))

/** The session of a link. The id is a secret that only the link contains, so the query needs no organization. */
export async function selectSession(database: Database, id: string): Promise<ConnectSession | null> {
  const [row] = await selectSessions(database).where(eq(connectSessions.id, id))
  return row ?? null
}

/** The session whose id begins with these hex digits; null for several, which is as good as impossible. */
export async function selectSessionByKey(database: Database, key: string): Promise<ConnectSession | null> {
  const [row, ...others] = await selectSessions(database)
    // `g` comes after every digit. A comparison uses the index whatever its collation, unlike LIKE.
    .where(and(gte(connectSessions.id, key), lt(connectSessions.id, `${key}g`)))
    .limit(2)
  return row !== undefined && others.length === 0 ? row : null
}

/** The newest session of a connection. */
export async function selectLastSession(
  database: Database,
  organizationId: string,
  connectionId: string,
): Promise<ConnectSession | null> {
  const [row] = await selectSessions(database)
    .where(
      and(eq(connectSessions.organizationId, organizationId), eq(connectSessions.connectionId, connectionId)),
    )
    .orderBy(desc(connectSessions.createdAt), desc(connectSessions.id))
    .limit(1)
  return row ?? null
}

/** Time for which an ended session is kept, so that its outcome can be polled. */
const KEPT = sql`interval '7 days'`

/** Ends the pending sessions of a connection: their links do not work any more. */
export const expireSessions = (database: Database, organizationId: string, connectionId: string) =>
  database
    .update(connectSessions)
    .set({ status: 'expired', sealedState: null })
    .where(
      and(
        eq(connectSessions.organizationId, organizationId),
        eq(connectSessions.connectionId, connectionId),
        eq(connectSessions.status, 'pending'),
      ),
    )

/** Inserts a session in place of the pending ones of its connection: only the newest link works. */
export async function insertSession(
  database: Database,
  session: Pick<
    typeof connectSessions.$inferInsert,
    'id' | 'organizationId' | 'connectionId' | 'userId' | 'sealedState' | 'expiresAt'
  >,
): Promise<void> {
  const { organizationId, connectionId } = session
  const ofConnection = and(
    eq(connectSessions.organizationId, organizationId),
    eq(connectSessions.connectionId, connectionId),
  )
  await database.batch([
    expireSessions(database, organizationId, connectionId),
    database
      .delete(connectSessions)
      .where(and(ofConnection, lte(connectSessions.expiresAt, sql`now() - ${KEPT}`))),
    database.insert(connectSessions).values({ ...session, status: 'pending' }),
  ])
}

/**
 * Replaces the sealed state of a pending session, or takes it away: what a session is finished with can be taken once.
 * @param before the state that was read. @returns whether it was still that one, and the session had not expired.
 */
export async function replaceState(
  database: Database,
  { organizationId, id, sealedState: before }: ConnectSession,
  after: string | null,
  now: number,
): Promise<boolean> {
  if (before === null) return false
  const replaced = await database
    .update(connectSessions)
    .set({ sealedState: after })
    .where(
      and(
        eq(connectSessions.organizationId, organizationId),
        eq(connectSessions.id, id),
        eq(connectSessions.status, 'pending'),
        isNotNull(connectSessions.sealedState),
        eq(connectSessions.sealedState, before),
        gt(connectSessions.expiresAt, new Date(now)),
      ),
    )
    .returning({ id: connectSessions.id })
  return replaced.length > 0
}

/** Ends a pending session. @param failure null for one that was completed. */
export async function endSession(
  database: Database,
  { organizationId, id }: Pick<ConnectSession, 'organizationId' | 'id'>,
  failure: string | null,
): Promise<void> {
  await database
    .update(connectSessions)
    .set({ status: failure === null ? 'completed' : 'failed', failure, sealedState: null })
    .where(
      and(
        eq(connectSessions.organizationId, organizationId),
        eq(connectSessions.id, id),
        eq(connectSessions.status, 'pending'),
      ),
    )
}
