import { Redis } from '@upstash/redis'
import { type SQL, sql } from 'drizzle-orm'
import { Hono } from 'hono'
import { runSteps, runs } from '../../../schema/agents.ts'
import type { Database } from '../../../schema/database.ts'
import { auditRecords, calls } from '../../../schema/governance.ts'
import { erasures } from '../../../schema/identity.ts'
import type { Deps } from '../../../src/deps.ts'
import type { AppEnv } from '../../../src/http/context.ts'
import { renderError } from '../../../src/http/errors.ts'
import { managementRoutes } from '../../../src/http/routes/management/management.ts'
import { newId } from '../../../src/lib/ids.ts'
import { configuration, databaseAt } from '../calls/fixtures.ts'
import { emptyPostgres, emptyRedis, type Forwarder, startForwarder } from '../calls/stand-ins.ts'
import { createMemoryLedgers, type MemoryLedgers } from './memory-ledger.ts'

export const ADMIN_TOKEN = 'administration-token-of-the-tests'

/** An answer, with its body both as text and as JSON. */
export interface Answer {
  status: number
  headers: Headers
  text: string
  // biome-ignore lint/suspicious/noExplicitAny: answers are looked into member by member
  json: any
}

type Request = (
  method: string,
  path: string,
  body?: unknown,
  headers?: Record<string, string>,
) => Promise<Answer>

export interface Harness {
  app: Hono<AppEnv>
  database: Database
  /** Between the API and Redis, to fail on demand. */
  redisForwarder: Forwarder
  /** Between the API and Postgres, to fail on demand. */
  postgresForwarder: Forwarder
  ledgers: MemoryLedgers
  request: Request
  /** Requests to an API of another configuration, over the same Postgres and Redis. */
  configured(values: Record<string, unknown>): Request
  configuredApp(values: Record<string, unknown>): Hono<AppEnv>
  close(): Promise<void>
}

/** Stands for dependencies that the management API must not use. */
const unused = () => {
  throw new Error('the management API used something of the responses')
}

/**
 * The management API as it is mounted, over Postgres and Redis of its own for the file that calls this.
 *
 * @param values configuration beside the defaults
 */
export async function startManagement(values: Record<string, unknown> = {}): Promise<Harness> {
  const [postgres, redis] = await Promise.all([emptyPostgres(), emptyRedis()])
  const postgresForwarder = await startForwarder(postgres.url)
  const redisForwarder = await startForwarder(redis.url)
  const ledgers = createMemoryLedgers(postgres.database)
  const deps: Omit<Deps, 'configuration' | 'redis'> = {
    clock: Date.now,
    database: databaseAt(postgresForwarder),
    ledgerOf: ledgers.of,
    contentStore: { put: unused, get: unused, remove: unused, ping: unused },
    responseObject: unused,
    workspaceOf: unused,
    pingTools: unused,
    openSocket: unused,
    renewTokens: unused,
    hostedTools: [],
    runQueue: null,
    countRejectedCall: async () => {},
    waitUntil: () => {},
  }
  const configured = (more: Record<string, unknown>) => {
    const settings = configurationOf({ ...values, ...more })
    return mount(() => ({ ...deps, configuration: settings, redis: redisThrough(redisForwarder, settings) }))
  }
  const app = configured({})
  return {
    app,
    configured: (more) => requestTo(configured(more)),
    configuredApp: configured,
    database: postgres.database,
    redisForwarder,
    postgresForwarder,
    ledgers,
    request: requestTo(app),
    close: async () => {
      await postgresForwarder.close()
      await redisForwarder.close()
    },
  }
}

const configurationOf = (values: Record<string, unknown>) =>
  configuration({
    ADMIN_TOKEN,
    MANAGEMENT_RATE_LIMIT: 1_000_000,
    DEGRADED_RATE_LIMIT: 1_000_000,
    EGRESS_ALLOW: '127.0.0.1:9999,models.internal:8443',
    ...values,
  })

const redisThrough = (forwarder: Forwarder, { LIMITS_TIMEOUT_MS }: Deps['configuration']) =>
  new Redis({
    url: forwarder.route(),
    token: 'local-token',
    retry: { retries: 0 },
    signal: () => AbortSignal.timeout(Math.max(500, LIMITS_TIMEOUT_MS)),
    enableTelemetry: false,
  })

