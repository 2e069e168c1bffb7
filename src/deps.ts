import { neon, neonConfig } from '@neondatabase/serverless'
import { Redis } from '@upstash/redis'
import { drizzle } from 'drizzle-orm/neon-http'
import type { Database } from '../schema/database.ts'
import { createRunQueue, type RunQueue } from './agents/queue/run-queue.ts'
import { type Bindings, type Configuration, parseConfiguration } from './env.ts'
import { type RenewTokens, renewalClient } from './integrations/brokers/local/renewal-client.ts'
import { ledgerClient, type SharedLedgers } from './ledger/client.ts'
import type { LedgerOf } from './ledger/contract.ts'
import { countRejectedCall } from './ledger/rejected-calls/count-rejected-call.ts'
import { type Clock, systemClock } from './lib/clock.ts'
import { errorText, logEvent } from './lib/log.ts'
import { afterLoopTime, loopTimeSignal } from './lib/time-limit.ts'
import { type ContentStore, createContentStore } from './responses/content/content-store.ts'
import type { ResponseMethods } from './responses/model/types.ts'
import { responseObjectClient } from './responses/pool/pool-client.ts'
import { type OpenSocket, socketClient } from './responses/sockets/socket-client.ts'
import type { HostedTool } from './responses/tools/hosted-tool.ts'
import { hostedTools } from './responses/tools/registry.ts'
import { pingTools, type WorkspaceOf, workspaceClient } from './responses/tools/workspace/workspace-client.ts'

/** Everything that reaches out of the process, built in one place. Modules declare the parts that they need. */
export interface Deps {
  configuration: Configuration
  clock: Clock
  database: Database
  /** Each command or pipeline is a request of its own, so that requests share nothing pending. */
  redis: Redis
  ledgerOf: LedgerOf
  /** Items over 1 MB. */
  contentStore: ContentStore
  /**
   * A response in its object. Check the id's MAC before, so that a guessed id wakes no object.
   * @param organizationId the caller's.
   */
  responseObject: (organizationId: string, responseId: string) => ResponseMethods
  /** The files of a conversation, in the script of tools. */
  workspaceOf: WorkspaceOf
  /** Asks the script of tools for its version; null where it has none. Rejects if it cannot run a call. */
  pingTools: () => Promise<string | null>
  /** Opens a WebSocket in the object of its user. */
  openSocket: OpenSocket
  /** Renews the tokens of a connection, in its object. */
  renewTokens: RenewTokens
  /** The tools that this service runs for models. */
  hostedTools: readonly HostedTool[]
  /** QStash; null where it is not configured. */
  runQueue: RunQueue | null
  /** Counts a call that was refused before its organization was known. Never rejects. */
  countRejectedCall: (call: { ip: string; at: number; surface: string }) => Promise<void>
  /** Keeps the request alive for work after the answer. The work must not be the only copy of anything. */
  waitUntil: (work: Promise<unknown>) => void
}

const REDIS_TIMEOUT_MS = 2_000
const DATABASE_TIMEOUT_MS = 10_000

/** Clients and caches that the requests of an isolate share. None has an open connection or a pending call. */
interface Shared {
  configuration: Configuration
  database: Database
  redis: Redis
  contentStore: ContentStore
  workspaceOf: WorkspaceOf
  hostedTools: readonly HostedTool[]
  runQueue: RunQueue | null
}

const shared = new WeakMap<object, Shared>()

/** Builds the clients once for each isolate, since building costs more than using them. @throws ConfigurationError */
function sharedOf(environment: Bindings): Shared {
  const known = shared.get(environment)
  if (known) return known
  const configuration = parseConfiguration(environment)
  const workspaceOf = workspaceClient(environment.TOOLS)
  const { PUBLIC_WEB: publicNetwork = null, BROWSER: browser = null } = environment
  let tools: readonly HostedTool[] | null = null
  const made = {
    configuration,
    database: createDatabase(configuration),
    redis: createRedis(configuration),
    contentStore: createContentStore(environment.CONTENT),
    workspaceOf,
    // Their schemas take as long as all else here, and most calls are not those of responses.
    get hostedTools() {
      tools ??= hostedTools({ configuration, publicNetwork, browser }, workspaceOf)
      return tools
    },
    runQueue: createRunQueue(configuration),
  }
  shared.set(environment, made)
  return made
}

