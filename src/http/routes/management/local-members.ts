import { selectLocalMembers, switchMember } from '../../../admin/sign-in/local-sign-in.ts'
import { codedRefusal } from '../../../lib/api-error.ts'
import type { AppContext } from '../../context.ts'
import type { HandlersOf } from './mount-endpoints.ts'
import { sessionOf } from './require-permission.ts'
import { localSignIn, presentOwner, signedIn, visitOf } from './sign-in.ts'

/** @throws ApiError as `localSignIn`; `not_found` for the administration token. */
function localSession(context: AppContext) {
  const local = localSignIn(context)
  const session = sessionOf(context)
  if (session === null) throw codedRefusal('not_found', 'no_user', 'The administration token is no user.')
  return { local, session }
}

/** The demo callers of a local system. */
export const localMemberHandlers: HandlersOf<'local-members'> = {
  'local-members.list': async ({ context, scope }) => {
    const { local, session } = localSession(context)
    const members = await selectLocalMembers(scope, local, session.sessionId)
    const { organizationId, userId } = session.principal
    const isCurrent = (member: { organizationId: string; userId: string }) =>
      member.organizationId === organizationId && member.userId === userId
    const data = members.map((member) => ({ ...presentOwner(member), is_current: isCurrent(member) }))
    return { data, has_more: false, next_cursor: null }
  },
  'local-members.switch': async ({ context, scope, body }) => {
    const { local, session } = localSession(context)
    const member = { organizationId: body.organization_id, userId: body.user_id }
    return signedIn(context, await switchMember(visitOf(context, scope), local, session, member))
  },
}
