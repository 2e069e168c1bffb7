import { spawn } from 'node:child_process'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { type AddressInfo, createServer as createTcpServer, type Socket } from 'node:net'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import type { Redis } from '@upstash/redis'
import { sql } from 'drizzle-orm'
import type { Database } from '../../../schema/database.ts'
import { migratedDatabase } from '../../harness/migrated-database.ts'
import { databaseAt, redisAt } from './fixtures.ts'

/** A service that a test started. Closing is the test's duty. */
export interface Service {
  url: string
  close(): Promise<void>
}

/** Starts one of `scripts/local` as its own process. @throws if it ends before it is ready. */
export async function startStandIn(
  name: 'postgres' | 'redis',
  options: string[] = [],
  environment: NodeJS.ProcessEnv = {},
): Promise<Service> {
  const script = fileURLToPath(new URL(`../../../scripts/local/${name}/main.ts`, import.meta.url).href)
  // With --parent it also ends when this process does, however that comes about.
  const child = spawn(process.execPath, [script, '--parent', ...options], {
    stdio: ['pipe', 'pipe', 'inherit'],
    env: { ...process.env, ...environment },
  })
  const ended = new Promise<void>((resolve) => child.once('exit', () => resolve()))
  const port = await new Promise<number>((resolve, reject) => {
    createInterface(child.stdout).once('line', (line) => resolve(JSON.parse(line).port))
    ended.then(() => reject(new Error(`the ${name} stand-in ended before it was ready`)))
  })
  const close = async () => {
    child.stdin.end()
    await ended
  }
  // A service that is never closed must not keep this process running.
  child.unref()
  for (const pipe of [child.stdin, child.stdout] as Socket[]) pipe.unref()
  return { url: `http://127.0.0.1:${port}`, close }
}

declare global {
  /** The stand-ins of this worker. Global, because some tests reset the modules. */
  var sharedStandIns: { postgres?: Promise<Service>; redis?: Promise<Service> } | undefined
}
globalThis.sharedStandIns ??= {}
const shared = globalThis.sharedStandIns

async function startMigratedPostgres(): Promise<Service> {
  return startStandIn('postgres', ['--data', 'memory', '--template', await migratedDatabase()])
}

/**
 * Migrated, empty Postgres for one test file. The files of a worker run one after the other and share one process,
 * which ends with the worker.
 */
export async function emptyPostgres(): Promise<{ url: string; database: Database }> {
  shared.postgres ??= startMigratedPostgres()
  const { url } = await shared.postgres
  const database = databaseAt(url)
  await deleteAllRows(database)
  return { url, database }
}

/** Deleting rows takes a fraction of the time of TRUNCATE, which makes new files for each table and index. */
async function deleteAllRows(database: Database): Promise<void> {
  await database.execute(sql`DO $$
    DECLARE name text;
    BEGIN
      -- Without the triggers of foreign keys, the order of the tables does not matter.
      SET LOCAL session_replication_role = replica;
      FOR name IN SELECT quote_ident(tablename) FROM pg_tables WHERE schemaname = 'public' LOOP
        EXECUTE 'DELETE FROM ' || name;
      END LOOP;
    END $$`)
}

/** Empty Redis, shared like Postgres. */
export async function emptyRedis(): Promise<{ url: string; redis: Redis }> {
  shared.redis ??= startStandIn('redis', [], { LOCAL_REDIS_TOKEN: 'local-token' })
  const { url } = await shared.redis
  const redis = redisAt(url)
  await redis.flushall()
  return { url, redis }
}

/** What a forwarder does with the next requests. */
export type Behaviour =
  | 'forward'
  /** Takes the request and never answers. */
  | 'stall'
  /** Answers this. */
  | { status: number; body: string }

export interface Forwarder extends Service {
  behaviour: Behaviour
  /** Where the next request goes: straight to the service while it is forwarded, since a hop costs as much as a query. */
  route(): string
  /** Requests that arrived, since the start or since it was last set. */
  requests: number
  /** Cuts the connections that are being stalled. */
  cutStalled(): void
}

/** A forwarder between the code and a service that counts requests and simulates failures of the network. */
export async function startForwarder(target: string): Promise<Forwarder> {
  const stalled = new Set<ServerResponse>()
  const server = createServer((request, response) => {
    forwarder.requests += 1
    if (forwarder.behaviour === 'stall') {
      stalled.add(response)
      return
    }
    if (forwarder.behaviour === 'forward') {
      forward(target, request, response).catch(() => response.destroy())
      return
    }
    response.writeHead(forwarder.behaviour.status).end(forwarder.behaviour.body)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const forwarder: Forwarder = {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    behaviour: 'forward',
    requests: 0,
    route: () => {
      if (forwarder.behaviour !== 'forward') return forwarder.url
      forwarder.requests += 1
      return target
    },
    cutStalled: () => {
      for (const response of stalled) response.destroy()
      stalled.clear()
    },
    close: async () => {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
  return forwarder
}

async function forward(target: string, request: IncomingMessage, response: ServerResponse): Promise<void> {
  const headers = new Headers()
  for (const [name, value] of Object.entries(request.headers)) {
    if (!['host', 'connection', 'content-length'].includes(name)) headers.set(name, String(value))
  }
  const chunks: Buffer[] = []
  for await (const chunk of request) chunks.push(chunk as Buffer)
  const answer = await fetch(target + (request.url ?? '/'), {
    method: request.method ?? 'POST',
    headers,
    body: Buffer.concat(chunks),
  })
  const body = Buffer.from(await answer.arrayBuffer())
  response.writeHead(answer.status, { 'content-type': answer.headers.get('content-type') ?? 'text/plain' })
  response.end(body)
}

/** A loopback address where nothing listens. */
export async function unusedUrl(): Promise<string> {
  const server = createTcpServer()
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  await new Promise((resolve) => server.close(resolve))
  return `http://127.0.0.1:${port}`
}
