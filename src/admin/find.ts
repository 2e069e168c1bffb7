import type { Principal } from '../identity/principal.ts'
import type { ChangeScope } from '../ledger/changes/audited-change.ts'
import type { Permission } from '../wire/endpoints/permissions.ts'
import { FOUND_KINDS, type FoundKind } from '../wire/records.ts'
import { type FindReach, type Found, selectFound, selectModelIds } from './find.store.ts'
import { reachedUser } from './reach.ts'

/** The permission to read each kind. */
const PERMISSION_OF: Record<FoundKind, Permission> = {
  call: 'calls.read',
  response: 'calls.read',
  run: 'runs.read',
  key: 'keys.read',
  user: 'users.read',
  group: 'groups.read',
  model: 'models.read',
  policy: 'policies.read',
  agent: 'agents.read',
  integration: 'integrations.read',
  connection: 'connections.read',
}

/** Finds what a text names among what a caller may read. @param principal null for the administration token, which reads all. */
export async function find(scope: ChangeScope, text: string, principal: Principal | null): Promise<Found[]> {
  const reach = Object.fromEntries(
    FOUND_KINDS.map((kind) => [kind, reachedUser(scope.organizationId, principal, PERMISSION_OF[kind])]),
  ) as FindReach
  const usable =
    principal === null || reach.model === null || principal.models.all ? null : principal.models.ids
  const [found, models] = await Promise.all([
    selectFound(scope, text, reach),
    selectModelIds(scope, text, usable),
  ])
  return [...found, ...models.map((id) => ({ kind: 'model' as const, id, label: id }))]
}
