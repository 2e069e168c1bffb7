import { sql } from 'drizzle-orm'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { type DatabaseAddress, type OpenDatabase, openDatabase } from '../../scripts/database.ts'
import { wantedProviders } from '../../scripts/demo-catalogue.ts'
import { startPostgres } from '../../scripts/local/postgres/start.ts'
import { createLocalSecrets } from '../../scripts/local-secrets.ts'
import { migrateDatabase } from '../../scripts/migrate.ts'
import type { RunningServer } from '../../scripts/node/loopback-server.ts'
import { type SeedOptions, seedDatabase } from '../../scripts/seed.ts'
import { withMigration } from '../harness/with-migration.ts'
import { findRealPostgres, type RealServer, startRealPostgres, tellSkipped } from './real-servers.ts'

const UPSTREAM = 'http://127.0.0.1:9999'
const ring = (byte: number) => new Map([['test', Buffer.alloc(32, byte)]])
const secrets = createLocalSecrets()

const hasRealPostgres = findRealPostgres() !== undefined
if (!hasRealPostgres) tellSkipped('migrations over a direct connection', 'PostgreSQL')

/** Where the database of this run of the suite is; the suite runs over HTTP and over a direct connection. */
let address: DatabaseAddress
let opened: OpenDatabase

const query = async (text: string) =>
  ((await opened.database.execute(sql.raw(text))) as unknown as { rows: Array<Record<string, unknown>> }).rows

const seed = (
  environment: NodeJS.ProcessEnv = {},
  more: Partial<SeedOptions> = {},
  upstream: string | null = UPSTREAM,
) =>
  seedDatabase({
    ...address,
    keyPeppers: ring(1),
    vaultKeys: ring(2),
    keys: secrets.keys,
    providers: wantedProviders(environment, upstream),
    disableOthers: true,
    ...more,
  })

async function emptyDatabase(): Promise<void> {
  await opened.transaction([
    'drop schema if exists drizzle cascade',
    'drop schema public cascade',
    'create schema public',
  ])
}

/**
 * Leaves what the migrations wrote, which is none but the schema. TRUNCATE takes several times as long, since it makes new
 * files for each table and index.
 */
async function emptyTables(): Promise<void> {
  const tables = await query("select tablename as name from pg_tables where schemaname = 'public'")
  await opened.transaction([
    // Without the triggers of foreign keys, the order of the tables does not matter.
    'set local session_replication_role = replica',
    ...tables.map(({ name }) => `delete from "${name}"`),
  ])
}

function openSuite(): void {
  beforeAll(async () => {
    opened = await openDatabase(address)
  })
  afterAll(() => opened?.close())
}

/** What the two ways to a database do differently. */
function migrationSuite(): void {
  describe('migrate', () => {
    // Each migration is applied once: the tests after the first go on with what it made.
    beforeAll(emptyDatabase)

    it('applies each migration once, also when two run at once', async () => {
      const runs = await Promise.all([migrateDatabase(address), migrateDatabase(address)])
      const total = runs[0]?.total ?? 0
      expect(total).toBeGreaterThan(0)
      expect(runs.flatMap(({ applied }) => applied)).toHaveLength(total)
      expect(await migrateDatabase(address)).toEqual({ applied: [], total })
      expect(await query('select count(*)::int as n from drizzle.__drizzle_migrations')).toEqual([
        { n: total },
      ])
    })

    it('leaves nothing of a migration that fails, and names it', async () => {
      await migrateDatabase(address)
      const { folder, remove } = withMigration(
        'create table half (n int);--> statement-breakpoint\ninsert into nowhere values (1);',
      )
      await expect(migrateDatabase(address, { folder })).rejects.toThrow(
        /^migration 9999_more failed, nothing of it was applied: .*nowhere/,
      )
      expect(await query("select to_regclass('half') as half")).toEqual([{ half: null }])
      remove()
      const mended = withMigration('create table half (n int);')
      expect((await migrateDatabase(address, { folder: mended.folder })).applied).toEqual(['9999_more'])
      mended.remove()
    })
  })
}

