import { cpSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { startQstash } from '../../local/qstash/start.ts'
import { startWorkerd } from '../../node/workerd.ts'
import { BenchFailure } from '../measure.ts'
import { cpuMicroseconds, untilIdle } from '../process-usage.ts'
import { startCounter } from '../request-counter.ts'
import type { BenchSystem } from '../system.ts'

/** Operations that a call causes. */
export interface Operations {
  workerRequests: number
  /** Milliseconds of the gateway's process: of the Worker and of its objects, which are not billed by it. */
  workerCpu: number
  objectRequests: number
  objectAlarms: number
  objectSeconds: number
  objectRowsWritten: number
  objectRowsRead: number
  /** Operations of the bucket, of class A and of class B. */
  bucketWrites: number
  bucketReads: number
  /** Messages that QStash accepts. */
  queueMessages: number
  redisCommands: number
  postgresStatements: number
  /** Bytes of bodies to Postgres, and of its answers. */
  postgresSent: number
  postgresReceived: number
  modelRequests: number
  /** `objectRowsWritten` by the table that they are in. */
  rowsByTable: Record<string, number>
}

/** The gateway with counters around everything that it uses. */
export interface CountingSystem {
  port: number
  /** Waits until everything that was begun is done, watchdogs of the future included. */
  settle(): Promise<void>
  counts(): Promise<Operations>
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
 * Starts the gateway in place of the ordinary one, on its storage: with forwarders in front of Postgres, Redis and QStash, and
 * `workers/counting-gateway.js` around its objects. QStash is one of its own, whose clock moves.
 */
export async function startCountingSystem(system: BenchSystem): Promise<CountingSystem> {
  const { variables, gateway, runtimes } = system
  const folder = mkdtempSync(join(tmpdir(), 'headgate-bench-counting-'))
  cpSync(system.bundle, folder, { recursive: true })
  cpSync(join(import.meta.dirname, '../workers', ENTRY), join(folder, ENTRY))
  const qstash = await startQueue(variables)
  const postgres = await startCounter(system.postgres, statementsOf)
  const redis = await startCounter(system.redis, commandsOf)
  const queue = await startCounter(qstash.url)
  await gateway.kill('SIGTERM')
  const worker = await startWorkerd({
    ...runtimes.gateway,
    bundleDirectory: folder,
    entry: ENTRY,
    bindings: {
      ...variables,
      DATABASE_FETCH_ENDPOINT: `${postgres.url}/sql`,
      UPSTASH_REDIS_REST_URL: redis.url,
      QSTASH_URL: queue.url,
    },
    port: gateway.port,
    storageDirectory: gateway.storageDirectory,
  })
  const counts = async (): Promise<Operations> => ({
    ...((await (await fetch(`${worker.url}/bench/counts`)).json()) as Operations),
    workerCpu: cpuMicroseconds(worker.pid) / 1_000,
    queueMessages: queue.count(),
    redisCommands: redis.units(),
    postgresStatements: postgres.units(),
    postgresSent: postgres.bytes().sent,
    postgresReceived: postgres.bytes().received,
    modelRequests: await modelRequests(system.upstream),
  })
  const stop = async (): Promise<void> => {
    await worker.stop()
    await gateway.restart(variables)
    for (const server of [postgres, redis, queue, qstash]) await server.close()
    rmSync(folder, { recursive: true, force: true })
  }
  return { port: gateway.port, settle: () => settle(worker.pid, qstash.url), counts, stop }
}

/** Statements of a request of SQL over HTTP. */
function statementsOf(body: string): number {
  const { queries } = JSON.parse(body) as { queries?: unknown[] }
  return queries?.length ?? 1
}

/** Commands of a request to Upstash: an array of texts is one, an array of arrays a pipeline of several. */
function commandsOf(body: string): number {
  const command = JSON.parse(body) as unknown[]
  return Array.isArray(command[0]) ? command.length : 1
}

function startQueue(variables: Record<string, string>) {
  const { QSTASH_TOKEN: token = '', QSTASH_CURRENT_SIGNING_KEY: currentSigningKey = '' } = variables
  const nextSigningKey = variables.QSTASH_NEXT_SIGNING_KEY ?? ''
  return startQstash({ token, currentSigningKey, nextSigningKey, control: true })
}

/** The stand-in counts all requests except those to its control interface. */
async function modelRequests(upstream: string): Promise<number> {
  const response = await fetch(`${upstream}/control/stats`)
  const { totalRequests } = (await response.json()) as { totalRequests: number }
  return totalRequests
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
