import type { Database } from '../../../schema/database.ts'
import {
  dropRecords,
  dropUsage,
  listChainsOfPartition,
  listOrganizationsOfPartition,
  listPartitionsBefore,
  type Partition,
} from '../../ledger/retention/partitions.store.ts'
import type { PruneDeps } from '../../ledger/retention/prune-chain.ts'
import { stateRemoved } from '../../ledger/retention/state-removed.ts'
import { logEvent } from '../../lib/log.ts'
import type { Retained } from '../../wire/retention.ts'
import type { Budget } from './budget.ts'
import { pruneOrLog } from './prune-or-log.ts'
import { cutoffsOf, earliest } from './retention-periods.ts'
import { selectDistinctRetention } from './retention-settings.store.ts'

type DropDeps = PruneDeps & { database: Database; budget: Budget }

/** Chains or organizations of one page. */
const PAGE = 200

/**
 * Drops the partitions whose rows no organization has to keep, after it was stated for each chain which records may be missing. One that
 * has a broken chain stays.
 * @param now milliseconds since the epoch.
 */
export async function dropOldPartitions(
  deps: DropDeps,
  defaults: Record<Retained, number>,
  now: number,
): Promise<void> {
  const { database } = deps
  // The deployment has a chain too, and no settings.
  const settings = [null, ...(await selectDistinctRetention(database))]
  const cutoffs = settings.map((each) => cutoffsOf(each, defaults, now))
  const records = earliest(cutoffs.map(({ audit_records: cutoff }) => cutoff))
  const usage = earliest(cutoffs.slice(1).map(({ usage_events: cutoff }) => cutoff))
  if (records) {
    for (const partition of await listPartitionsBefore(database, 'audit_records', records)) {
      if (!(await arePruned(deps, partition, records))) break
      await dropRecords(database, partition)
      logEvent('info', 'retention.partition_dropped', { partition: partition.name })
    }
  }
  if (usage) {
    for (const partition of await listPartitionsBefore(database, 'usage_events', usage)) {
      await stateUsage(deps, partition, usage)
      await dropUsage(database, partition)
      logEvent('info', 'retention.partition_dropped', { partition: partition.name })
    }
  }
}

/** @returns whether statements allow all records of the partition to be missing that may go. */
async function arePruned(deps: DropDeps, partition: Partition, before: Date): Promise<boolean> {
  let chains = await listChainsOfPartition(deps.database, partition, null, PAGE)
  while (chains.length > 0) {
    for (const chain of chains) {
      const pruned = await pruneOrLog(deps, chain, before)
      if (!pruned?.isWhole) return false
    }
    chains = await listChainsOfPartition(deps.database, partition, chains.at(-1) ?? null, PAGE)
  }
  return true
}

async function stateUsage(deps: DropDeps, partition: Partition, before: Date): Promise<void> {
  let owners = await listOrganizationsOfPartition(deps.database, partition, null, PAGE)
  while (owners.length > 0) {
    for (const organizationId of owners) await stateRemoved(deps, 'usage', organizationId, before)
    owners = await listOrganizationsOfPartition(deps.database, partition, owners.at(-1) ?? null, PAGE)
  }
}
