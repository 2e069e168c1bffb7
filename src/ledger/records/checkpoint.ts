import type { Database } from '../../../schema/database.ts'
import { canonicalJson } from '../../lib/canonical-json.ts'
import type { Clock } from '../../lib/clock.ts'
import { currentKey, hmacSha256Hex, type KeyRing, secretsEqual } from '../../lib/crypto.ts'
import { newId } from '../../lib/ids.ts'
import { logEvent } from '../../lib/log.ts'
import { DEPLOYMENT_ORGANIZATION_ID, NO_ACTOR } from '../audit-record.ts'
import type { LedgerOf } from '../contract.ts'
import { prunedParts } from '../retention/pruning.ts'
import { selectPrunings } from '../retention/prunings.store.ts'
import { HOME_SHARD } from '../shards/shards.ts'
import {
  type Checkpoint,
  insertCheckpoint,
  listCheckpoints,
  readChainHeads,
  readHashes,
} from './chain.store.ts'
import type { ChainHead, ChainIdentity } from './chain.ts'
import { CHECKPOINT_STORED, checkpointStatement } from './stated-rows.ts'

export interface CheckpointDeps {
  database: Database
  clock: Clock
  configuration: { KEY_PEPPERS: KeyRing }
}

interface CheckpointWriter extends CheckpointDeps {
  ledgerOf: LedgerOf
}

interface CheckpointFault {
  checkpointId: string
  reason: 'unknown_key' | 'forged' | 'chain_differs'
  detail: string
}

/** Selects checkpoints to read. */
export interface CheckpointPage {
  /** Organization of the chains; null for those of all organizations. */
  organizationId: string | null
  /** Id of the last checkpoint of the page before. */
  after: string | null
  limit: number
}

/**
 * Stores the head of every chain as Postgres has it, with a MAC under the current key pepper: write access to the database
 * alone is not enough to rewrite or shorten a chain undetected. The deployment's chain then states the checkpoint, so that
 * its deletion is detected as well. The MAC is also logged.
 * @returns the checkpoint, also when no chain has grown since the last one. @throws when it could not be stated.
 */
export async function writeCheckpoint(deps: CheckpointWriter): Promise<Checkpoint> {
  const heads = await readChainHeads(deps.database, null)
  const at = new Date(deps.clock())
  const { id: pepperId, key } = currentKey(deps.configuration.KEY_PEPPERS)
  const mac = hmacSha256Hex(key, storedText({ at, heads }))
  const checkpoint = await insertCheckpoint(deps.database, { at, heads, pepperId, mac })
  logEvent('info', 'audit.checkpoint', { id: checkpoint.id, chains: heads.length, pepperId, mac })
  await stateCheckpoint(deps, checkpoint)
  return checkpoint
}

/** States the checkpoint after its row is stored: a record of a checkpoint that was never stored would be a lasting fault. */
const stateCheckpoint = ({ ledgerOf, clock }: CheckpointWriter, checkpoint: Checkpoint) =>
  ledgerOf(DEPLOYMENT_ORGANIZATION_ID, HOME_SHARD).recordChange({
    id: newId('change'),
    requestId: newId('req'),
    organizationId: DEPLOYMENT_ORGANIZATION_ID,
    at: clock(),
    actor: NO_ACTOR,
    action: CHECKPOINT_STORED,
    resource: 'audit/checkpoints',
    detail: checkpointStatement(checkpoint),
  })

/**
 * Verifies the MACs of a page of checkpoints, and that every head in them is still the record of its sequence: a chain
 * that was shortened or rewritten before it does not have that record.
 * @returns `next`: id of the last one; null when there are no more.
 */
export async function verifyCheckpoints(
  deps: CheckpointDeps,
  { organizationId, after, limit }: CheckpointPage,
): Promise<{ checkpoints: number; faults: CheckpointFault[]; next: string | null }> {
  const checkpoints = await listCheckpoints(deps.database, after, limit)
  const faults: CheckpointFault[] = []
  for (const checkpoint of checkpoints) {
    const peppers = deps.configuration.KEY_PEPPERS
    const broken =
      verifyMac(peppers, checkpoint, storedText) ?? (await findReplaced(deps, checkpoint, organizationId))
    if (broken) faults.push({ checkpointId: checkpoint.id, ...broken })
  }
  return { checkpoints: checkpoints.length, faults, next: nextAfter(checkpoints, limit) }
}

