// npm run seed: demo organizations, callers and models, so that a new deployment can be tried at once.

import { join } from 'node:path'
import { and, eq, isNull, sql } from 'drizzle-orm'
import { grants, models } from '../schema/models.ts'
import { parseConfiguration } from '../src/env.ts'
import type { KeyRing } from '../src/lib/crypto.ts'
import { DatabaseError, databaseErrorText, openDatabase, type ScriptDatabase } from './database.ts'
import { type WantedProvider, wantedProviders } from './demo-catalogue.ts'
import { organizationId, userId } from './demo-organizations.ts'
import { type DemoKeys, loadLocalSecrets } from './local-secrets.ts'
import { LOCAL_FOLDER, scriptEnvironment } from './script-environment.ts'
import { seedAgents } from './seed-agents.ts'
import { seedCatalogue } from './seed-catalogue.ts'
import { type DemoUpstreams, seedIntegrations } from './seed-integrations.ts'
import { seedOrganizations } from './seed-organizations.ts'

export interface SeedOptions {
  DATABASE_URL: string
  DATABASE_FETCH_ENDPOINT?: string | undefined
  keyPeppers: KeyRing
  vaultKeys: KeyRing
  /** The demo callers' keys; only their digests are stored. */
  keys: DemoKeys
  providers: WantedProvider[]
  /** The upstreams of the demo integrations; without them neither integrations nor agents are added. */
  upstreams?: DemoUpstreams | undefined
  /** Whether providers that an earlier run registered and that are not named now are disabled. */
  disableOthers: boolean
}

export interface SeedReport {
  /** Ids of the models that may be called, in order. */
  models: string[]
  /** Models that the `restricted` caller may not use. */
  deniedModels: string[]
  /** Ids of the demo agents by their names. */
  agents: Record<string, string>
}

/**
 * Puts the demo data into a database that has the newest schema. Doing it again changes nothing but what the
 * options determine: manual changes stay, except for the providers the options name.
 *
 * @throws DatabaseError if the database cannot be reached or refuses a statement
 */
export async function seedDatabase(options: SeedOptions): Promise<SeedReport> {
  const opened = await openDatabase(options)
  const { database } = opened
  try {
    await seedCatalogue(database, options.vaultKeys, options.providers, options.disableOthers)
    await seedOrganizations(database, options.keyPeppers, options.keys)
    if (options.upstreams) await seedIntegrations(database, options.vaultKeys, options.upstreams)
    const callable = await database
      .select({ id: models.id })
      .from(models)
      .where(isNull(models.disabledAt))
      .orderBy(models.id)
    const ids = callable.map(({ id }) => id)
    const allowed = await allowRestricted(database, options.providers, ids)
    const [model] = options.providers[0]?.models ?? []
    const agents = options.upstreams && model ? await seedAgents(database, model.id) : {}
    return { models: ids, deniedModels: ids.filter((id) => !allowed.has(id)), agents }
  } catch (error) {
    throw new DatabaseError(`seeding failed: ${databaseErrorText(error)}`)
  } finally {
    await opened.close()
  }
}

/** Gives `restricted` one model of its own when it has none that can be called, so that there is something to deny. */
async function allowRestricted(
  database: ScriptDatabase,
  providers: WantedProvider[],
  callable: string[],
): Promise<Set<string>> {
  const ofRestricted = and(eq(grants.subjectType, 'user'), eq(grants.subjectId, userId('restricted')))
  const rows = await database.select({ id: grants.modelId }).from(grants).where(ofRestricted)
  const allowed = new Set(rows.map(({ id }) => id))
  const first = providers[0]?.models[0]?.id
  if (first === undefined || callable.some((id) => allowed.has(id))) return allowed
  await database
    .insert(grants)
    .values({
      organizationId: organizationId('acme'),
      subjectType: 'user',
      subjectId: userId('restricted'),
      modelId: first,
    })
    .onConflictDoNothing()
  await database.execute(sql`update organizations set epoch = epoch + 1 where id = ${organizationId('acme')}`)
  return allowed.add(first)
}

async function main(): Promise<void> {
  const environment = scriptEnvironment()
  // Only the database and the secrets of the Worker's variables are used here; Redis may be missing.
  const unused = { UPSTASH_REDIS_REST_URL: 'http://unused', UPSTASH_REDIS_REST_TOKEN: 'unused' }
  const configuration = parseConfiguration({ ...unused, ...environment })
  const providers = wantedProviders(environment, null)
  const secretsFile = join(LOCAL_FOLDER, 'secrets.json')
  const report = await seedDatabase({
    DATABASE_URL: configuration.DATABASE_URL,
    DATABASE_FETCH_ENDPOINT: configuration.DATABASE_FETCH_ENDPOINT,
    keyPeppers: configuration.KEY_PEPPERS,
    vaultKeys: configuration.VAULT_KEYS,
    keys: loadLocalSecrets(secretsFile).keys,
    providers,
    disableOthers: false,
  })
  console.log(`${report.models.length} models can be called; the demo keys are in ${secretsFile}`)
  if (report.models.length === 0) console.log('set OPENAI_API_KEY or ANTHROPIC_API_KEY to register models')
}

if (import.meta.main) {
  main().catch((error: unknown) => {
    console.error(`seed: ${error instanceof Error ? error.message : String(error)}`)
    process.exitCode = 1
  })
}
