import type { Database } from '../../../../schema/database.ts'
import { canonicalJson } from '../../../lib/canonical-json.ts'
import type { Clock } from '../../../lib/clock.ts'
import { currentKey, hmacSha256Hex, type KeyRing, secretsEqual } from '../../../lib/crypto.ts'
import { logEvent } from '../../../lib/log.ts'
import {
  type Checkpoint,
  findReplacedHeads,
  insertCheckpoint,
  listCheckpoints,
  readChainHeads,
} from './chain.store.ts'
import type { ChainHead, ChainIdentity } from './chain.ts'

/** The part of `Deps` that checkpoints need. */
export interface CheckpointDeps {
  database: Database
  clock: Clock
  configuration: { KEY_PEPPERS: KeyRing }
}

export type CheckpointVerification =
  | { intact: true; checkpoints: number }
  | {
      intact: false
      checkpointId: string
      reason: 'unknown_key' | 'forged' | 'chain_differs'
      detail: string
    }

/**
 * Writes down the head of every chain as Postgres has it, under a MAC with the current key pepper: whoever can write
 * to the database alone cannot rewrite or shorten a chain behind it unseen. The MAC also goes to the log, so that
 * removing the newest checkpoint shows to whoever keeps logs.
 * @returns the checkpoint, also when no chain has grown since the last one.
 */
export async function writeCheckpoint(deps: CheckpointDeps): Promise<Checkpoint> {
  const heads = await readChainHeads(deps.database)
  const at = new Date(deps.clock())
  const { id: pepperId, key } = currentKey(deps.configuration.KEY_PEPPERS)
  const mac = checkpointMac(key, at, heads)
  const checkpoint = await insertCheckpoint(deps.database, { at, heads, pepperId, mac })
  logEvent('info', 'audit.checkpoint', { id: checkpoint.id, chains: heads.length, pepperId, mac })
  return checkpoint
}

/**
 * Verifies the newest checkpoints: that each MAC is right, and that every head it names is still the record of that
 * sequence, which a chain that was shortened or rewritten below it does not have.
 * @param most how many checkpoints, newest first.
 */
export async function verifyCheckpoints(deps: CheckpointDeps, most = 50): Promise<CheckpointVerification> {
  const checkpoints = await listCheckpoints(deps.database, most)
  for (const checkpoint of checkpoints) {
    const broken = await findBreak(deps, checkpoint)
    if (broken) return { intact: false, checkpointId: checkpoint.id, ...broken }
  }
  return { intact: true, checkpoints: checkpoints.length }
}

async function findBreak(deps: CheckpointDeps, { at, heads, pepperId, mac }: Checkpoint) {
  const key = deps.configuration.KEY_PEPPERS.get(pepperId)
  if (!key) return { reason: 'unknown_key' as const, detail: `pepper ${pepperId} is not configured` }
  if (!secretsEqual(mac, checkpointMac(key, at, heads))) {
    return { reason: 'forged' as const, detail: 'its MAC is wrong' }
  }
  const [replaced] = await findReplacedHeads(deps.database, heads)
  if (!replaced) return null
  const { organizationId, shard, sequence } = replaced
  return {
    reason: 'chain_differs' as const,
    detail: `record ${sequence} of chain ${organizationId}:${shard} is missing or another one`,
  }
}

function checkpointMac(key: Uint8Array, at: Date, heads: Array<ChainIdentity & ChainHead>): string {
  return hmacSha256Hex(key, `audit-checkpoint\n${canonicalJson({ at: at.toISOString(), heads })}`)
}
