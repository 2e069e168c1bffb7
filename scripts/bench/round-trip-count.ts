import { runLoad } from './load.ts'
import { BenchFailure } from './measure.ts'
import { untilIdle } from './process-usage.ts'
import { startCounter } from './request-counter.ts'
import type { Scenario } from './scenarios.ts'
import type { BenchSystem } from './system.ts'

/** Network round trips of the gateway for one call, the caller's own not included. */
export interface RoundTrips {
  redis: number
  postgres: number
  upstream: number
}

export interface RoundTripFigures {
  /** The very first call of a fresh process, which has nothing cached. */
  first: RoundTrips
  /** A call among many of the same caller, what the ledger writes behind it included. */
  steady: RoundTrips
  calls: number
}

const CALLS = 1_000
const CALLS_LIMIT_MS = 15_000

/**
 * Counts round trips: the gateway is started again with forwarders in front of Redis and Postgres, since these would
 * disturb the times if they always stood there.
 *
 * @throws BenchFailure when a call fails
 */
export async function countRoundTrips(
  system: BenchSystem,
  scenario: Scenario,
  connections: number,
): Promise<RoundTripFigures> {
  const redis = await startCounter(system.redis)
  const postgres = await startCounter(system.postgres)
  try {
    await system.gateway.restart({
      ...system.variables,
      UPSTASH_REDIS_REST_URL: redis.url,
      DATABASE_FETCH_ENDPOINT: `${postgres.url}/sql`,
    })
    const counted = async (calls: number, atOnce: number): Promise<RoundTrips> => {
      const before = await upstreamRequests(system.upstream)
      redis.reset()
      postgres.reset()
      await callTimes(system, scenario, calls, atOnce)
      const upstream = (await upstreamRequests(system.upstream)) - before
      return { redis: redis.count() / calls, postgres: postgres.count() / calls, upstream: upstream / calls }
    }
    const first = await counted(1, 1)
    const steady = await counted(CALLS, connections)
    return { first, steady, calls: CALLS }
  } finally {
    await system.gateway.restart(system.variables)
    await redis.close()
    await postgres.close()
  }
}

async function callTimes(
  { gateway }: BenchSystem,
  scenario: Scenario,
  calls: number,
  connections: number,
): Promise<void> {
  const { port, pid } = gateway
  const { call } = scenario
  const result = await runLoad({ port, call, connections, calls, milliseconds: CALLS_LIMIT_MS })
  if (result.failures > 0 || result.calls !== calls) {
    throw new BenchFailure(`counting round trips: ${result.firstFailure ?? 'the calls took too long'}`)
  }
  await untilIdle(pid, 1_300, 10_000)
}

/** The stand-in counts its own requests but those to its control interface. */
export async function upstreamRequests(upstream: string): Promise<number> {
  const response = await fetch(`${upstream}/control/stats`)
  const { totalRequests } = (await response.json()) as { totalRequests: number }
  return totalRequests
}
