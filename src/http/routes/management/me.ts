import { sealCeremony } from '../../../admin/sign-in/ceremony.ts'
import {
  beginPasskey,
  endSession,
  finishPasskey,
  removePasskey,
} from '../../../admin/sign-in/own-credentials.ts'
import { type PasskeyRow, selectPasskeys } from '../../../admin/sign-in/passkeys.store.ts'
import { type SessionRow, selectOpenSessions } from '../../../admin/sign-in/sessions.store.ts'
import { selectSignInMember } from '../../../admin/sign-in/sign-in-members.store.ts'
import type { SessionCaller } from '../../../identity/principal.ts'
import { isIdle } from '../../../identity/session.ts'
import { codedRefusal, notFound } from '../../../lib/api-error.ts'
import { permissionsOf } from '../../../wire/endpoints/permissions.ts'
import type { AppContext } from '../../context.ts'
import { ownOrigin, pageOrigin } from '../../own-origin.ts'
import {
  ceremonyCookie,
  clearCeremonyCookie,
  clearSessionCookie,
  setCeremonyCookie,
} from '../../session-cookies.ts'
import type { HandlersOf } from './mount-endpoints.ts'
import { sessionOf } from './require-permission.ts'
import { presentOwner } from './sign-in.ts'

/** @throws ApiError `not_found` for the administration token. */
export function signedInUser(context: AppContext): {
  session: SessionCaller
  userId: string
  sessionId: string
} {
  const session = sessionOf(context)
  if (session === null) {
    throw codedRefusal(
      'not_found',
      'no_user',
      'The administration token is no user: it has no session and no passkeys.',
    )
  }
  return { session, userId: session.principal.userId, sessionId: session.sessionId }
}

/** Few enough to need no pages. */
const whole = <Row, Shown>(rows: readonly Row[], present: (row: Row) => Shown) => ({
  data: rows.map(present),
  has_more: false,
  next_cursor: null,
})

const presentPasskey = (row: PasskeyRow) => ({
  id: row.id,
  name: row.name,
  transports: row.transports,
  last_used_at: row.lastUsedAt,
  created_at: row.createdAt,
})

const presentSession = (current: string) => (row: SessionRow) => ({
  id: row.id,
  method: row.method,
  user_agent: row.userAgent,
  is_current: row.id === current,
  signed_in_at: row.signedInAt,
  last_seen_at: row.lastSeenAt,
  expires_at: row.expiresAt,
})

const partyOf = (context: AppContext) => ({ origin: pageOrigin(context) })

/** What a signed-in user sees and does of itself. */
export const meHandlers: HandlersOf<'me' | 'sessions' | 'passkeys'> = {
  'me.show': async ({ context, scope }) => {
    const { session, userId, sessionId } = signedInUser(context)
    const { organizationId, entitlements } = session.principal
    const member = await selectSignInMember(scope.database, { organizationId, userId })
    // Disabled since the session was checked.
    if (member === null) throw notFound('User', userId)
    return {
      ...presentOwner(member),
      entitlements: [...entitlements],
      permissions: permissionsOf(session.principal),
      session: {
        id: sessionId,
        signed_in_at: new Date(session.signedInAt),
        expires_at: new Date(session.expiresAt),
      },
      base_url: ownOrigin(context),
    }
  },
  'me.sign-out': async ({ context, scope }) => {
    const { userId, sessionId } = signedInUser(context)
    await endSession(scope, userId, sessionId)
    clearSessionCookie(context)
    return { id: sessionId, deleted: true }
  },
  'sessions.list': async ({ context, scope }) => {
    const { userId, sessionId } = signedInUser(context)
    const now = scope.clock()
    const open = await selectOpenSessions(scope, userId, new Date(now))
    return whole(
      open.filter((row) => !isIdle(row, now)),
      presentSession(sessionId),
    )
  },
  'sessions.end': async ({ context, scope, path }) => {
    await endSession(scope, signedInUser(context).userId, path.sessionId)
    return { id: path.sessionId, deleted: true }
  },
  'passkeys.list': async ({ context, scope }) =>
    whole(await selectPasskeys(scope, signedInUser(context).userId), presentPasskey),
  'passkeys.begin': async ({ context, scope }) => {
    const { options, ceremony } = await beginPasskey(scope, partyOf(context), signedInUser(context))
    setCeremonyCookie(context, sealCeremony(scope.vaultRing, ceremony))
    return { options: { ...options } }
  },
  'passkeys.finish': async ({ context, scope, body }) => {
    const request = { ...body, ceremony: ceremonyCookie(context) }
    const row = await finishPasskey(scope, partyOf(context), signedInUser(context), request)
    clearCeremonyCookie(context)
    return presentPasskey(row)
  },
  'passkeys.remove': async ({ context, scope, path }) => {
    await removePasskey(scope, signedInUser(context).userId, path.passkeyId)
    return { id: path.passkeyId, deleted: true }
  },
}
