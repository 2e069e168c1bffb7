import { existsSync, mkdtempSync, rmSync } from 'node:fs'
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
})
