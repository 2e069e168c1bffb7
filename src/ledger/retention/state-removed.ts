import { newId } from '../../lib/ids.ts'
import { NO_ACTOR } from '../audit-record.ts'
import { HOME_SHARD } from '../shards/shards.ts'
import type { PruneDeps } from './prune-chain.ts'
import { prunedParts, signPruning } from './pruning.ts'
import { selectPrunings, upsertPruning } from './prunings.store.ts'

const ACTIONS = { usage: 'usage_events.pruned', rejected_calls: 'rejected_calls.pruned' }

/**
 * States that rows of usage, or of rejected calls, which are older than a time may be missing. The chain of the organization records it
 * first. Nothing changes where it was stated before.
 */
export async function stateRemoved(
  { database, configuration, ledgerOf, clock }: PruneDeps,
  kind: 'usage' | 'rejected_calls',
  organizationId: string,
  before: Date,
): Promise<void> {
  const parts = prunedParts(configuration.KEY_PEPPERS, await selectPrunings(database, [organizationId]))
  const stated = kind === 'usage' ? parts.usageBefore : parts.rejectedCallsBefore
  if (stated !== null && stated >= before) return
  await ledgerOf(organizationId, HOME_SHARD).recordChange({
    id: newId('change'),
    requestId: newId('req'),
    organizationId,
    at: clock(),
    actor: NO_ACTOR,
    action: ACTIONS[kind],
    resource: kind,
    detail: { before: before.toISOString() },
  })
  const pruning = { kind, organizationId, shard: 0 as const, before: before.toISOString() }
  await upsertPruning(database, signPruning(configuration.KEY_PEPPERS, pruning))
}
