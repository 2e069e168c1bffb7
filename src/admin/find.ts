import { mayUse } from '../calls/access.ts'
import { modelTarget } from '../calls/target.ts'
import type { Principal } from '../identity/principal.ts'
import type { ChangeScope } from '../ledger/changes/audited-change.ts'
import { type Permission, reachOf } from '../wire/endpoints/permissions.ts'
import { FOUND_KINDS, type FoundKind } from '../wire/records.ts'
import { type FindReach, type Found, selectFound, selectModelIds } from './find.store.ts'

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

const MOST_MODELS = 5

/** Finds what a text names among what a caller may read. @param principal null for the administration token, which reads all. */
export async function find(scope: ChangeScope, text: string, principal: Principal | null): Promise<Found[]> {
  const reach = Object.fromEntries(FOUND_KINDS.map((kind) => [kind, reachIn(kind, principal)])) as FindReach
  const [found, models] = await Promise.all([selectFound(scope, text, reach), selectModelIds(scope, text)])
  const isUsable = (id: string) =>
    principal === null || reach.model === null || mayUse(principal, modelTarget(id))
  const usable = models.filter(isUsable).slice(0, MOST_MODELS)
  return [...found, ...usable.map((id) => ({ kind: 'model' as const, id, label: id }))]
}

/** As `FindReach` has it. */
function reachIn(kind: FoundKind, principal: Principal | null): string | null | undefined {
  if (principal === null) return null
  const reach = reachOf(PERMISSION_OF[kind], principal)
  if (reach === null) return undefined
  return reach === 'own' ? principal.userId : null
}