/** @param depsOf what one request gets. */
function mount(depsOf: () => Deps): Hono<AppEnv> {
  const app = new Hono<AppEnv>()
  app.use(async (context, next) => {
    const deps = depsOf()
    context.set('deps', deps)
    context.set('requestId', `req_${crypto.randomUUID()}`)
    context.set('startedAt', deps.clock())
    context.set('surface', 'management')
    await next()
  })
  app.route('/api', managementRoutes)
  app.notFound((context) => context.json({ error: 'Not found', message: 'Not found.' }, 404))
  app.onError(renderError)
  return app
}

const requestTo =
  (app: Hono<AppEnv>): Request =>
  async (method, path, body, headers = {}) => {
    const response = await app.request(`/api${path}`, {
      method,
      headers: {
        authorization: `Bearer ${ADMIN_TOKEN}`,
        ...(body !== undefined && { 'content-type': 'application/json' }),
        ...headers,
      },
      ...(body !== undefined && { body: typeof body === 'string' ? body : JSON.stringify(body) }),
    })
    const text = await response.text()
    return { status: response.status, headers: response.headers, text, json: parse(text) }
  }

function parse(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return null
  }
}

/** Every route of the API, once: method and path with its parameters, without `/api`. */
export function listRoutes(): Array<{ method: string; path: string }> {
  const routes = new Map<string, { method: string; path: string }>()
  for (const { method, path } of managementRoutes.routes) {
    if (method !== 'ALL') routes.set(`${method} ${path}`, { method, path })
  }
  return [...routes.values()]
}

let names = 0
/** A name nobody else has: slugs, group names and the like. */
export const uniqueName = (prefix: string) => `${prefix}-${names++}-${crypto.randomUUID().slice(0, 8)}`

/** Makes something and fails loudly if that was refused. */
export async function create(harness: Harness, path: string, body: unknown) {
  const answer = await harness.request('POST', path, body)
  if (answer.status !== 201) throw new Error(`POST ${path}: ${answer.status} ${answer.text}`)
  return answer.json
}

/** An organization with a person in a group, a key, a grant and a policy. */
export async function seedOrganization(harness: Harness) {
  const organization = await create(harness, '/organizations', { name: 'Acme', slug: uniqueName('acme') })
  const base = `/organizations/${organization.id}`
  const email = `${uniqueName('person')}@example.com`
  const user = await create(harness, `${base}/users`, { email, name: 'Person' })
  const group = await create(harness, `${base}/groups`, { name: uniqueName('group') })
  const member = await harness.request('PUT', `${base}/groups/${group.id}/members/${user.id}`)
  if (member.status !== 200) throw new Error(`group member: ${member.text}`)
  const key = await create(harness, `${base}/keys`, { user_id: user.id, label: 'laptop' })
  const grant = await create(harness, `${base}/grants`, {
    subject_type: 'user',
    subject_id: user.id,
    model_id: '*',
  })
  const policy = await create(harness, `${base}/dlp/policies`, somePolicy({ enabled: false }))
  return { organization, base, user, group, key, grant, policy }
}

/** An organization with one of everything in it. */
export async function seedTenant(harness: Harness) {
  const seeded = await seedOrganization(harness)
  const { organization, base, user } = seeded
  const integration = await create(harness, `${base}/integrations`, {
    kind: 'mcp',
    slug: uniqueName('service'),
    url: 'https://mcp.service.test/mcp',
    authorization: { kind: 'bearer' },
  })
  const integrationGrant = await create(harness, `${base}/integration-grants`, {
    subject_type: 'user',
    subject_id: user.id,
    integration: integration.slug,
  })
  const connection = await create(harness, `${base}/connections`, {
    integration: integration.slug,
    display_name: 'Account',
    credential: { secret: `secret-of-the-account-${crypto.randomUUID()}` },
  })
  const agent = await create(harness, `${base}/agents`, someAgent(user.id))
  const run = await seedRun(harness.database, organization.id, user.id, agent.id)
  const call = await seedCall(harness.database, organization.id, user.id)
  const erasure = await seedErasure(harness.database, organization.id, user.id)
  return { ...seeded, integration, integrationGrant, connection, agent, run, call, erasure }
}

/** A finished erasure that has erased nothing, so that the user is still there. */
async function seedErasure(
  database: Database,
  organizationId: string,
  userId: string,
): Promise<{ id: string }> {
  const id = newId('erasure')
  const [createdAt, finishedAt] = [new Date(), new Date()]
  const row = { id, organizationId, userId, requestedBy: 'admin_token', step: 'done', counts: {} }
  await database.insert(erasures).values({ ...row, createdAt, finishedAt })
  return { id }
}

