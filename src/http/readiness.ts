import type { Deps } from '../deps.ts'
import { DEPLOYMENT_ORGANIZATION_ID } from '../ledger/audit-record.ts'
import { HOME_SHARD } from '../ledger/shards/shards.ts'
import { withinTime } from '../lib/time-limit.ts'
import { pingDatabase } from '../responses/store/rows.store.ts'

/** The services that calls need, by the name under which a failure is stated. */
const PARTS = {
  postgres: ({ database }: Deps) => pingDatabase(database),
  redis: ({ redis }: Deps) => redis.ping(),
  ledger: ({ ledgerOf }: Deps) => ledgerOf(DEPLOYMENT_ORGANIZATION_ID, HOME_SHARD).chains(),
  content: ({ contentStore }: Deps) => contentStore.ping(),
}

type ReadinessPart = keyof typeof PARTS

/** Whether the services answer. */
interface Readiness {
  /** Those that do not. */
  failed: ReadinessPart[]
  /** Those that do not, and that only some tools need: the gateway stays in rotation. */
  degraded: Array<'tools'>
  /** Version of the script of tools; null where it has none, or does not answer. */
  toolsVersion: string | null
}

/** Longest wait for a part, in milliseconds; shorter than the time-out of the usual probes. */
const PART_LIMIT_MS = 3_000
/** Anyone may ask: an isolate asks the services at most once in this time. */
const CACHE_MS = 5_000

/** Longest wait for what another request asks, in milliseconds: that request may have been ended. */
const SHARED_LIMIT_MS = PART_LIMIT_MS + 500

const results = new WeakMap<Deps['database'], { at: number; readiness: Readiness }>()

/** Requests that wait for the answers that another one is getting. Plain data, because requests share it. */
interface Probe {
  waiting: Array<(readiness: Readiness) => void>
}
const probes = new WeakMap<Deps['database'], Probe>()

/**
 * Asks the services; none of them is a reason to restart the gateway. The result is that of the last five seconds in
 * this isolate. Requests that arrive while one asks wait for its result.
 */
export async function readReadiness(deps: Deps): Promise<Readiness> {
  for (let running = probes.get(deps.database); running; running = probes.get(deps.database)) {
    const shared = await resultOf(running)
    if (shared !== null) return shared
    // The first that has waited in vain asks again, and the others wait for it.
    if (probes.get(deps.database) === running) probes.delete(deps.database)
  }
  const known = results.get(deps.database)
  if (known !== undefined && deps.clock() - known.at < CACHE_MS) return known.readiness
  const probe = probeParts(deps)
  // Others wait for it, also when the caller of this request leaves.
  deps.waitUntil(probe)
  return probe
}

/** @returns null when the request that asks has not got its answers in time. */
async function resultOf(probe: Probe): Promise<Readiness | null> {
  // Not `new Promise`: see `WaitingEntry` in `ledger/commits/commit-queue`.
  const { promise, resolve } = Promise.withResolvers<Readiness | null>()
  const timer = setTimeout(() => resolve(null), SHARED_LIMIT_MS)
  probe.waiting.push(resolve)
  const readiness = await promise
  clearTimeout(timer)
  return readiness
}

async function probeParts(deps: Deps): Promise<Readiness> {
  const probe: Probe = { waiting: [] }
  probes.set(deps.database, probe)
  const names = Object.keys(PARTS) as ReadinessPart[]
  const within = <Result>(work: Promise<Result>, name: string) => withinTime(work, PART_LIMIT_MS, name)
  const [outcomes, tools] = await Promise.all([
    Promise.allSettled(names.map((name) => within(Promise.resolve(PARTS[name](deps)), name))),
    within(deps.pingTools(), 'tools').then(
      (version) => ({ version, degraded: [] }),
      () => ({ version: null, degraded: ['tools' as const] }),
    ),
  ])
  const readiness: Readiness = {
    failed: names.filter((_, index) => outcomes[index]?.status === 'rejected'),
    degraded: tools.degraded,
    toolsVersion: tools.version,
  }
  results.set(deps.database, { at: deps.clock(), readiness })
  if (probes.get(deps.database) === probe) probes.delete(deps.database)
  for (const resolve of probe.waiting) resolve(readiness)
  return readiness
}