export const redisOf = (environment: Bindings): Redis => sharedOf(environment).redis

export const configurationOf = (environment: Bindings): Configuration => sharedOf(environment).configuration

/** A query builder over Neon's HTTP driver: each query is its own fetch, so it may be shared by requests. */
export function createDatabase(configuration: Configuration): Database {
  const endpoint = configuration.DATABASE_FETCH_ENDPOINT
  if (endpoint) neonConfig.fetchEndpoint = () => endpoint
  neonConfig.fetchFunction = fetchWithinTime
  return drizzle({ client: neon(configuration.DATABASE_URL) })
}

/**
 * The driver has no time-out of its own: a database that does not answer must not hold a request for ever. The timer
 * ends with the query, since a pending one keeps a Durable Object in memory.
 */
async function fetchWithinTime(address: string, init: RequestInit): Promise<Response> {
  const controller = new AbortController()
  const cancel = afterLoopTime(DATABASE_TIMEOUT_MS, () => controller.abort())
  try {
    const response = await fetch(address, { ...init, signal: controller.signal })
    return new Response(await response.arrayBuffer(), response)
  } finally {
    cancel()
  }
}

function createRedis(configuration: Configuration): Redis {
  return new Redis({
    url: configuration.UPSTASH_REDIS_REST_URL,
    token: configuration.UPSTASH_REDIS_REST_TOKEN,
    // The default repeats for over four seconds; limits have a fallback of their own. (`false` would still try twice.)
    retry: { retries: 0 },
    // Limits time out sooner; this also ends the connection, of which only six may wait for headers at a time.
    signal: () => loopTimeSignal(Math.max(REDIS_TIMEOUT_MS, configuration.LIMITS_TIMEOUT_MS), 'Redis'),
    // A pipeline with commands of several requests would end with the request that began it.
    enableAutoPipelining: false,
    enableTelemetry: false,
    readYourWrites: false,
    // Only JSON values are stored.
    responseEncoding: false,
  })
}

/** @param ledgers whose calls to a ledger are committed together; all requests of this isolate if left out. */
export function createDeps(environment: Bindings, context: ExecutionContext, ledgers?: SharedLedgers): Deps {
  const known = sharedOf(environment)
  const { configuration, database, redis, contentStore, workspaceOf, runQueue } = known
  const waitUntil = oneWaitUntil(context)
  return {
    configuration,
    clock: systemClock,
    database,
    redis,
    ledgerOf: (organizationId, shard) =>
      ledgerClient(environment.LEDGER, organizationId, waitUntil, { shard, ledgers }),
    contentStore,
    responseObject: (organizationId, responseId) =>
      responseObjectClient(environment, organizationId, responseId),
    workspaceOf,
    pingTools: () => pingTools(environment.TOOLS),
    get hostedTools() {
      return known.hostedTools
    },
    runQueue,
    openSocket: socketClient(environment.RESPONSE_SOCKETS),
    renewTokens: renewalClient(environment.CONNECTION_CREDENTIALS),
    countRejectedCall: (call) =>
      countRejectedCall(environment.LEDGER, call).catch((error) =>
        logEvent('warn', 'rejected_call_not_counted', { error: errorText(error) }),
      ),
    waitUntil,
  }
}

/**
 * `waitUntil` of a context, called once for all work that is pending at a time: the runtime's own costs as much as a timer.
 */
function oneWaitUntil(context: Pick<ExecutionContext, 'waitUntil'>): Deps['waitUntil'] {
  let pending = 0
  let allEnded = () => {}
  const ended = () => {
    pending -= 1
    if (pending === 0) allEnded()
  }
  return (work) => {
    if (pending === 0) {
      const { promise, resolve } = Promise.withResolvers<void>()
      allEnded = resolve
      context.waitUntil(promise)
    }
    pending += 1
    work.then(ended, ended)
  }
}
