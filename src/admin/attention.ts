import type { Principal } from '../identity/principal.ts'
import type { ChangeScope } from '../ledger/changes/audited-change.ts'
import { HOME_SHARD } from '../ledger/shards/shards.ts'
import type { Permission } from '../wire/endpoints/permissions.ts'
import type { ATTENTION_KINDS } from '../wire/records.ts'
import {
  type Subject,
  selectConnectionsToRenew,
  selectExpiringKeys,
  selectFailingAgents,
  selectPendingTools,
} from './attention.store.ts'
import { reachedUser } from './reach.ts'

const HOUR = 60 * 60_000
/** Age of failed runs that still need somebody. */
const RECENT_RUNS_MS = 24 * HOUR
/** Time before its expiry from which a key needs somebody. */
const EXPIRY_NOTICE_MS = 7 * 24 * HOUR

interface AttentionItem extends Omit<Subject, 'since'> {
  kind: (typeof ATTENTION_KINDS)[number]
  /** When it began; for a key, when it expires. Null where nobody knows. */
  at: Date | null
}

/**
 * What needs somebody in an organization, by kind, at most 20 of each, as far as the lists that the items are of reach.
 * @param principal null for the administration token, which sees all.
 */
export async function readAttention(
  scope: ChangeScope,
  principal: Principal | null,
): Promise<AttentionItem[]> {
  const now = scope.clock()
  const period = { from: new Date(now), to: new Date(now + EXPIRY_NOTICE_MS) }
  const reached = (permission: Permission) => reachedUser(scope.organizationId, principal, permission)
  const keysOf = reached('keys.read')
  // Users have their own connections through the public API, too.
  const connectionsOf = reached('connections.read') === undefined ? principal?.userId : undefined
  const [credits, ...subjects] = await Promise.all([
    reached('credits.read') === undefined ? [] : usedUpCredits(scope),
    reached('runs.read') === undefined ? [] : selectFailingAgents(scope, new Date(now - RECENT_RUNS_MS)),
    selectConnectionsToRenew(scope, connectionsOf),
    keysOf === undefined ? [] : selectExpiringKeys(scope, keysOf ?? undefined, period),
    reached('integrations.approve') === undefined ? [] : selectPendingTools(scope),
  ])
  const kinds = ['failed_runs', 'connection_refused', 'key_expires', 'tools_pending'] as const
  return [
    ...credits,
    ...kinds.flatMap((kind, index) =>
      (subjects[index] ?? []).map(({ since, ...subject }) => ({ kind, ...subject, at: since })),
    ),
  ]
}

async function usedUpCredits({ ledgerOf, organizationId }: ChangeScope): Promise<AttentionItem[]> {
  const { available } = await ledgerOf(organizationId, HOME_SHARD).balance()
  if (available > 0) return []
  return [{ kind: 'credits_used_up', id: organizationId, name: 'credits', count: 1, at: null }]
}
