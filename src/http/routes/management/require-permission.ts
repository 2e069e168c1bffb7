import type { MiddlewareHandler } from 'hono'
import type { Author } from '../../../admin/member-rules.ts'
import type { Principal, SessionCaller } from '../../../identity/principal.ts'
import { codedRefusal } from '../../../lib/api-error.ts'
import {
  needsRecentSignIn,
  type Permission,
  RECENT_SIGN_IN_MS,
  reachIn,
  reachOf,
} from '../../../wire/endpoints/permissions.ts'
import type { AppContext, AppEnv } from '../../context.ts'

/**
 * Admits a caller that has a permission. The administration token has every one.
 * @throws ApiError `forbidden`, naming the permission; `unauthorized` for a sign-in that is too old for it.
 */
export function requirePermission(permission: Permission | null): MiddlewareHandler<AppEnv> {
  return async function requirePermission(context, next) {
    const caller = context.get('managementCaller')
    if (permission !== null && caller.kind !== 'admin_token') {
      if (caller.kind === 'visitor') throw missing(permission)
      checkReach(context, permission, caller.principal)
      if (needsRecentSignIn(permission)) requireRecentSignIn(context)
    }
    await next()
  }
}

/** @throws ApiError `forbidden`, also for an operator in another organization where only its role gives the permission. */
function checkReach(context: AppContext, permission: Permission, principal: Principal): void {
  if (reachOf(permission, principal) === null) throw missing(permission)
  if (reachIn(organizationOf(context, principal), permission, principal) !== null) return
  throw missing(permission, `Your permission ${permission} does not reach other organizations.`)
}

/** The organization in the path of a request, else that of its session. */
const organizationOf = (context: AppContext, principal: Principal): string =>
  context.req.param('organizationId') ?? principal.organizationId

/** @throws ApiError `unauthorized` for a session whose sign-in is too old for what it asks. */
export function requireRecentSignIn(context: AppContext): void {
  const session = sessionOf(context)
  if (session === null || context.get('deps').clock() - session.authenticatedAt <= RECENT_SIGN_IN_MS) return
  throw codedRefusal('unauthorized', 'sign_in_again', 'This needs a sign-in within the last ten minutes.')
}

/** The refusal of a caller without a permission, or of what its permission does not include. */
export const missing = (permission: Permission, reason = `You do not have the permission ${permission}.`) =>
  codedRefusal('forbidden', 'permission_missing', reason, { permission })

/** The user to whose things a permission is limited; null where it reaches all of an organization. */
export function ownReach(context: AppContext, permission: Permission | null): string | null {
  const caller = context.get('managementCaller')
  if (permission === null || caller.kind !== 'session') return null
  return reachOf(permission, caller.principal) === 'own' ? caller.principal.userId : null
}

/** The session of a request; null for the administration token. */
export function sessionOf(context: AppContext): SessionCaller | null {
  const caller = context.get('managementCaller')
  return caller.kind === 'session' ? caller : null
}

/**
 * The member that makes a change with a permission; null for the administration token, which has no rules of members. An operator
 * has no role in other organizations.
 */
export function authorOf(context: AppContext, permission: Permission): Author | null {
  const session = sessionOf(context)
  if (session === null) return null
  const { principal } = session
  const isAtHome = organizationOf(context, principal) === principal.organizationId
  return {
    userId: principal.userId,
    role: isAtHome ? principal.role : 'member',
    isOperator: reachOf(permission, principal) === 'installation',
  }
}