function seedSuite(): void {
  describe('seed', () => {
    beforeAll(async () => {
      await migrateDatabase(address)
    })
    beforeEach(emptyTables)

    it('makes the callers that the local system promises', async () => {
      const report = await seed()
      expect(report.models).toEqual([
        'scripted-azure-chat',
        'scripted-bedrock-claude',
        'scripted-bedrock-nova',
        'scripted-chat',
        'scripted-chat-large',
        'scripted-chat-plain',
        'scripted-chat-reasoning',
        'scripted-foundry-claude',
        'scripted-gemini',
        'scripted-messages',
        'scripted-messages-adaptive',
        'scripted-messages-large',
        'scripted-messages-thinking',
        'scripted-vertex-claude',
      ])
      expect(report.deniedModels).toEqual(report.models.filter((id) => id !== 'scripted-chat'))
      const rows = await query(`
        select k.label, o.slug, m.role, m.rate_limit_per_minute as "limit", k.revoked_at is not null as revoked,
          exists (select from entitlements e where e.user_id = k.user_id) as entitled,
          (select coalesce(sum(amount), 0) > 0 from credit_entries c where c.organization_id = o.id) as funded
        from api_keys k join organizations o on o.id = k.organization_id
          join memberships m on m.user_id = k.user_id order by k.label`)
      const usual = {
        slug: 'acme',
        role: 'member',
        limit: null,
        revoked: false,
        entitled: true,
        funded: true,
      }
      expect(rows).toEqual([
        { ...usual, label: 'demo broke', slug: 'broke', funded: false },
        { ...usual, label: 'demo limited', limit: 2 },
        { ...usual, label: 'demo member' },
        { ...usual, label: 'demo no_mcp', entitled: false },
        { ...usual, label: 'demo other_org', slug: 'other' },
        { ...usual, label: 'demo owner', role: 'owner' },
        { ...usual, label: 'demo restricted' },
        { ...usual, label: 'demo revoked', revoked: true },
      ])
    })

    it('stores no key and no credential in clear', async () => {
      await seed({ OPENAI_API_KEY: 'canary-credential' })
      const everything = JSON.stringify([
        await query('select * from api_keys'),
        await query('select * from providers'),
      ])
      for (const key of Object.values(secrets.keys)) expect(everything).not.toContain(key)
      expect(everything).not.toContain('canary-credential')
    })

    it('changes nothing the second time', async () => {
      const tables = ['organizations', 'users', 'api_keys', 'grants', 'providers', 'models', 'credit_entries']
      const all = () =>
        Promise.all(['deployment_epochs', ...tables].map((name) => query(`select * from ${name} order by 1`)))
      const report = await seed()
      const before = await all()
      expect(await seed()).toEqual(report)
      expect(await all()).toEqual(before)
    })

    it('leaves alone what people changed', async () => {
      await seed()
      await query("delete from grants where subject_type = 'role'")
      await query("update memberships set rate_limit_per_minute = 7 where role = 'owner'")
      await query("update api_keys set revoked_at = now() where label = 'demo member'")
      await seed()
      expect(await query("select count(*)::int as n from grants where subject_type = 'role'")).toEqual([
        { n: 0 },
      ])
      expect(await query("select rate_limit_per_minute as n from memberships where role = 'owner'")).toEqual([
        { n: 7 },
      ])
      expect(
        await query("select revoked_at is not null as revoked from api_keys where label = 'demo member'"),
      ).toEqual([{ revoked: true }])
    })

    it('finishes a run that was cut off', async () => {
      await seed()
      await query('delete from api_keys')
      await query('delete from entitlements')
      await seed()
      expect(await query('select count(*)::int as n from api_keys')).toEqual([{ n: 8 }])
      expect(await query('select count(*)::int as n from entitlements')).toEqual([{ n: 7 }])
    })

    it('follows a new pepper', async () => {
      await seed()
      const before = await query('select digest from api_keys order by id')
      await seed({}, { keyPeppers: new Map([['new', Buffer.alloc(32, 9)]]) })
      const after = await query('select digest, pepper_id from api_keys order by id')
      expect(after.map(({ digest }) => digest)).not.toEqual(before.map(({ digest }) => digest))
      expect(new Set(after.map((row) => row.pepper_id))).toEqual(new Set(['new']))
    })

    it('follows the providers of the environment and raises the epoch with each change', async () => {
      const epoch = async () => (await query('select epoch::int as n from deployment_epochs'))[0]?.n as number
      await seed()
      const first = await epoch()
      const real = await seed({ OPENAI_API_KEY: 'one', OPENAI_BASE_URL: 'http://127.0.0.1:1/v1/' })
      expect(real.models).toContain('gpt-4o')
      expect(real.models).toContain('scripted-messages')
      expect(real.models).not.toContain('scripted-chat')
      expect(real.deniedModels.length).toBe(real.models.length - 1)
      expect(await query("select base_url from providers where name = 'openai'")).toEqual([
        { base_url: 'http://127.0.0.1:1/v1' },
      ])
      expect(await epoch()).toBe(first + 1)
      await seed({ OPENAI_API_KEY: 'two', OPENAI_BASE_URL: 'http://127.0.0.1:1/v1' })
      expect(await epoch()).toBe(first + 2)
      await seed({ OPENAI_API_KEY: 'two', OPENAI_BASE_URL: 'http://127.0.0.1:1/v1' })
      expect(await epoch()).toBe(first + 2)
      const back = await seed()
      expect(back.models).toContain('scripted-chat')
      expect(back.models).not.toContain('gpt-4o')
      expect(await epoch()).toBe(first + 3)
    })

    it('follows the capabilities of a model', async () => {
      await seed()
      await query("update models set capabilities = '[]' where id = 'scripted-messages-thinking'")
      await seed()
      expect(await query("select capabilities from models where id = 'scripted-messages-thinking'")).toEqual([
        { capabilities: ['reasoning', 'vision'] },
      ])
    })

    it('makes agents once, follows the model of those that people have not changed, and leaves the others', async () => {
      const upstreams = { url: 'http://127.0.0.1:9998', memoryToken: 'one', ticketKey: 'two' }
      const versions = () =>
        query(`select a.name, v.version, v.author, v.definition->'steps'->0->>'model' as model
          from agents a join agent_versions v on v.agent_id = a.id order by a.name, v.version`)
      const report = await seed({}, { upstreams })
      expect(Object.keys(report.agents)).toEqual(['Ticket digest', 'Ticket report'])
      expect(await seed({}, { upstreams })).toEqual(report)
      const first = { version: 1, author: 'seed', model: 'scripted-chat' }
      const digest = { name: 'Ticket digest', ...first }
      const written = { name: 'Ticket report', ...first }
      expect(await versions()).toEqual([digest, written])

      await query(`update agent_versions set author = 'admin_token'
        where agent_id = (select id from agents where name = 'Ticket digest')`)
      const [model] = (await seed({ OPENAI_API_KEY: 'one' }, { upstreams })).models
      expect(await versions()).toEqual([
        { ...digest, author: 'admin_token' },
        written,
        { ...written, version: 2, model },
      ])

      await query("update agents set deleted_at = now() where name = 'Ticket report'")
      expect(Object.keys((await seed({}, { upstreams })).agents)).toEqual(['Ticket digest'])
    })

    it('disables nothing when it is not told to', async () => {
      await seed()
      const report = await seed({}, { disableOthers: false }, null)
      expect(report.models).toContain('scripted-chat')
    })

    it('tells in one line what is wrong', async () => {
      await query('alter table grants rename to other_grants')
      await expect(seed()).rejects.toThrow(/^seeding failed: [^\n]*grants[^\n]*$/)
      await query('alter table other_grants rename to grants')
      expect(() => wantedProviders({ OPENAI_API_KEY: 'x', OPENAI_BASE_URL: 'nope' }, null)).toThrow(
        'OPENAI_BASE_URL is not an http(s) URL',
      )
    })
  })
}

