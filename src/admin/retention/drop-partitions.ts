import {
  dropRecords,
  dropUsage,
  listChainsOfPartition,
  listOrganizationsOfPartition,
  listPartitionsBefore,
  type Partition,
  type PartOfPartition,
  type RemovablePart,
} from '../../ledger/retention/partitions.store.ts'
import { pruneChain } from '../../ledger/retention/prune-chain.ts'
import { prunedParts } from '../../ledger/retention/pruning.ts'
import { stateRemoved } from '../../ledger/retention/state-removed.ts'
import { databaseCause } from '../../lib/database-error.ts'
import { logEvent } from '../../lib/log.ts'
import { retentionSettings } from '../../wire/retention.ts'
import { cutoffsOf, earliest } from './retention-periods.ts'
import { deploymentCutoffs, isDeployment, type RetentionRun, verifiedCutoffs } from './retention-run.ts'
import { selectDistinctRetention, selectRetentions } from './retention-settings.store.ts'

/** Chains or organizations of one page. */
const PAGE = 200
/** Rows that a drop moves to the default partition, in the one transaction that statements on the table wait for. */
const MOST_KEPT = 20_000

/**
 * Drops the partitions whose rows no organization has to keep, after it was stated for each chain which records may be missing. Records of
 * the deployment's chain, and of chains that are broken or whose organization's settings are invalid, are moved, not removed. What the
 * budget does not allow is continued by the next run, which passes over the chains that are stated.
 */
export async function dropOldPartitions(run: RetentionRun): Promise<void> {
  const before = await earliestCutoffs(run)
  const tables = [
    { table: 'audit_records', until: before.audit_records, drop: dropMonthOfRecords },
    { table: 'usage_events', until: before.usage_events, drop: dropMonthOfUsage },
  ] as const
  for (const { table, until, drop } of tables) {
    if (until === null) continue
    for (const partition of await listPartitionsBefore(run.database, table, until)) {
      if (run.budget.isSpent) return
      await run.attempts.make(`drop of ${partition.name}`, null, () =>
        unlessDropped(() => drop(run, partition, until)),
      )
    }
  }
}

/** Another run may drop the partition meanwhile: the table is undefined then. */
async function unlessDropped(drop: () => Promise<void>): Promise<void> {
  try {
    await drop()
  } catch (error) {
    if (databaseCause(error)?.code !== '42P01') throw error
  }
}

/**
 * The times before which no organization keeps rows, by settings that are not verified: they only spare the reading of partitions that
 * stay. Those that are malformed are left out, because their organization keeps everything.
 */
async function earliestCutoffs({ database, defaults, now }: RetentionRun) {
  const cutoffs = (await selectDistinctRetention(database)).flatMap((each) => {
    const { data, success } = retentionSettings.nullable().safeParse(each)
    return success ? [cutoffsOf(data, defaults, now)] : []
  })
  return {
    audit_records: earliest(cutoffs.map(({ audit_records: cutoff }) => cutoff)),
    usage_events: earliest(cutoffs.map(({ usage_events: cutoff }) => cutoff)),
  }
}

async function dropMonthOfRecords(run: RetentionRun, partition: Partition, before: Date): Promise<void> {
  const removable: RemovablePart[] = []
  const list = (after: PartOfPartition | null) => listChainsOfPartition(run.database, partition, after, PAGE)
  for await (const chain of removableParts(run, list, 'audit_records', before)) {
    const stated = await removableRecords(run, chain, before)
    if (stated === 'unfinished') return
    if (stated !== null) removable.push(stated)
  }
  logDrop(partition, await dropRecords(run.database, partition, removable, MOST_KEPT))
}

async function dropMonthOfUsage(run: RetentionRun, partition: Partition, before: Date): Promise<void> {
  const removable: string[] = []
  const list = (after: PartOfPartition | null) =>
    listOrganizationsOfPartition(run.database, partition, after?.organizationId ?? null, PAGE)
  for await (const { organizationId, stored } of removableParts(run, list, 'usage_events', before)) {
    const stated = prunedParts(run.configuration.KEY_PEPPERS, stored ? [stored] : []).usageBefore
    if (stated === null || stated < before) {
      if (!run.budget.take()) return
      const isStated = await run.attempts.make('statement of usage', organizationId, async () => {
        await stateRemoved(run, 'usage', organizationId, before)
        return true
      })
      if (!isStated) continue
    }
    removable.push(organizationId)
  }
  logDrop(partition, await dropUsage(run.database, partition, removable, MOST_KEPT))
}

/** The parts of a partition that their organizations do not keep any more, page by page. */
async function* removableParts(
  run: RetentionRun,
  list: (after: PartOfPartition | null) => Promise<PartOfPartition[]>,
  table: 'audit_records' | 'usage_events',
  before: Date,
): AsyncGenerator<PartOfPartition> {
  let parts = await list(null)
  while (parts.length > 0) {
    const owners = [...new Set(parts.map(({ organizationId }) => organizationId))]
    const settings = new Map(
      (await selectRetentions(run.database, owners)).map((row) => [row.organizationId, row]),
    )
    for (const part of parts) {
      const verified = isDeployment(part.organizationId)
        ? { cutoffs: deploymentCutoffs(run) }
        : verifiedCutoffs(run, settings.get(part.organizationId))
      const cutoff = 'cutoffs' in verified ? verified.cutoffs[table] : null
      if (cutoff !== null && cutoff >= before) yield part
    }
    parts = await list(parts.at(-1) ?? null)
  }
}

/**
 * States which records of a chain may be missing, unless it is stated already. A statement that an earlier run has not finished counts:
 * the records after it are moved.
 * @returns null for a chain of which all stay; `unfinished` when the budget is spent before.
 */
async function removableRecords(
  run: RetentionRun,
  { organizationId, shard, stored }: PartOfPartition,
  before: Date,
): Promise<RemovablePart | 'unfinished' | null> {
  const held = prunedParts(run.configuration.KEY_PEPPERS, stored ? [stored] : []).records.get(shard)
  if (held && held.before >= before.toISOString()) return held
  if (!run.budget.take()) return 'unfinished'
  const chain = { organizationId, shard }
  const pruned = await run.attempts.make('statement of records', organizationId, () =>
    pruneChain(run, chain, before, () => run.budget.take()),
  )
  if (pruned === null) return null
  return pruned.isWhole ? pruned.pruning : 'unfinished'
}

function logDrop({ name: partition }: Partition, kept: number | null): void {
  if (kept === null) logEvent('warn', 'retention.partition_kept', { partition, most: MOST_KEPT })
  else logEvent('info', 'retention.partition_dropped', { partition, kept })
}
