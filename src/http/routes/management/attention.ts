import { type AttentionReach, readAttention } from '../../../admin/attention.ts'
import type { SessionCaller } from '../../../identity/principal.ts'
import { type Permission, reachOf } from '../../../wire/endpoints/permissions.ts'
import type { HandlersOf } from './mount-endpoints.ts'
import { sessionOf } from './require-permission.ts'

/** What a caller may see, by the permissions of the lists that the items are of. The administration token sees all. */
function attentionReach(session: SessionCaller | null): AttentionReach {
  if (session === null)
    return {
      runs: true,
      connections: { ownerId: undefined },
      keys: { userId: undefined },
      tools: true,
      credits: true,
    }
  const { principal } = session
  const reaches = (permission: Permission) => reachOf(permission, principal)
  const keys = reaches('keys.read')
  return {
    runs: reaches('runs.read') !== null,
    // Users have their own connections through the public API, too.
    connections: { ownerId: reaches('connections.read') === null ? principal.userId : undefined },
    keys: keys && { userId: keys === 'own' ? principal.userId : undefined },
    tools: reaches('integrations.approve') !== null,
    credits: reaches('credits.read') !== null,
  }
}

export const attentionHandlers: HandlersOf<'attention'> = {
  'attention.list': async ({ context, scope }) => ({
    data: await readAttention(scope, attentionReach(sessionOf(context))),
    has_more: false,
    next_cursor: null,
  }),
}
