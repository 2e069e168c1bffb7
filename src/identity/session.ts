import type { Database } from '../../schema/database.ts'
import type { Clock } from '../lib/clock.ts'
import type { KeyRing } from '../lib/crypto.ts'
import { lookUp, mayCall, rightsOf } from './identify.ts'
import { findSessionRights, type SessionRights, updateSessionSeen } from './identity.store.ts'
import type { SessionCaller } from './principal.ts'
import { digestsFor, parseToken } from './secret-token.ts'

/** Sessions of the web terminal: an opaque token in a cookie, of which Postgres has the digest. */

/** Longest time between two requests of a session, in milliseconds. */
const IDLE_MS = 12 * 3_600_000
/** A session ends so long after its sign-in, however it is used. */
export const LONGEST_MS = 7 * 24 * 3_600_000
/** Use is noted at most so often: each note is a write. */
const NOTED_MS = 5 * 60_000

interface SessionDeps {
  clock: Clock
  database: Database
  waitUntil: (work: Promise<unknown>) => void
  configuration: { KEY_PEPPERS: KeyRing; ORGANIZATION_RATE_LIMIT: number; USER_RATE_LIMIT: number }
}

/**
 * Finds the caller behind the token of a session. Nothing is cached: the statement that finds the session reads the rights of
 * its user, so that a session that was ended and a user that was disabled are refused from the next request on.
 * @returns null for a session that is unknown, ended, idle or too old, and for a user that is disabled.
 * @throws ApiError internal when Postgres does not answer.
 */
export async function identifySession(deps: SessionDeps, token: string): Promise<SessionCaller | null> {
  const { configuration, database } = deps
  if (parseToken('hgs', token) === null) return null
  const digests = digestsFor(configuration.KEY_PEPPERS, token).map(({ digest }) => digest)
  const rights = await lookUp(findSessionRights(database, digests), 'Sessions')
  const now = deps.clock()
  if (rights === null || !isOpen(rights, now) || !mayCall(rights)) return null
  const { sessionId, organizationId } = rights
  if (now - rights.lastSeenAt.getTime() > NOTED_MS) {
    const noted = updateSessionSeen(
      database,
      { organizationId, sessionId },
      new Date(now),
      new Date(now - NOTED_MS),
    )
    // A note that is lost costs nothing: the next request makes it.
    deps.waitUntil(noted.catch(() => {}))
  }
  return {
    kind: 'session',
    sessionId,
    principal: rightsOf(deps, rights, { kind: 'session', sessionId }),
    signedInAt: rights.signedInAt.getTime(),
    authenticatedAt: (rights.authenticatedAt ?? rights.signedInAt).getTime(),
    expiresAt: rights.expiresAt.getTime(),
  }
}

const isOpen = (rights: SessionRights, now: number): boolean =>
  rights.endedAt === null && now < rights.expiresAt.getTime() && !isIdle(rights, now)

/** Whether a session was not used for so long that it has ended. @param now milliseconds since the epoch. */
export const isIdle = ({ lastSeenAt }: { lastSeenAt: Date }, now: number): boolean =>
  now - lastSeenAt.getTime() >= IDLE_MS
