import type { Database } from '../../../schema/database.ts'
import type { KeyRing } from '../../lib/crypto.ts'
import { newId } from '../../lib/ids.ts'
import { NO_ACTOR } from '../audit-record.ts'
import type { LedgerOf } from '../contract.ts'
import { type ChainIdentity, GENESIS } from '../records/chain.ts'
import { HOME_SHARD } from '../shards/shards.ts'
import { prunedParts, type RecordsPruning, signPruning } from './pruning.ts'
import { findLastToPrune, readPartOfChain, selectPrunings, upsertPruning } from './prunings.store.ts'

export interface PruneDeps {
  database: Database
  clock: () => number
  ledgerOf: LedgerOf
  configuration: { KEY_PEPPERS: KeyRing }
  /** Called before a statement that records may go. */
  beforePruning: () => Promise<void>
}

/** Records of one step, whose movements of credits are summed up by one statement. */
const MOST_OF_STEP = 5_000

/** A chain that retention must not shorten, because that would destroy the evidence of a fault. */
export class BrokenChainError extends Error {}

/**
 * States which records of a chain may be missing: those before a time, but the last one of the chain. The chain of the organization
 * records the intent first. Deletes nothing.
 * @param mayStep whether another step may be made. @returns the statement, and whether it reaches as far as it may; what remains is for the next call.
 * @throws BrokenChainError where the records that would go are not a chain, or are not linked to the one that stays.
 */
export async function pruneChain(
  deps: PruneDeps,
  chain: ChainIdentity,
  before: Date,
  mayStep: () => boolean,
): Promise<{ pruning: RecordsPruning; isWhole: boolean }> {
  let pruning = (await readPruning(deps, chain)) ?? emptyPruning(chain, before)
  const last = await findLastToPrune(deps.database, chain, pruning.sequence, before)
  if (last === null) {
    if (pruning.before >= before.toISOString()) return { pruning, isWhole: true }
    pruning = { ...pruning, before: before.toISOString() }
    await upsertPruning(deps.database, signPruning(deps.configuration.KEY_PEPPERS, pruning))
    return { pruning, isWhole: true }
  }
  if (pruning.before < before.toISOString() || pruning.sequence === 0) {
    await recordIntent(deps, chain, { before, from: pruning.sequence + 1, to: last })
  }
  while (pruning.sequence < last && mayStep()) {
    pruning = await extended(deps, pruning, Math.min(last, pruning.sequence + MOST_OF_STEP), before)
    await upsertPruning(deps.database, signPruning(deps.configuration.KEY_PEPPERS, pruning))
  }
  return { pruning, isWhole: pruning.sequence === last }
}

/** @throws BrokenChainError for a statement that does not count. */
async function readPruning(
  { database, configuration }: PruneDeps,
  { organizationId, shard }: ChainIdentity,
): Promise<RecordsPruning | undefined> {
  const rows = (await selectPrunings(database, [organizationId])).filter(
    (row) => row.kind === 'records' && row.shard === shard,
  )
  const { records, faults } = prunedParts(configuration.KEY_PEPPERS, rows)
  const [fault] = faults
  if (fault) throw new BrokenChainError(`chain ${organizationId}:${shard}: ${fault.detail}`)
  return records.get(shard)
}

const emptyPruning = ({ organizationId, shard }: ChainIdentity, before: Date): RecordsPruning => ({
  kind: 'records',
  organizationId,
  shard,
  sequence: 0,
  hash: GENESIS.hash,
  // Any statement is newer.
  before: new Date(Math.min(0, before.getTime())).toISOString(),
  entries: 0,
  amount: 0,
})

/** Extends a statement to a later record of its chain. */
async function extended(
  { database }: PruneDeps,
  pruning: RecordsPruning,
  to: number,
  before: Date,
): Promise<RecordsPruning> {
  const part = await readPartOfChain(database, pruning, pruning, to)
  const { last, next } = part
  const isLinked =
    part.records === to - pruning.sequence &&
    last !== null &&
    part.broken === 0 &&
    next?.previousHash === last.hash
  if (!isLinked) {
    const { organizationId, shard, sequence } = pruning
    throw new BrokenChainError(
      `chain ${organizationId}:${shard}: the records ${sequence + 1} to ${to + 1} are not a chain`,
    )
  }
  return {
    ...pruning,
    sequence: to,
    hash: last.hash,
    before: before.toISOString(),
    entries: pruning.entries + part.entries,
    amount: pruning.amount + part.amount,
  }
}

async function recordIntent(
  { ledgerOf, clock, beforePruning }: PruneDeps,
  { organizationId, shard }: ChainIdentity,
  { before, from, to }: { before: Date; from: number; to: number },
): Promise<void> {
  await beforePruning()
  await ledgerOf(organizationId, HOME_SHARD).recordChange({
    id: newId('change'),
    requestId: newId('req'),
    organizationId,
    at: clock(),
    actor: NO_ACTOR,
    action: 'audit_records.pruned',
    resource: `audit/chains/${shard}`,
    detail: { before: before.toISOString(), from_sequence: from, to_sequence: to },
  })
}