/** A statement of an export about one organization, under a MAC that can be verified without the other organizations' chains. */
export interface Attested<Statement> {
  statement: Statement
  pepperId: string
  mac: string
}

/** A checkpoint, reduced to the chains of one organization. `fault` is what verifying the checkpoint itself found. */
interface CheckpointStatement {
  organizationId: string
  checkpointId: string
  at: string
  heads: Array<ChainIdentity & ChainHead>
  fault: Omit<CheckpointFault, 'checkpointId'> | null
}

/** Reads a page of checkpoints for an export. */
export async function exportCheckpoints(
  deps: CheckpointDeps,
  { organizationId, after, limit }: CheckpointPage & { organizationId: string },
): Promise<{ checkpoints: Array<Attested<CheckpointStatement>>; next: string | null }> {
  const read = await listCheckpoints(deps.database, after, limit)
  const peppers = deps.configuration.KEY_PEPPERS
  const checkpoints = read.map((checkpoint) => {
    const { id: checkpointId, at } = checkpoint
    const fault = verifyMac(peppers, checkpoint, storedText)
    const heads = fault ? [] : headsOf(checkpoint, organizationId)
    return attest(peppers, { organizationId, checkpointId, at: isoText(at), heads, fault })
  })
  return { checkpoints, next: nextAfter(read, limit) }
}

/** Puts a statement under a MAC of the current key pepper. */
export function attest<Statement>(peppers: KeyRing, statement: Statement): Attested<Statement> {
  const { id: pepperId, key } = currentKey(peppers)
  return { statement, pepperId, mac: hmacSha256Hex(key, statementText({ statement })) }
}

/** Verifies the MAC of an exported statement. @returns null when it is right. */
export const verifyAttested = (peppers: KeyRing, attested: Attested<unknown>) =>
  verifyMac(peppers, attested, statementText)

const statementText = ({ statement }: { statement: unknown }) => `audit-export\n${canonicalJson(statement)}`

const storedText = ({ at, heads }: Pick<Checkpoint, 'at' | 'heads'>) =>
  `audit-checkpoint\n${canonicalJson({ at: isoText(at), heads })}`

/** Empty for a time that no checkpoint has, so that its MAC is wrong. */
const isoText = (at: Date) => (Number.isNaN(at.getTime()) ? '' : at.toISOString())

function verifyMac<Signed extends { pepperId: string; mac: string }>(
  peppers: KeyRing,
  signed: Signed,
  textOf: (signed: Signed) => string,
) {
  const key = peppers.get(signed.pepperId)
  if (!key) return { reason: 'unknown_key' as const, detail: `pepper ${signed.pepperId} is not configured` }
  if (secretsEqual(signed.mac, hmacSha256Hex(key, textOf(signed)))) return null
  return { reason: 'forged' as const, detail: 'its MAC is wrong' }
}

async function findReplaced(deps: CheckpointDeps, checkpoint: Checkpoint, organizationId: string | null) {
  const heads = headsOf(checkpoint, organizationId)
  const hashes = await readHashes(deps.database, heads)
  const differing = heads.filter(({ hash }, index) => hash !== hashes[index])
  const replaced = await findUnpruned(deps, differing)
  if (!replaced) return null
  const chain = `${replaced.organizationId}:${replaced.shard}`
  const detail = `record ${replaced.sequence} of chain ${chain} is missing or another one`
  return { reason: 'chain_differs' as const, detail }
}

/** The first of some heads that are not in Postgres of which no statement of retention says that it may be missing. */
async function findUnpruned(
  { database, configuration }: CheckpointDeps,
  heads: ReadonlyArray<ChainIdentity & ChainHead>,
) {
  const owners = [...new Set(heads.map(({ organizationId }) => organizationId))]
  const rows = await selectPrunings(database, owners)
  return heads.find(({ organizationId, shard, sequence, hash }) => {
    const own = rows.filter((row) => row.organizationId === organizationId)
    const pruned = prunedParts(configuration.KEY_PEPPERS, own).records.get(shard)
    if (pruned === undefined || sequence > pruned.sequence) return true
    return sequence === pruned.sequence && hash !== pruned.hash
  })
}

const headsOf = ({ heads }: Checkpoint, owner: string | null) =>
  heads.filter(({ organizationId }) => owner === null || organizationId === owner)

const nextAfter = (read: readonly Checkpoint[], limit: number) =>
  read.length < limit ? null : (read.at(-1)?.id ?? null)
