import { cpSync, existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import pg from 'pg'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { migrateDatabase } from '../../scripts/migrate.ts'
import { createInstallationTable } from '../../scripts/serve/installation.ts'
import { buildBundle } from '../harness/bundle.ts'
import {
  createDatabase,
  freePort,
  nodeSecrets,
  runScript,
  type ServedNode,
  startServe,
} from '../harness/serve-node.ts'
import {
  missingServers,
  type RealServer,
  startRealPostgres,
  startRealRedis,
  startReplica,
  tellSkipped,
} from './real-servers.ts'

const missing = missingServers()
if (missing.length > 0) tellSkipped('places of backups', missing.join(' and no '))

describe.skipIf(missing.length > 0 || process.platform !== 'linux')('a backup of a node', () => {
  const cleanUps: Array<() => unknown> = []
  let folder: string
  let postgres: RealServer
  let variables: Record<string, string>
  let node: ServedNode
  let backup: string

  beforeAll(async () => {
    folder = mkdtempSync(join(tmpdir(), 'hg-places-'))
    cleanUps.push(() => rmSync(folder, { recursive: true, force: true }))
    const [bundle, server, redis] = await Promise.all([buildBundle(), startRealPostgres(), startRealRedis()])
    postgres = server
    cleanUps.push(bundle.remove, postgres.stop, redis.stop)
    variables = {
      ...nodeSecrets(),
      DATABASE_URL: await createDatabase(postgres.url),
      REDIS_URL: redis.url,
      CONTENT: join(folder, 'content'),
      DATA_DIR: join(folder, 'data'),
      PORT: String(await freePort()),
      BASE_URL: 'https://gateway.invalid',
      LEDGER_FLUSH_MS: '100',
      STOP_TIMEOUT: '5',
      BUNDLE_DIR: bundle.directory,
    }
    node = startServe(variables)
    cleanUps.push(async () => {
      node.process.kill('SIGTERM')
      await node.ended()
    })
    await node.ready()
    backup = join(folder, 'backup')
    expect(await runScript('backup', ['--to', backup], variables)).toMatchObject({ code: 0 })
  }, 90_000)
  afterAll(async () => {
    for (const cleanUp of cleanUps.reverse()) await cleanUp()
  })

  /** Runs `npm run backup` into a new folder. */
  async function backUpWith(databaseUrl: string) {
    const target = mkdtempSync(join(folder, 'refused-'))
    const { code, text } = await runScript('backup', ['--to', target], {
      ...variables,
      DATABASE_URL: databaseUrl,
    })
    return { code, text, isBackup: existsSync(join(target, 'manifest.json')) }
  }

  /** Settings of a node whose places are all new. */
  async function elsewhere(): Promise<Record<string, string>> {
    const own = mkdtempSync(join(folder, 'elsewhere-'))
    return {
      ...variables,
      DATABASE_URL: await createDatabase(postgres.url),
      DATA_DIR: join(own, 'data'),
      CONTENT: join(own, 'content'),
      PORT: String(await freePort()),
    }
  }

  const restoreTo = (settings: Record<string, string>, from = backup) =>
    runScript('restore', ['--from', from], settings)

  async function inDatabase<Result>(url: string, step: (client: pg.Client) => Promise<Result>) {
    const client = new pg.Client(url)
    await client.connect()
    return step(client).finally(() => client.end())
  }

  it('is not made of the database of another installation, or of one that no node has used', async () => {
    const url = await createDatabase(postgres.url)
    await migrateDatabase({ DATABASE_URL: url })
    expect(await backUpWith(url)).toEqual({
      code: 1,
      text: 'backup: the database has no data of a node\n',
      isBackup: false,
    })
    await inDatabase(url, async (client) => {
      await createInstallationTable(client)
      await client.query('insert into headgate_node.installation values (gen_random_uuid())')
    })
    expect(await backUpWith(url)).toEqual({
      code: 1,
      text: 'backup: DATA_DIR and the database belong to different installations\n',
      isBackup: false,
    })
  })

  it('is not made of a replica', async () => {
    const replica = await startReplica(postgres.url)
    try {
      const url = new URL(variables.DATABASE_URL ?? '')
      url.port = new URL(replica.url).port
      expect(await backUpWith(url.href)).toEqual({
        code: 1,
        text: 'backup: DATABASE_URL is a replica, which may be behind the objects: set that of the primary server\n',
        isBackup: false,
      })
    } finally {
      await replica.stop()
    }
  }, 30_000)

  it('is not restored into a folder that a node uses, in which nothing is changed', async () => {
    const { DATA_DIR = '', CONTENT = '' } = variables
    // As an upload that is under way.
    const upload = join(CONTENT, 'upload.part')
    writeFileSync(upload, 'half')
    const names = () => [DATA_DIR, CONTENT].map((place) => readdirSync(place).sort())
    const before = names()
    for (const place of ['DATA_DIR', 'CONTENT'] as const) {
      const settings = { ...(await elsewhere()), [place]: variables[place] ?? '' }
      expect(await restoreTo(settings)).toEqual({
        code: 1,
        text: `restore: ${variables[place]} is in use by another process\n`,
      })
      const tables = `select count(*)::int as n from pg_class where relnamespace = 'public'::regnamespace`
      const { rows } = await inDatabase(settings.DATABASE_URL ?? '', (client) => client.query(tables))
      expect(rows).toEqual([{ n: 0 }])
    }
    expect(names()).toEqual(before)
    rmSync(upload)
  })

  it('whose restore has failed leaves a node that serves nothing, and says how to restore again', async () => {
    const settings = await elsewhere()
    const broken = join(folder, 'broken')
    cpSync(backup, broken, { recursive: true })
    // Ends the restore after the migrations, as a kill would.
    const file = join(broken, 'manifest.json')
    const manifest = JSON.parse(readFileSync(file, 'utf8'))
    manifest.tables.find(({ name }: { name: string }) => name === 'organizations').rows += 1
    writeFileSync(file, JSON.stringify(manifest))
    expect(await restoreTo(settings, broken)).toEqual({
      code: 1,
      text: 'restore: organizations got 0 rows, and the backup has 1\n',
    })
    const advice =
      'a restore into this database has not ended: drop the database and create it again, empty DATA_DIR, TOOLS_DATA_DIR and CONTENT'
    const served = startServe(settings)
    const outcome = await Promise.race([served.ready().catch(() => served.ended()), served.ended()])
    served.process.kill('SIGKILL')
    expect([outcome, served.output()]).toEqual([1, expect.stringContaining(advice)])
    expect(await restoreTo(settings)).toEqual({ code: 1, text: expect.stringContaining(advice) })
    // What the advice says.
    const { DATA_DIR = '', CONTENT = '' } = settings
    for (const place of [DATA_DIR, CONTENT]) rmSync(place, { recursive: true, force: true })
    const again = { ...settings, DATABASE_URL: await createDatabase(postgres.url) }
    expect(await restoreTo(again)).toMatchObject({ code: 0 })
    const restored = startServe(again)
    try {
      await restored.ready()
    } finally {
      restored.process.kill('SIGTERM')
      expect(await restored.ended()).toBe(0)
    }
  }, 60_000)
})
