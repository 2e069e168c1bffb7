import { inject } from 'vitest'
import { type StartedGateway, startGateway } from '../../harness/start-gateway.ts'
import { type FaultProxy, startFaultProxy } from './fault-proxy.ts'

export interface FaultyGateway {
  gateway: StartedGateway
  postgres: FaultProxy
  redis: FaultProxy
  stop(): Promise<void>
}

/** Time-outs short enough to wait for in a test. In milliseconds. */
export const SHORT_TIMES = {
  UPSTREAM_HEADERS_TIMEOUT_MS: 1_500,
  UPSTREAM_FIRST_EVENT_TIMEOUT_MS: 1_500,
  UPSTREAM_EVENT_TIMEOUT_MS: 1_500,
  UPSTREAM_ANSWER_TIMEOUT_MS: 1_500,
  STREAM_COMMIT_MS: 500,
  STREAM_HEARTBEAT_MS: 500,
  LEDGER_LEASE_MS: 1_000,
  LEDGER_FLUSH_MS: 100,
}

/** An upstream that may stall for as long as a campaign lets it, and a busy machine that is not taken for an outage. */
export const PATIENT_TIMES = {
  UPSTREAM_HEADERS_TIMEOUT_MS: 20_000,
  UPSTREAM_FIRST_EVENT_TIMEOUT_MS: 20_000,
  UPSTREAM_EVENT_TIMEOUT_MS: 20_000,
  LIMITS_TIMEOUT_MS: 20_000,
}

/** A whole gateway whose Postgres and Redis can be made to fail, with short time-outs. */
export async function startFaultyGateway(
  variables: Record<string, string | number> = {},
): Promise<FaultyGateway> {
  const texts = Object.fromEntries(
    Object.entries({ ...SHORT_TIMES, ...variables }).map(([name, value]) => [name, String(value)]),
  )
  const gateway = await startGateway({ bundleDirectory: inject('bundleDirectory'), variables: texts })
  const [postgres, redis] = await Promise.all([
    startFaultProxy(gateway.standIns.postgres),
    startFaultProxy(gateway.standIns.redis),
  ])
  const stop = async (): Promise<void> => {
    await gateway.stop()
    await Promise.all([postgres.close(), redis.close()])
  }
  try {
    await gateway.restartWorkerd({
      DATABASE_FETCH_ENDPOINT: `${postgres.url}/sql`,
      UPSTASH_REDIS_REST_URL: redis.url,
    })
  } catch (error) {
    await stop()
    throw error
  }
  return { gateway, postgres, redis, stop }
}

/** A number from the environment, so that a long run is a matter of options. */
function option(name: string, fallback: number): number {
  const text = process.env[name]
  if (text === undefined || text === '') return fallback
  const value = Number(text)
  if (!Number.isSafeInteger(value) || value < 1) throw new Error(`${name} is not a whole number from 1`)
  return value
}

/** Calls of a random trial; what takes longer is done for a part of them. */
export const TRIALS = option('FAULT_TRIALS', 60)
/** Random trials, each with a seed of its own from 1 on. */
export const SEEDS = Array.from({ length: option('FAULT_SEEDS', 1) }, (_, index) => index + 1)