/** A call with its record, in a chain of its own. */
async function seedCall(database: Database, organizationId: string, userId: string): Promise<{ id: string }> {
  const id = newId('call')
  const at = new Date()
  const columns = {
    organizationId,
    id,
    at,
    requestId: `req_${id}`,
    userId,
    surface: 'openai',
    action: 'POST /x',
  }
  const place = { shard: 9, sequence: 1, previousHash: '', hash: '', body: '{}' }
  await database
    .insert(auditRecords)
    .values({ ...columns, ...place, kind: 'call', status: 200, creditsSettled: 0 })
  const counts = { durationMilliseconds: 1, inputTokens: 0, outputTokens: 0, cost: 0, count: 1 }
  await database.insert(calls).values({ ...columns, ...counts, status: 200, outcome: 'ok' })
  return { id }
}

/** A run that has failed at its first step. */
async function seedRun(
  database: Database,
  organizationId: string,
  userId: string,
  agentId: string,
): Promise<{ id: string }> {
  const id = crypto.randomUUID()
  const at = new Date()
  const times = { createdAt: at, endedAt: at, deadlineAt: at }
  await database.insert(runs).values({
    ...{ id, organizationId, userId, agentId, agentVersion: 1, conversationId: `conv_${id}`, origin: 'api' },
    ...{ sealedInputs: '', status: 'failure', rev: 2, step: 1, attempt: 1, ...times },
  })
  await database.insert(runSteps).values({
    ...{
      runId: id,
      number: 1,
      attempt: 1,
      organizationId,
      status: 'failed',
      responseId: `resp_${id}`,
      ...times,
    },
  })
  return { id }
}

export const someAgent = (userId: string, values: Record<string, unknown> = {}) => ({
  created_by: userId,
  definition: {
    name: uniqueName('agent'),
    steps: [{ instructions: 'Say hello.', model: 'acme/model' }],
    triggers: [{ kind: 'webhook', name: 'hook' }],
    ...values,
  },
})

export type Organization = Awaited<ReturnType<typeof seedOrganization>>
export type Tenant = Awaited<ReturnType<typeof seedTenant>>

export const somePrices = { input: 1_000_000, output: 5_000_000 }

export function someModel(providerId: string) {
  return {
    owned_by: 'acme',
    context_window: 200_000,
    max_output_tokens: 8_000,
    prices: somePrices,
    routes: [{ provider_id: providerId, upstream_model: 'upstream-model' }],
  }
}

export const somePolicy = (values: Record<string, unknown> = {}) => ({
  name: uniqueName('policy'),
  directions: ['request'],
  rules: [{ detector: 'email', action: 'redact' }],
  ...values,
})

export const someProvider = (values: Record<string, unknown> = {}) => ({
  name: uniqueName('provider'),
  kind: 'anthropic',
  base_url: 'https://api.example.com/v1/',
  credential: `sk-very-secret-${crypto.randomUUID()}`,
  ...values,
})

/** The query that dumps all tables, the same in every database. */
let dumpQuery: Promise<SQL> | undefined

async function readDumpQuery(database: Database): Promise<SQL> {
  const { rows } = await database.execute<{ name: string }>(
    sql`select tablename as name from pg_tables where schemaname = 'public' order by 1`,
  )
  const selects = rows.map(
    ({ name }) => sql`select ${name} || ' ' || t::text as row from ${sql.identifier(name)} as t`,
  )
  return sql`${sql.join(selects, sql` union all `)} order by 1`
}

/** The newest dump of each database, with the transaction that would have been the next one. */
const dumps = new WeakMap<Database, { nextTransaction: string; text: string }>()

/**
 * Everything that is in the database, as text. A transaction gets its number with its first write, so that the last dump
 * is still true while the next number is the same.
 */
export async function dumpDatabase(database: Database): Promise<string> {
  const [next] = (
    await database.execute<{ number: string }>(
      sql`select pg_snapshot_xmax(pg_current_snapshot())::text as number`,
    )
  ).rows
  const nextTransaction = next?.number ?? ''
  const last = dumps.get(database)
  if (last?.nextTransaction === nextTransaction) return last.text
  dumpQuery ??= readDumpQuery(database)
  const { rows } = await database.execute<{ row: string }>(await dumpQuery)
  const text = rows.map(({ row }) => row).join('\n')
  dumps.set(database, { nextTransaction, text })
  return text
}
