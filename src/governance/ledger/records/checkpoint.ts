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
 * Stores the head of every chain as Postgres has it, with a MAC under the current key pepper: write access to the database
 * alone is not enough to rewrite or shorten a chain undetected. The MAC is also logged, so that the logs show when the
 * newest checkpoint is removed.
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
 * Verifies the MACs of the newest checkpoints, and that every head in them is still the record of its sequence: a chain
 * that was shortened or rewritten before it does not have that record.
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
