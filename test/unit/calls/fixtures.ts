import { randomUUID } from 'node:crypto'
import { neon, neonConfig } from '@neondatabase/serverless'
import { Redis } from '@upstash/redis'
import { drizzle } from 'drizzle-orm/neon-http'
import { migrate } from 'drizzle-orm/neon-http/migrator'
import type { Database } from '../../../schema/database.ts'
import { apiKeys, memberships, organizations, users } from '../../../schema/identity.ts'
import { grants } from '../../../schema/models.ts'
import type { Deps } from '../../../src/deps.ts'
import { parseConfiguration } from '../../../src/env.ts'
import { createApiKey } from '../../../src/identity/api-key.ts'
import type { Principal } from '../../../src/identity/principal.ts'
import { digestToken } from '../../../src/identity/secret-token.ts'
import { DEFAULT_TOOL_RIGHTS } from '../../harness/tool-rights.ts'
import type { Forwarder } from './stand-ins.ts'

const pepper = (fill: number) => Buffer.alloc(32, fill).toString('base64')

export const currentPepper = `second:${pepper(2)}`
export const oldPepper = `first:${pepper(1)}`

/** A configuration with the deployment's defaults, but for what the test names. */
export function configuration(values: Record<string, unknown> = {}): Deps['configuration'] {
  return parseConfiguration({
    DATABASE_URL: 'postgres://user:word@database/headgate',
    UPSTASH_REDIS_REST_URL: 'http://127.0.0.1:1',
    UPSTASH_REDIS_REST_TOKEN: 'local-token',
    KEY_PEPPERS: `${currentPepper},${oldPepper}`,
    VAULT_KEYS: `first:${pepper(3)}`,
    ...values,
  })
}

/** Commands are not repeated and not batched with another test's: each call has its client, as each request has. */
export function redisAt(url: string): Redis {
  return new Redis({
    url,
    token: 'local-token',
    retry: { retries: 0 },
    enableTelemetry: false,
    readYourWrites: false,
  })
}

const endpoints = new Map<string, () => string>()

/** The real driver with a stand-in as its endpoint, or with a forwarder that chooses one for every query. */
export function databaseAt(service: string | Pick<Forwarder, 'route'>): Database {
  // The driver's endpoint is global to the process; the host of the connection string tells databases apart.
  const host = `database-${endpoints.size}`
  endpoints.set(host, typeof service === 'string' ? () => service : service.route)
  neonConfig.fetchEndpoint = (asked) => `${endpoints.get(asked)?.() ?? 'http://127.0.0.1:1'}/sql`
  return drizzle({ client: neon(`postgres://user:word@${host}/headgate`) })
}

export async function migrateDatabase(database: Database): Promise<void> {
  await migrate(database, {
    migrationsFolder: new URL('../../../schema/migrations', import.meta.url).pathname,
  })
}

export interface Caller {
  organizationId: string
  userId: string
  keyId: string
  key: string
}

type Columns<Table extends { $inferInsert: object }> = Partial<Table['$inferInsert']>

/** An organization with one member and one key for it. */
export async function seedCaller(
  database: Database,
  values: {
    organization?: Columns<typeof organizations>
    membership?: Columns<typeof memberships> | null
    key?: Columns<typeof apiKeys>
    peppers?: string
  } = {},
): Promise<Caller> {
  const organizationId = randomUUID()
  const userId = randomUUID()
  const { id: keyId, key } = createApiKey()
  const ring = configuration({ KEY_PEPPERS: values.peppers ?? currentPepper }).KEY_PEPPERS
  await database.batch([
    database
      .insert(organizations)
      .values({ id: organizationId, name: 'Acme', slug: organizationId, ...values.organization }),
    database.insert(users).values({ id: userId, email: `${userId}@example.com`, name: 'Person' }),
    database.insert(apiKeys).values({
      id: keyId,
      organizationId,
      userId,
      label: 'test',
      scopes: ['models'],
      ...digestToken(ring, key),
      ...values.key,
    }),
  ])
  if (values.membership !== null) {
    await database
      .insert(memberships)
      .values({ organizationId, userId, role: 'member', ...values.membership })
  }
  return { organizationId, userId, keyId, key }
}

export async function grant(
  database: Database,
  organizationId: string,
  subjectType: 'organization' | 'group' | 'role' | 'user',
  subjectId: string,
  modelId: string,
): Promise<void> {
  await database.insert(grants).values({ organizationId, subjectType, subjectId, modelId })
}

/** A principal that no database has heard of. */
export function somePrincipal(values: Partial<Principal> = {}): Principal {
  return {
    organizationId: randomUUID(),
    userId: randomUUID(),
    credential: {
      kind: 'key',
      keyId: 'aaaaaaaaaaaa',
      scopes: ['models'],
      compatibility: 'headgate',
      expiresAt: null,
    },
    role: 'member',
    groupIds: [],
    entitlements: [],
    models: { all: false, ids: new Set() },
    tools: DEFAULT_TOOL_RIGHTS,
    integrations: { all: false, bySlug: {} },
    organizationLimitPerMinute: 1_000,
    userLimitPerMinute: 100,
    ledgerShards: 1,
    epoch: 1,
    ...values,
  }
}