describe('over SQL over HTTP', () => {
  let standIn: RunningServer
  beforeAll(async () => {
    standIn = await startPostgres()
    address = {
      DATABASE_URL: `postgres://headgate:local@127.0.0.1:${standIn.port}/headgate`,
      DATABASE_FETCH_ENDPOINT: `${standIn.url}/sql`,
    }
  }, 60_000)
  afterAll(() => standIn?.close())
  openSuite()
  migrationSuite()
  seedSuite()
})

describe.skipIf(!hasRealPostgres)('over a direct connection', () => {
  let real: RealServer
  beforeAll(async () => {
    real = await startRealPostgres()
    address = { DATABASE_URL: real.url }
  }, 60_000)
  afterAll(() => real?.stop())
  openSuite()
  migrationSuite()

  it('seeds, and changes nothing the second time', async () => {
    const report = await seed()
    expect(report.models).toContain('scripted-chat')
    expect(await seed()).toEqual(report)
  })
})

describe('a database that is not there', () => {
  it('is told without its password', async () => {
    const nowhere = { DATABASE_URL: 'postgres://user:canary@127.0.0.1:1/database' }
    const failure = await migrateDatabase(nowhere).catch((error: Error) => error)
    expect(failure).toBeInstanceOf(Error)
    expect(String(failure)).toMatch(/the database does not answer: /)
    expect(String(failure)).not.toContain('canary')
  })
})
