import type { ChainIdentity } from '../../ledger/records/chain.ts'
import { BrokenChainError, type PruneDeps, pruneChain } from '../../ledger/retention/prune-chain.ts'
import type { RecordsPruning } from '../../ledger/retention/pruning.ts'
import { errorText, logEvent } from '../../lib/log.ts'
import type { Budget } from './budget.ts'

/**
 * States which records of a chain may go.
 * @returns null for a chain that is broken: it is logged, and nothing of it is removed.
 */
export async function pruneOrLog(
  deps: PruneDeps & { budget: Budget },
  chain: ChainIdentity,
  before: Date,
): Promise<{ pruning: RecordsPruning; isWhole: boolean } | null> {
  try {
    return await pruneChain(deps, chain, before, () => deps.budget.take())
  } catch (error) {
    if (!(error instanceof BrokenChainError)) throw error
    logEvent('error', 'retention.chain_broken', { error: errorText(error) })
    return null
  }
}
