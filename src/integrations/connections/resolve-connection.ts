import type { Database } from '../../../schema/database.ts'
import type { Principal } from '../../identity/principal.ts'
import type { Connection, ConnectionChoice, ConnectionResolution, Integration } from '../types.ts'
import { selectVisible, type VisibleRow } from './connections.store.ts'

/**
 * Resolves the connection that a call of a tool uses.
 * @param explicitConnectionId named by the caller or pinned; it is used, or nothing is.
 * @throws what the database throws: nothing is called then.
 */
export async function resolveConnection(
  deps: { database: Database },
  principal: Pick<Principal, 'organizationId' | 'userId' | 'groupIds'>,
  integration: Integration,
  explicitConnectionId: string | null,
): Promise<ConnectionResolution> {
  if (integration.authorization.kind === 'none') {
    return explicitConnectionId === null ? { kind: 'none' } : { kind: 'unknown' }
  }
  const visible = await selectVisible(deps.database, principal, { integrationId: integration.id })
  return chooseConnection(visible, principal.userId, explicitConnectionId)
}

/**
 * The resolution chain. The first stage that has a connection decides. So an unusable account is never replaced by one
 * of a later stage, which may be another person's:
 *
 * 1. the explicit connection
 * 2. the caller's active set: its default, else the one that joined last and can be used
 * 3. the caller's own connections
 * 4. those shared with a group of the caller
 * 5. those of the organization
 *
 * From 3 on a stage decides only if it has one connection. Own connections that cannot be used are passed over where
 * another own one can. Connections of others are not: the call would change the account when one of them expires.
 * @param visible all that the caller may see of the integration, whatever their status.
 * @internal Tests try the whole chain of choices.
 */
export function chooseConnection(
  visible: readonly VisibleRow[],
  userId: string,
  explicitConnectionId: string | null,
): ConnectionResolution {
  if (explicitConnectionId !== null) {
    const explicit = visible.find(({ id }) => id === explicitConnectionId)
    return explicit ? usable(explicit, 'explicit') : { kind: 'unknown' }
  }
  const preferred = chosenOfActiveSet(visible)
  if (preferred !== null) return preferred
  const live = visible.filter(isLive)
  const own = live.filter(({ ownerUserId }) => ownerUserId === userId)
  const activeOwn = own.filter(isActive)
  if (own.length > 0) return onlyOne(activeOwn.length > 0 ? activeOwn : own, 'own')
  const shared = live.filter(({ ownerUserId }) => ownerUserId !== null)
  if (shared.length > 0) return onlyOne(shared, 'group')
  return live.length > 0 ? onlyOne(live, 'organization') : { kind: 'required' }
}

/** @returns null for an empty set. A default that was revoked still decides, since the caller has chosen that account. */
function chosenOfActiveSet(visible: readonly VisibleRow[]): ConnectionResolution | null {
  const set = visible.filter(({ isPreferred }) => isPreferred)
  const chosen = set.find(({ isDefault }) => isDefault)
  if (chosen !== undefined) return usable(chosen, 'default', set.filter(isActive).length > 1)
  const newestFirst = set
    .filter(isLive)
    .toSorted((left, right) => (right.preferredAt?.getTime() ?? 0) - (left.preferredAt?.getTime() ?? 0))
  const active = newestFirst.filter(isActive)
  const last = active[0] ?? newestFirst[0]
  return last === undefined ? null : usable(last, 'active_set', active.length > 1)
}

function onlyOne(candidates: readonly VisibleRow[], chosenBy: ConnectionChoice): ConnectionResolution {
  const [only, ...others] = candidates
  if (only !== undefined && others.length === 0) return usable(only, chosenBy)
  return { kind: 'ambiguous', candidates: candidates.map(({ id, displayName }) => ({ id, displayName })) }
}

function usable(row: VisibleRow, chosenBy: ConnectionChoice, isOneOfSeveral = false): ConnectionResolution {
  const connection = connectionOf(row)
  return isActive(row)
    ? { kind: 'connection', connection, chosenBy, isOneOfSeveral }
    : { kind: 'unusable', connection }
}

const isActive = ({ status }: VisibleRow) => status === 'active'

/** Neither revoked nor never connected: its account is still meant to be used. */
const isLive = ({ status }: VisibleRow) => status === 'active' || status === 'needs_reauth'

function connectionOf(row: VisibleRow): Connection {
  const { isPreferred: _preferred, isDefault: _default, preferredAt: _at, ...connection } = row
  return connection
}
