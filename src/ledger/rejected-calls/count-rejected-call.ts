import { BoundedMap } from '../../lib/bounded-map.ts'
import { sha256Hex } from '../../lib/crypto.ts'
import { settleAll } from '../../lib/settle-all.ts'
import { withinTime } from '../../lib/time-limit.ts'
import { ANSWER_LIMIT_MS, callLedger, type LedgerObject } from '../ledger-object.ts'

/** Objects that keyless calls are counted in, chosen by address. */
const REJECTED_CALL_OBJECTS = 8
/** Minimum interval between two messages of an isolate with its count of one address, minute and surface. */
const INTERVAL_MS = 1_000

interface Gathered {
  /** When the next count may be sent, in milliseconds since the epoch. */
  nextAt: number
  /** Counted and not sent yet. The call that raises it from 0 waits and sends it. */
  count: number
}

/** Counts of this isolate. They are plain data: requests share them, and each does its own waiting and sending. */
const gathered = new BoundedMap<string, Gathered>(10_000)

/**
 * Name of the object that counts the rejected calls of an address.
 * @internal Tests address the object by its name.
 */
export function rejectedCallsName(ip: string): string {
  return nameOf(Number.parseInt(sha256Hex(ip).slice(0, 8), 16) % REJECTED_CALL_OBJECTS)
}

const nameOf = (index: number) => `unauthenticated:${index}`

/** Has every object write the counts again that it still holds. @throws when one does not answer. */
export async function resendRejectedCalls(namespace: DurableObjectNamespace): Promise<void> {
  const request = { shard: null, from: null, announced: 0 }
  const names = Array.from({ length: REJECTED_CALL_OBJECTS }, (_, index) => nameOf(index))
  await settleAll(names.map((name) => callLedger(namespace, name, (object) => object.reflush(request))))
}

/**
 * Counts a call that was rejected without a known organization. The first call is sent at once, those that follow within a
 * second together, so a flood costs an object one request a second. A failed message is not repeated: its count may be stored.
 * @param call.at milliseconds since the epoch.
 * @returns when this request has no more work for the call, whose count another request may send.
 */
export async function countRejectedCall(
  namespace: DurableObjectNamespace,
  { ip, at, surface }: { ip: string; at: number; surface: string },
): Promise<void> {
  const minute = at - (at % 60_000)
  const send = (count: number) => {
    const stub = namespace.getByName(rejectedCallsName(ip)) as unknown as LedgerObject
    return withinTime(stub.countRejected(ip, minute, surface, count), ANSWER_LIMIT_MS, 'the counting object')
  }
  const key = JSON.stringify([ip, minute, surface])
  const entry = gathered.get(key)
  if (!entry) {
    gathered.set(key, { nextAt: at + INTERVAL_MS, count: 0 })
    return send(1)
  }
  entry.count += 1
  // Another request waits, unless its time is long over: a request can be ended before the work that it left behind.
  if (entry.count > 1 && at < entry.nextAt + INTERVAL_MS) return
  const wait = Math.min(INTERVAL_MS, entry.nextAt - at)
  if (wait > 0) await new Promise((resolve) => setTimeout(resolve, wait))
  const { count } = entry
  if (count === 0) return
  entry.count = 0
  entry.nextAt = Math.max(at, entry.nextAt) + INTERVAL_MS
  await send(count)
}
