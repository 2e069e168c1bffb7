import type { ChangeScope } from '../ledger/changes/audited-change.ts'
import { HOME_SHARD } from '../ledger/shards/shards.ts'
import type { ATTENTION_KINDS } from '../wire/records.ts'
import {
  type Subject,
  selectConnectionsToRenew,
  selectExpiringKeys,
  selectFailingAgents,
  selectPendingTools,
} from './attention.store.ts'

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

/** What a caller may see of each kind: nothing, what is a user's own, or all of the organization. */
export interface AttentionReach {
  runs: boolean
  connections: { ownerId: string | undefined }
  keys: { userId: string | undefined } | null
  tools: boolean
  credits: boolean
}

/** What needs somebody in an organization, by kind, at most 20 of each. */
export async function readAttention(scope: ChangeScope, reach: AttentionReach): Promise<AttentionItem[]> {
  const now = scope.clock()
  const period = { from: new Date(now), to: new Date(now + EXPIRY_NOTICE_MS) }
  const [credits, ...subjects] = await Promise.all([
    reach.credits ? usedUpCredits(scope) : [],
    reach.runs ? selectFailingAgents(scope, new Date(now - RECENT_RUNS_MS)) : [],
    selectConnectionsToRenew(scope, reach.connections.ownerId),
    reach.keys ? selectExpiringKeys(scope, reach.keys.userId, period) : [],
    reach.tools ? selectPendingTools(scope) : [],
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
