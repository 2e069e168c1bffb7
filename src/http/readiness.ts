import type { Deps } from '../deps.ts'
import { DEPLOYMENT_ORGANIZATION_ID } from '../ledger/audit-record.ts'
import { HOME_SHARD } from '../ledger/shards/shards.ts'
import { withinTime } from '../lib/time-limit.ts'
import { pingDatabase } from './readiness.store.ts'

/** The services that calls need, by the name under which a failure is stated. */
const PARTS = {
  postgres: ({ database }: Deps) => pingDatabase(database),
  redis: ({ redis }: Deps) => redis.ping(),
  ledger: ({ ledgerOf }: Deps) => ledgerOf(DEPLOYMENT_ORGANIZATION_ID, HOME_SHARD).chains(),
  content: ({ contentStore }: Deps) => contentStore.ping(),
}

type ReadinessPart = keyof typeof PARTS

/** Longest wait for a part, in milliseconds; shorter than the time-out of the usual probes. */
const PART_LIMIT_MS = 3_000
/** Anyone may ask: an isolate asks the services at most once in this time. */
const CACHE_MS = 5_000

const results = new WeakMap<Deps['database'], { at: number; failed: ReadinessPart[] }>()

/**
 * The services that do not answer; none of them is a reason to restart the gateway. The result is that of the last five seconds in
 * this isolate.
 */
export async function failedParts(deps: Deps): Promise<ReadinessPart[]> {
  const now = deps.clock()
  const known = results.get(deps.database)
  if (known !== undefined && now - known.at < CACHE_MS) return known.failed
  // Requests that arrive meanwhile have the last result, and ask nothing.
  if (known !== undefined) results.set(deps.database, { at: now, failed: known.failed })
  const names = Object.keys(PARTS) as ReadinessPart[]
  const outcomes = await Promise.allSettled(
    names.map((name) => withinTime(Promise.resolve(PARTS[name](deps)), PART_LIMIT_MS, name)),
  )
  const failed = names.filter((_, index) => outcomes[index]?.status === 'rejected')
  results.set(deps.database, { at: now, failed })
  return failed
}
