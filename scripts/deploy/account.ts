import { sql } from 'drizzle-orm'
import { type DatabaseAddress, openDatabase } from '../database.ts'
import { pendingMigrations } from '../migrate.ts'
import type { CloudflareApi } from './cloudflare-api.ts'
import { DeployError } from './deploy-error.ts'
import { deploymentRecord, NO_RECORD } from './lease.ts'
import type { NeonApi } from './neon.ts'
import type { AccountState, DatabaseState, PendingMigration } from './plan-types.ts'
import { hasProtectedData } from './protected-data.ts'
import type { SecretValues } from './secrets.ts'
import type { DeploySettings } from './settings.ts'
import type { UpstashApi } from './upstash.ts'

/** What a deployment reads from. */
export interface AccountSources {
  settings: DeploySettings
  /** Gets what Neon and Upstash have. */
  secrets: SecretValues
  cloudflare: CloudflareApi
  /** Null if the settings name no project or database of theirs. */
  neon: NeonApi | null
  upstash: UpstashApi | null
  environment: NodeJS.ProcessEnv
}

export interface ReadAccount {
  state: AccountState
  /** Id of the Neon project; null without one. */
  neonProject: string | null
  /** UPSTASH_REDIS_REST_URL; undefined until the database exists. */
  redisUrl: string | undefined
}

/** SQL that takes something away from a version that runs. Whole statements of drizzle-kit begin like this. */
const REMOVES =
  /\b(drop\s+(table|column|type|constraint|view)|rename\s+(to|column)|alter\s+column\s+\S+\s+(set\s+data\s+)?type)\b/i

/** Reads everything that the plan compares. @throws DeployError, or DatabaseError if the database cannot be reached */
export async function readAccount(sources: AccountSources): Promise<ReadAccount> {
  const { settings, cloudflare } = sources
  const accountName = await cloudflare.accountName()
  const hosts = await cloudflare.hosts()
  const [neonProject, redisUrl, bucket] = await Promise.all([
    readNeon(sources),
    readRedis(sources),
    cloudflare.hasBucket(settings.bucket),
  ])
  const database = await readDatabase(sources)
  const [tools, gateway] = await Promise.all([
    cloudflare.script(settings.tools.name, hosts, database.tested.tools),
    cloudflare.script(settings.gateway.name, hosts, database.tested.gateway),
  ])
  return {
    state: {
      accountName,
      database,
      redis: { exists: redisUrl !== undefined },
      bucket: { exists: bucket },
      tools,
      gateway,
      hosts,
    },
    neonProject,
    redisUrl,
  }
}

/** Where scripts reach the database; undefined until it exists. */
export function databaseAddress({ secrets, environment }: AccountSources): DatabaseAddress | undefined {
  const url = secrets.get('DATABASE_URL')
  if (url === undefined) return undefined
  if (!/^postgres(ql)?:\/\//.test(url))
    throw new DeployError('DATABASE_URL must be a postgres:// connection string')
  return { DATABASE_URL: url, DATABASE_FETCH_ENDPOINT: environment.DATABASE_FETCH_ENDPOINT }
}

async function readNeon({ settings, secrets, neon }: AccountSources): Promise<string | null> {
  if (neon === null || settings.database === 'environment') return null
  const project = await neon.findProject(settings.database.neon)
  if (project !== null && secrets.get('DATABASE_URL') === undefined) {
    secrets.add('DATABASE_URL', await neon.connectionString(project, settings.database.neon), 'Neon')
  }
  return project
}

async function readRedis({
  settings,
  secrets,
  upstash,
  environment,
}: AccountSources): Promise<string | undefined> {
  if (upstash === null || settings.redis === 'environment') {
    return settings.gateway.variables.UPSTASH_REDIS_REST_URL ?? environment.UPSTASH_REDIS_REST_URL
  }
  const found = await upstash.find(settings.redis.upstash)
  if (found !== null) secrets.add('UPSTASH_REDIS_REST_TOKEN', found.token, 'Upstash')
  return found?.url
}

async function readDatabase(sources: AccountSources): Promise<DatabaseState> {
  const address = databaseAddress(sources)
  if (address === undefined) {
    if (sources.settings.database === 'environment') {
      throw new DeployError('DATABASE_URL is not given; migrations and the lease of the deployment need it')
    }
    return {
      exists: false,
      pending: describeMigrations(await pendingMigrations(null)),
      hasProtectedData: false,
      ...NO_RECORD,
    }
  }
  const opened = await openDatabase(address)
  try {
    return {
      exists: true,
      pending: describeMigrations(await pendingMigrations(opened)),
      hasProtectedData: await hasProtectedData(opened),
      ...(await deploymentRecord(opened, sources.settings.gateway.name)),
    }
  } finally {
    await opened.close()
  }
}

/** Migrations as the plan shows them. */
export const describeMigrations = (
  migrations: Array<{ name: string; statements: string[] }>,
): PendingMigration[] =>
  migrations.map(({ name, statements }) => ({ name, removes: statements.some((text) => REMOVES.test(text)) }))

/** Whether Postgres has the audit record of a request. */
export async function hasAuditRecord(address: DatabaseAddress, requestId: string): Promise<boolean> {
  const opened = await openDatabase(address)
  try {
    // For each organization, because the index of times begins with it, and there is none of requests.
    const statement = sql`select exists (select from organizations, lateral (
      select from audit_records where organization_id = organizations.id
        and at > now() - interval '10 minutes' and request_id = ${requestId} limit 1) as found) as there`
    const { rows } = (await opened.database.execute(statement)) as unknown as {
      rows: Array<{ there: boolean }>
    }
    return rows[0]?.there === true
  } finally {
    await opened.close()
  }
}
