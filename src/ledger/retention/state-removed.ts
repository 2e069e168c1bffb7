import { newId } from '../../lib/ids.ts'
import { NO_ACTOR } from '../audit-record.ts'
import { HOME_SHARD } from '../shards/shards.ts'
import type { PruneDeps } from './prune-chain.ts'
import { readPruning, storePruning } from './store-pruning.ts'

const ACTIONS = { usage: 'usage_events.pruned', rejected_calls: 'rejected_calls.pruned' }

/**
 * States that rows of usage, or of rejected calls, which are older than a time may be missing. The chain of the organization records it
 * first. Nothing changes where it was stated before.
 * @throws BrokenChainError for a stored statement that does not count.
 */
export async function stateRemoved(
  deps: PruneDeps,
  kind: 'usage' | 'rejected_calls',
  organizationId: string,
  before: Date,
): Promise<void> {
  const subject = { kind, organizationId, shard: 0 as const }
  const stated = await readPruning(deps, subject)
  if (stated !== null && stated.before >= before.toISOString()) return
  await deps.ledgerOf(organizationId, HOME_SHARD).recordChange({
    id: newId('change'),
    requestId: newId('req'),
    organizationId,
    at: deps.clock(),
    actor: NO_ACTOR,
    action: ACTIONS[kind],
    resource: kind,
    detail: { before: before.toISOString() },
  })
  // One that was stored meanwhile reaches further, and allows the same rows to be missing.
  await storePruning(deps, { ...subject, before: before.toISOString() })
}
