import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { migrate } from 'drizzle-orm/neon-http/migrator'
import { afterAll, afterEach, describe, expect, it } from 'vitest'
import { openEmbeddedDatabase } from '../../scripts/local/postgres/embedded-database.ts'
import { startPostgres } from '../../scripts/local/postgres/start.ts'
import type { RunningServer } from '../../scripts/node/loopback-server.ts'
import { configureNeon, failureOf, openHttp } from '../local/neon-clients.ts'

describe('the folder of embedded Postgres', () => {
  const folder = mkdtempSync(join(tmpdir(), 'headgate-pglite-'))
  const data = join(folder, 'data')
  const { sql, database } = openHttp()
  let standIn: RunningServer | undefined
  const open = async (): Promise<void> => {
    standIn = await startPostgres({ folder: data })
    configureNeon(standIn.port)
  }
  afterEach(() => standIn?.close())
  afterAll(() => rmSync(folder, { recursive: true, force: true }))

  it('keeps the data over a restart and refuses a second process meanwhile', {
    timeout: 60_000,
  }, async () => {
    await open()
    await sql`create table kept (n int)`
    await sql`insert into kept values (1)`
    await expect(startPostgres({ folder: data })).rejects.toThrow(/in use by process \d+/)
    await standIn?.close()
    await open()
    expect(await sql`select n from kept`).toEqual([{ n: 1 }])
  })

  it('runs the migrations of drizzle, once', { timeout: 60_000 }, async () => {
    await open()
    const migrationsFolder = writeMigrations(folder, [
      'create table first (id serial primary key);\n--> statement-breakpoint\ncreate index first_id on first (id);',
      'create table second (id int references first (id));\n--> statement-breakpoint\ninsert into first default values;',
    ])
    await migrate(database, { migrationsFolder })
    await migrate(database, { migrationsFolder })
    expect(await sql`select count(*)::int as n from first`).toEqual([{ n: 1 }])
    expect(await sql`select count(*)::int as n from drizzle.__drizzle_migrations`).toEqual([{ n: 2 }])
  })

  it('runs a migration atomically as one batch', { timeout: 60_000 }, async () => {
    await open()
    const statements = [
      'create table half (n int)',
      'create index on half (missing)',
      'insert into half values (1)',
    ]
    const failure = await failureOf(sql.transaction(statements.map((statement) => sql.query(statement))))
    expect(failure.code).toBe('42703')
    expect(await sql`select to_regclass('half') as half`).toEqual([{ half: null }])
  })
})

describe('the template of an empty database', () => {
  const folder = mkdtempSync(join(tmpdir(), 'headgate-template-'))
  const cache = join(folder, 'cache')
  afterAll(() => rmSync(folder, { recursive: true, force: true }))

  const tablesOf = async (data: string): Promise<number> => {
    const database = await openEmbeddedDatabase(data, cache)
    const { rows } = await database.query<{ n: number }>('select count(*)::int as n from pg_class')
    await database.exec('create table mine (n int)')
    await database.close()
    return rows[0]?.n ?? 0
  }

  it('opens the same database again, and the template has no data', { timeout: 120_000 }, async () => {
    const made = await tablesOf(join(folder, 'first'))
    expect(made).toBeGreaterThan(100)
    expect(readdirSync(cache)).toEqual([expect.stringMatching(/^pglite-[\d.]+\.tar$/)])
    expect(await tablesOf(join(folder, 'second'))).toBe(made)
    expect(await tablesOf('memory')).toBe(made)
  })

  it('does not stand in the way when it is damaged', { timeout: 120_000 }, async () => {
    const [name = ''] = readdirSync(cache)
    const size = statSync(join(cache, name)).size
    truncateSync(join(cache, name), Math.floor(size / 3))
    expect(await tablesOf(join(folder, 'third'))).toBeGreaterThan(100)
    expect(statSync(join(cache, name)).size).toBeGreaterThan(size / 2)
  })

  it('replaces a folder whose making was broken off', { timeout: 120_000 }, async () => {
    const data = join(folder, 'fourth')
    mkdirSync(data)
    writeFileSync(join(data, 'PG_VERSION'), '18\n')
    writeFileSync(`${data}.incomplete`, '')
    expect(await tablesOf(data)).toBeGreaterThan(100)
    expect(existsSync(`${data}.incomplete`)).toBe(false)
  })
})

/** Writes a folder as drizzle-kit generates it. */
function writeMigrations(parent: string, files: string[]): string {
  const folder = join(parent, 'migrations')
  mkdirSync(join(folder, 'meta'), { recursive: true })
  const entries = files.map((text, index) => {
    const tag = `000${index}_step`
    writeFileSync(join(folder, `${tag}.sql`), text)
    return { idx: index, version: '7', when: 1_700_000_000_000 + index, tag, breakpoints: true }
  })
  writeFileSync(
    join(folder, 'meta/_journal.json'),
    JSON.stringify({ version: '7', dialect: 'postgresql', entries }),
  )
  return folder
}
