import { cpSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { startQstash } from '../../local/qstash/start.ts'
import { startWorkerd } from '../../local/workerd.ts'
import { BenchFailure } from '../measure.ts'
import { untilIdle } from '../process-usage.ts'
import { startCounter } from '../request-counter.ts'
import { upstreamRequests } from '../round-trip-count.ts'
import type { BenchSystem } from '../system.ts'

/** What is done for something, counted. */
export interface Operations {
  postgresRequests: number
  postgresStatements: number
  redisRequests: number
  /** Messages that QStash accepts, and their deliveries. */
  qstashMessages: number
  deliveries: number
  objectRequests: number
  objectAlarms: number
  /** Rows that objects write, in the way in which they are billed. */
  objectRows: number
  modelRequests: number
}

/** Everything that was counted since the start. */
export interface Counts {
  operations: Operations
  /** Requests to objects by binding and method. */
  objects: Record<string, number>
}

/** The gateway with counters around everything that it uses. */
export interface CountingSystem {
  url: string
  /** Waits until everything that was begun is done, watchdogs of the future included. */
  settle(): Promise<void>
  counts(): Promise<Counts>
  /** Ends it, and starts the ordinary gateway again. */
  stop(): Promise<void>
}

const ENTRY = 'counting-gateway.js'
const QUIET_MS = 1_300
const IDLE_LIMIT_MS = 15_000
const LIMIT_MS = 120_000
/** After which every watchdog has been delivered (`RUN_DELIVERY_MS` and its margins). */
const WATCHDOGS_MS = 200_000

/**
 * Starts the gateway in place of the ordinary one, on its storage: with proxies in front of Postgres, Redis, QStash and itself, and
 * `workers/counting-gateway.js` around its objects. QStash is one of its own, whose clock moves.
 */
export async function startCountingSystem(system: BenchSystem): Promise<CountingSystem> {
  const { variables, gateway, runtimes } = system
  const folder = bundleWithCounters(system.bundle)
  const qstash = await startQueue(variables)
  const counters = {
    postgres: await startCounter(system.postgres),
    redis: await startCounter(system.redis),
    qstash: await startCounter(qstash.url),
    deliveries: await startCounter(gateway.url),
  }
  await gateway.kill('SIGTERM')
  const worker = await startWorkerd({
    ...runtimes.gateway,
    bundleDirectory: folder,
    entry: ENTRY,
    bindings: {
      ...variables,
      DATABASE_FETCH_ENDPOINT: `${counters.postgres.url}/sql`,
      UPSTASH_REDIS_REST_URL: counters.redis.url,
      QSTASH_URL: counters.qstash.url,
      BASE_URL: counters.deliveries.url,
    },
    port: gateway.port,
    storageDirectory: gateway.storageDirectory,
  })
  const counts = async (): Promise<Counts> => {
    const objects = await objectCounts(worker.url)
    const operations = {
      postgresRequests: counters.postgres.count(),
      postgresStatements: counters.postgres.statements(),
      redisRequests: counters.redis.count(),
      qstashMessages: counters.qstash.count(),
      deliveries: counters.deliveries.count(),
      objectRequests: Object.values(objects.requests).reduce((total, count) => total + count, 0),
      objectAlarms: objects.alarms,
      objectRows: objects.rows,
      modelRequests: await upstreamRequests(system.upstream),
    }
    return { operations, objects: objects.requests }
  }
  const stop = async (): Promise<void> => {
    await worker.stop()
    await gateway.restart(variables)
    for (const server of [...Object.values(counters), qstash]) await server.close()
    rmSync(folder, { recursive: true, force: true })
  }
  return { url: worker.url, settle: () => settle(worker.pid, qstash.url), counts, stop }
}

/** A copy of the bundle, with the entry that counts. */
function bundleWithCounters(bundle: string): string {
  const folder = mkdtempSync(join(tmpdir(), 'headgate-bench-counting-'))
  cpSync(bundle, folder, { recursive: true })
  cpSync(join(import.meta.dirname, '../workers', ENTRY), join(folder, ENTRY))
  return folder
}

function startQueue(variables: Record<string, string>) {
  const { QSTASH_TOKEN: token = '', QSTASH_CURRENT_SIGNING_KEY: currentSigningKey = '' } = variables
  const nextSigningKey = variables.QSTASH_NEXT_SIGNING_KEY ?? ''
  return startQstash({ token, currentSigningKey, nextSigningKey, control: true })
}

async function objectCounts(url: string) {
  const response = await fetch(`${url}/bench/object-counts`)
  return (await response.json()) as { requests: Record<string, number>; alarms: number; rows: number }
}

async function settle(pid: number, qstash: string): Promise<void> {
  await untilIdle(pid, QUIET_MS, IDLE_LIMIT_MS)
  const body = JSON.stringify({ milliseconds: WATCHDOGS_MS })
  await fetch(`${qstash}/control/advance`, { method: 'POST', body })
  const end = performance.now() + LIMIT_MS
  while (performance.now() < end) {
    const pending = await (await fetch(`${qstash}/control/pending`)).json()
    if ((pending as { messages: unknown[] }).messages.length === 0) {
      return untilIdle(pid, QUIET_MS, IDLE_LIMIT_MS)
    }
    await setTimeout(100)
  }
  throw new BenchFailure('messages of QStash are pending')
}
