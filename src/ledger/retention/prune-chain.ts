import type { Database } from '../../../schema/database.ts'
import type { KeyRing } from '../../lib/crypto.ts'
import { newId } from '../../lib/ids.ts'
import { NO_ACTOR } from '../audit-record.ts'
import type { LedgerOf } from '../contract.ts'
import { type ChainIdentity, GENESIS } from '../records/chain.ts'
import { HOME_SHARD } from '../shards/shards.ts'
import { type PartOfChain, readPartOfChain } from './part-of-chain.store.ts'
import type { RecordsPruning } from './pruning.ts'
import { findLastToPrune } from './prunings.store.ts'
import { BrokenChainError, readPruning, storePruning } from './store-pruning.ts'

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

/**
 * States which records of a chain may be missing: those before a time, but the last one of the chain. The chain of the organization
 * records the intent before the first of them is stated. Deletes nothing.
 * @param mayStep whether another step may be made. @returns the stored statement, and whether it reaches as far as it may; what remains is for the next call.
 * @throws BrokenChainError where the records that would go, or the one after them, are not a chain, where their columns or credits are not
 * what their bodies say, and for a stored statement that does not count.
 */
export async function pruneChain(
  deps: PruneDeps,
  chain: ChainIdentity,
  before: Date,
  mayStep: () => boolean,
): Promise<{ pruning: RecordsPruning; isWhole: boolean }> {
  const until = before.toISOString()
  let pruning = (await readPruning(deps, { ...chain, kind: 'records' })) ?? emptyPruning(chain, before)
  const last = await findLastToPrune(deps.database, chain, pruning.sequence, before)
  if (last === null) {
    if (pruning.before < until) pruning = await storePruning(deps, { ...pruning, before: until })
    return { pruning, isWhole: pruning.before >= until }
  }
  const to = { sequence: last, before }
  // Once, before the first of them is stated, and never for a chain that is broken.
  let isIntended = false
  const intend = async () => {
    if (!isIntended) await recordIntent(deps, chain, { before, from: pruning.sequence + 1, to: last })
    isIntended = true
  }
  while (pruning.sequence < last && mayStep()) pruning = await step(deps, pruning, to, intend)
  return { pruning, isWhole: pruning.sequence >= last && pruning.before >= until }
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

/**
 * Extends the stored statement to a later record of its chain.
 * @param last where it may reach in the end. @param intend called when the records in between are verified, before they are stated.
 * @returns the one that is stored then. @throws BrokenChainError where they are not a chain, or not what their bodies say.
 */
async function step(
  deps: PruneDeps,
  pruning: RecordsPruning,
  last: { sequence: number; before: Date },
  intend: () => Promise<void>,
): Promise<RecordsPruning> {
  const to = Math.min(last.sequence, pruning.sequence + MOST_OF_STEP)
  const part = await readPartOfChain(deps.database, pruning, pruning, to)
  if (part !== null) {
    await intend()
    return storePruning(deps, extended(pruning, part, to, last.before))
  }
  // Another run of the sweep may have stated them, and removed them, since the statement was read.
  const stored = await readPruning(deps, pruning)
  if (stored !== null && stored.sequence > pruning.sequence) return stored
  const { organizationId, shard, sequence } = pruning
  throw new BrokenChainError(
    `chain ${organizationId}:${shard}: the records ${sequence + 1} to ${to + 1} are not a chain, or not what their bodies say`,
  )
}

function extended(
  pruning: RecordsPruning,
  { hash, entries, amount }: PartOfChain,
  to: number,
  before: Date,
): RecordsPruning {
  const until = before.toISOString()
  return {
    ...pruning,
    sequence: to,
    hash,
    // What was stated before may be removed already, also where the settings keep more by now.
    before: pruning.before > until ? pruning.before : until,
    entries: pruning.entries + entries,
    amount: pruning.amount + amount,
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
