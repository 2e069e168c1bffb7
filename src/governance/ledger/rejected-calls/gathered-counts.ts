import { BoundedMap } from '../../../lib/bounded-map.ts'

/** How often, at most, an isolate sends what it counted under one key. */
const INTERVAL_MS = 1_000

interface Gathered {
  /** When the next count may be sent, in milliseconds since the epoch. */
  nextAt: number
  /** Counted and not yet sent. Whoever raises it from 0 waits and sends it. */
  count: number
}

/** Of this isolate, and plain data: requests share numbers here, and each does its own waiting and sending. */
const gathered = new BoundedMap<string, Gathered>(10_000)

/**
 * Counts one, and sends what was counted under the key: the first at once, what follows within a second together. So a
 * flood costs an object one call a second for each key.
 * @param now milliseconds since the epoch. @param send what to do with a count of at least 1.
 * @returns when nothing is left for this caller to do. What a request counted can be sent by another one.
 * @throws what `send` throws; what it was to send is not sent again.
 */
export async function sendGathered(
  key: string,
  now: number,
  send: (count: number) => Promise<void>,
): Promise<void> {
  const entry = gathered.get(key)
  if (!entry) {
    gathered.set(key, { nextAt: now + INTERVAL_MS, count: 0 })
    return send(1)
  }
  entry.count += 1
  // Somebody else waits, unless it is long past its time: a request can end before the work it left behind does.
  if (entry.count > 1 && now < entry.nextAt + INTERVAL_MS) return
  const wait = Math.min(INTERVAL_MS, entry.nextAt - now)
  if (wait > 0) await new Promise((resolve) => setTimeout(resolve, wait))
  const { count } = entry
  if (count === 0) return
  entry.count = 0
  entry.nextAt = Math.max(now, entry.nextAt) + INTERVAL_MS
  await send(count)
}
