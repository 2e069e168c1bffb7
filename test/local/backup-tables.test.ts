import { cpSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import pg from 'pg'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { BACKUP_LOCK_ID, migrateDatabase, migrationNames } from '../../scripts/migrate.ts'
import { refuseMigrations } from '../../scripts/serve/backup/database.ts'
import type { Manifest } from '../../scripts/serve/backup/manifest.ts'
import {
  beginSnapshot,
  checkEmptyDatabase,
  copyTables,
  restoreTables,
} from '../../scripts/serve/backup/tables.ts'
import { createDatabase } from '../harness/serve-node.ts'
import { withMigration } from '../harness/with-migration.ts'
import { findRealPostgres, type RealServer, startRealPostgres, tellSkipped } from './real-servers.ts'

const hasPostgres = findRealPostgres() !== undefined
if (!hasPostgres) tellSkipped('tables of backups', 'PostgreSQL')

const ORGANIZATION = '00000000-0000-4000-8000-000000000001'
/** With everything that the text form of COPY has to escape. */
const BODY = 'a\\b\tc\nd\r"e" \\N é 🦉'

/** As retention drops a month. Its limit for the lock is three seconds. */
const DROP_MONTH = `begin; set local lock_timeout = '100ms'; alter table audit_records detach partition audit_records_2025_03;
  drop table audit_records_2025_03; commit`

describe.skipIf(!hasPostgres)('the tables of a backup', () => {
  let server: RealServer
  let folder: string
  let source: pg.Client
  let manifest: Manifest
  let dropDuringCopy: string | undefined
  const clients: pg.Client[] = []

  async function migrated(): Promise<pg.Client> {
    const url = await createDatabase(server.url)
    const client = new pg.Client(url)
    await client.connect()
    clients.push(client)
    await checkEmptyDatabase(client)
    await migrateDatabase({ DATABASE_URL: url })
    return client
  }

  /** Another session of the same database. */
  async function connected({ host, port, user, database }: pg.Client): Promise<pg.Client> {
    const client = new pg.Client({ host, port, user, database })
    await client.connect()
    clients.push(client)
    return client
  }

  const insertRecord = (client: pg.Client, sequence: number, at: string) =>
    client.query(
      `insert into audit_records (organization_id, shard, sequence, id, kind, at, request_id, surface, action, status,
         credits_settled, body, previous_hash, hash)
       values ($1, 0, $2, $3, 'call', $4, 'req', 'models', 'call', 200, 9007199254740993, $5, '', '')`,
      [ORGANIZATION, sequence, `rec_${sequence}`, at, BODY],
    )

  beforeAll(async () => {
    server = await startRealPostgres()
    folder = mkdtempSync(join(tmpdir(), 'headgate-tables-'))
    source = await migrated()
    await source.query(`insert into organizations (id, slug, name) values ($1, 'acme', 'Acme')`, [
      ORGANIZATION,
    ])
    await source.query(
      `select add_month_partition('audit_records', month::timestamp) from unnest($1::text[]) as month`,
      [['2025-03-01', '2025-04-01']],
    )
    await insertRecord(source, 1, '2025-03-31T23:59:59Z')
    await insertRecord(source, 2, '2025-04-01T00:00:00Z')
    await beginSnapshot(source)
    // Comes after the snapshot, as what a node writes that serves again.
    const later = await connected(source)
    await insertRecord(later, 3, '2025-04-02T00:00:00Z')
    dropDuringCopy = await later.query(DROP_MONTH).then(
      () => 'dropped',
      ({ code }: pg.DatabaseError) => code,
    )
    await later.query('rollback')
    const tables = await copyTables(source, folder)
    manifest = { ...tables, installation: ORGANIZATION } as Manifest
    await later.query(DROP_MONTH)
  }, 60_000)
  afterAll(async () => {
    for (const client of clients) await client.end()
    await server?.stop()
    if (folder) rmSync(folder, { recursive: true, force: true })
  })

  it('are those of one instant, and come back equal, each row in the partition of its month', async () => {
    const target = await migrated()
    await restoreTables(target, folder, manifest)
    const read = `select *, tableoid::regclass::text as partition from audit_records order by sequence`
    const { rows } = await target.query(read)
    expect(rows).toMatchObject([
      { sequence: '1', body: BODY, credits_settled: '9007199254740993', partition: 'audit_records_2025_03' },
      { sequence: '2', body: BODY, partition: 'audit_records_2025_04' },
    ])
    const keys = `select count(*)::int as keys from pg_constraint where contype = 'f'`
    expect((await target.query(keys)).rows).toEqual((await source.query(keys)).rows)
    await expect(checkEmptyDatabase(target)).rejects.toThrow('the database is not empty')
  })

  it('keep a month that retention drops while they are copied; it is dropped afterwards', async () => {
    // Of the class lock_not_available.
    expect(dropDuringCopy).toBe('55P03')
    expect(manifest.tables.find(({ name }) => name === 'audit_records')).toMatchObject({ rows: 2 })
    const { rows } = await source.query('select sequence from audit_records')
    expect(rows).toEqual([{ sequence: '2' }, { sequence: '3' }])
  })

  it('are not waited for without end when another session has locked one', async () => {
    const [holder, client] = await Promise.all([connected(source), connected(source)])
    await holder.query('begin; lock table audit_records_2025_04 in access exclusive mode')
    await expect(beginSnapshot(client, 200)).rejects.toThrow(
      'another session has locked a table for more than 0.2 s',
    )
    await holder.query('rollback')
    // No transaction has stayed open, and the limit was that of one.
    await beginSnapshot(client)
    await client.query('rollback')
    expect((await client.query('show lock_timeout')).rows).toEqual([{ lock_timeout: '0' }])
  })

  it('are those of one migration: none is applied until they are copied, whatever it needs locks for', async () => {
    const url = await createDatabase(server.url)
    const address = { DATABASE_URL: url }
    await migrateDatabase(address)
    const client = new pg.Client(url)
    await client.connect()
    const more = withMigration('create index concurrent_to_backup on organizations (name);')
    const copied = mkdtempSync(join(tmpdir(), 'headgate-tables-'))
    try {
      await refuseMigrations(client)
      await beginSnapshot(client)
      await expect(migrateDatabase(address, { folder: more.folder })).rejects.toThrow(
        'migration 9999_more was not applied: a backup of the database runs; try again when it is done',
      )
      // One that is applied already is no reason to refuse.
      expect((await migrateDatabase(address)).applied).toEqual([])
      expect((await copyTables(client, copied)).migration).toBe(migrationNames().at(-1))
      await client.end()
      expect((await migrateDatabase(address, { folder: more.folder })).applied).toEqual(['9999_more'])
    } finally {
      more.remove()
      rmSync(copied, { recursive: true })
      await client.end()
    }
  })

  it('have the migration of their snapshot', async () => {
    const [client, other] = await Promise.all([connected(source), connected(source)])
    const copied = mkdtempSync(join(tmpdir(), 'headgate-tables-'))
    await beginSnapshot(client)
    await other.query('begin; delete from drizzle.__drizzle_migrations; commit')
    try {
      expect((await copyTables(client, copied)).migration).toBe(migrationNames().at(-1))
      await beginSnapshot(client)
      await expect(copyTables(client, copied)).rejects.toThrow(
        'the database has no migration of this release',
      )
    } finally {
      rmSync(copied, { recursive: true })
    }
  })

  it('wait for a migration that runs, up to a limit', async () => {
    const [migration, client] = await Promise.all([connected(source), connected(source)])
    await migration.query(`begin; select pg_advisory_xact_lock(${BACKUP_LOCK_ID})`)
    await expect(refuseMigrations(client, 100)).rejects.toThrow('a migration of the database runs')
    const allowed = refuseMigrations(client)
    await migration.query('commit')
    await allowed
    await client.query(`select pg_advisory_unlock_all()`)
  })

  it('are restored whole or not at all', async () => {
    const target = await migrated()
    const name = 'audit_records.copy.gz'
    const damaged = mkdtempSync(join(tmpdir(), 'headgate-tables-'))
    try {
      cpSync(folder, damaged, { recursive: true })
      writeFileSync(join(damaged, name), gzipSync(''))
      await expect(restoreTables(target, damaged, manifest)).rejects.toThrow('audit_records got 0 rows')
      expect((await target.query('select from organizations')).rowCount).toBe(0)
    } finally {
      rmSync(damaged, { recursive: true })
    }
  })
})
