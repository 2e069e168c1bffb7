import type { Actor } from '../ledger/audit-record.ts'
import type { ChangeScope } from '../ledger/changes/audited-change.ts'
import type { AppContext } from './context.ts'

/** A change that a user makes to what is its own, by a request that is not one of the management API. */
export function changeBy(
  { var: { deps, requestId } }: AppContext,
  organizationId: string,
  actor: Actor,
): ChangeScope {
  const { configuration, clock, database, ledgerOf } = deps
  return {
    ...{ clock, database, ledgerOf, requestId, organizationId, actor },
    pepperRing: configuration.KEY_PEPPERS,
    vaultRing: configuration.VAULT_KEYS,
    egressAllow: configuration.EGRESS_ALLOW,
    // A delayed publication needs no report here: it takes effect as caches expire.
    propagationDelayed: () => {},
  }
}

/** A change that the caller of a request makes to what is its own. */
export const ownChange = (context: AppContext): ChangeScope => {
  const { organizationId, identity } = context.var.caller
  return changeBy(context, organizationId, identity.actor)
}
