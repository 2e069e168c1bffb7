import { DEPLOYMENT_ORGANIZATION_ID } from '../ledger/audit-record.ts'
import { audited, type ChangeScope } from '../ledger/changes/audited-change.ts'
import { publishCatalogue, publishRights } from '../ledger/changes/publish-epoch.ts'
import { readStoredChains } from '../ledger/records/chain.store.ts'
import type { HeldChain } from '../ledger/records/chain.ts'
import type { Reflushed } from '../ledger/records/chain-writer.ts'
import { readShardBalances } from '../ledger/records/shard-balances.store.ts'
import { HOME_SHARD } from '../ledger/shards/shards.ts'
import { ApiError } from '../lib/api-error.ts'

/** Comparisons before a balance is called unknown because the ledger writes to Postgres all the time. */
const MOST_COMPARISONS = 3

/** A shard of a ledger beside what Postgres has of it. */
interface ComparedShard {
  chain: HeldChain
  /** The last record in Postgres; 0 without any. */
  stored: number
  /** Records that Postgres had confirmed and lacks. */
  behind: number
  /** Micro-credits by the entries in Postgres. */
  storedBalance: number
  /** Whether they are those that the ledger had with the last confirmed record; null where that is not known. */
  balanceAgrees: boolean | null
}

/**
 * Compares the shards of a ledger with Postgres: the ends of their chains, and their balances. It changes nothing.
 * @throws ApiError `internal` when an object does not answer.
 */
export async function compareLedger(scope: ChangeScope, organizationId: string): Promise<ComparedShard[]> {
  for (let comparison = 1; ; comparison += 1) {
    const before = await chainsOf(scope, organizationId)
    const balances = await readShardBalances(scope.database, organizationId)
    const stored = await readStoredChains(scope.database, organizationId)
    const chains = await chainsOf(scope, organizationId)
    const hasMoved = flushedText(before) !== flushedText(chains)
    if (hasMoved && comparison < MOST_COMPARISONS) continue
    return chains.map((chain) => {
      const last = stored.find(({ shard }) => shard === chain.shard)?.sequence ?? 0
      const storedBalance = balances.get(chain.shard) ?? 0
      const known = hasMoved ? null : chain.flushedBalance
      return {
        chain,
        stored: last,
        behind: Math.max(0, chain.flushed.sequence - last),
        storedBalance,
        balanceAgrees: known === null ? null : known === storedBalance,
      }
    })
  }
}

const flushedText = (chains: readonly HeldChain[]) =>
  JSON.stringify(chains.map(({ shard, flushed }) => [shard, flushed.sequence]))

async function chainsOf({ ledgerOf }: ChangeScope, organizationId: string): Promise<HeldChain[]> {
  try {
    return await ledgerOf(organizationId, HOME_SHARD).chains()
  } catch (cause) {
    throw new ApiError('internal', 'The ledger did not return its chains.', { cause })
  }
}

/**
 * Has the shards of a ledger write again what Postgres has lost, after it was restored. The intent is recorded in the chain of the
 * deployment, and each shard states in its own chain what it writes again. Epochs that a restore has turned back are raised.
 * @param from the first sequence; null for what Postgres lacks at the end of each chain.
 * @throws ApiError `internal` when the intent cannot be recorded, or a shard does not answer.
 */
export async function reflushLedger(
  scope: ChangeScope,
  organizationId: string,
  { shard, from }: { shard: number | null; from: number | null },
): Promise<Reflushed[]> {
  const intent = {
    organizationId: DEPLOYMENT_ORGANIZATION_ID,
    action: 'audit.reflush',
    resource: `organizations/${organizationId}/ledger`,
    detail: { shard, from_sequence: from },
  }
  const shards = await audited(scope, intent, () =>
    scope.ledgerOf(organizationId, HOME_SHARD).reflush({ shard, from }),
  )
  const raised = (name: 'organization' | 'catalogue') =>
    Math.max(0, ...shards.map((each) => each.raised[name] ?? 0))
  const [rights, catalogue] = [raised('organization'), raised('catalogue')]
  if (rights > 0) await publishRights({ ...scope, organizationId }, rights)
  if (catalogue > 0) await publishCatalogue(scope, catalogue)
  return shards
}
