import { BoundedMap } from '../lib/bounded-map.ts'
import { countShared, type SharedLimitDeps } from '../lib/shared-limits.ts'
import type { KeyOwner } from './identify.ts'

/** When the limit of a key leaves room again, in milliseconds since the epoch. */
const limitedUntil = new BoundedMap<string, number>(10_000)

/**
 * Counts a call whose known key was refused. Such calls have the limits of a valid key, but separate counts: a key
 * that was revoked must not use up the calls of its user.
 * @returns seconds until the limit leaves room; 0 while it does.
 */
export async function countRefusedCall(
  deps: SharedLimitDeps,
  { keyId, callsPerMinute: perMinute }: KeyOwner,
): Promise<number> {
  const now = deps.clock()
  const until = limitedUntil.get(keyId) ?? 0
  if (now < until) return Math.ceil((until - now) / 1_000)
  const { retryAfterSeconds } = await countShared(deps, { name: 'refused-calls', perMinute }, keyId)
  if (retryAfterSeconds > 0) limitedUntil.set(keyId, now + retryAfterSeconds * 1_000)
  return retryAfterSeconds
}
