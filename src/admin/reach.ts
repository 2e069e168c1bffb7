import type { Principal } from '../identity/principal.ts'
import { type Permission, reachOf } from '../wire/endpoints/permissions.ts'

/** Whose things a caller reaches: those of one user, of all of the organization (null), or nobody's (undefined). */
export type ReachedUser = string | null | undefined

/** Whose things a permission reaches. @param principal null for the administration token, which reaches all. */
export function reachedUser(principal: Principal | null, permission: Permission): ReachedUser {
  if (principal === null) return null
  const reach = reachOf(permission, principal)
  if (reach === null) return undefined
  return reach === 'own' ? principal.userId : null
}
