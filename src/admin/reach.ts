import type { Principal } from '../identity/principal.ts'
import { type Permission, reachIn } from '../wire/endpoints/permissions.ts'

/** Whose things a caller reaches: those of one user, of all of the organization (null), or nobody's (undefined). */
export type ReachedUser = string | null | undefined

/** Whose things of an organization a permission reaches. @param principal null for the administration token, which reaches all. */
export function reachedUser(
  organizationId: string,
  principal: Principal | null,
  permission: Permission,
): ReachedUser {
  if (principal === null) return null
  const reach = reachIn(organizationId, permission, principal)
  if (reach === null) return undefined
  return reach === 'own' ? principal.userId : null
}
