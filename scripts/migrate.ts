// npm run migrate: brings the database of DATABASE_URL to the newest schema.
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { sql } from 'drizzle-orm'
import { sha256Hex } from '../src/lib/crypto.ts'
import {
  type DatabaseAddress,
  databaseErrorText,
  type OpenDatabase,
  openDatabase,
  type ScriptDatabase,
} from './database.ts'
import { scriptEnvironment } from './script-environment.ts'

const MIGRATIONS_FOLDER = join(import.meta.dirname, '../schema/migrations')

/** Any number that no other application locks: two migrations of one database must not run at once. */
const LOCK_ID = 7_264_190_331

/** A backup has it shared for as long as it copies tables, and each migration alone: neither begins during the other. */
export const BACKUP_LOCK_ID = 7_264_190_334

/** The table and shape that drizzle-kit's own migrator keeps, so that either can continue the other's work. */
const JOURNAL = 'drizzle.__drizzle_migrations'

interface Migration {
  name: string
  statements: string[]
  hash: string
  /** Milliseconds since the epoch; the journal is ordered by it. */
  madeAt: number
}

export interface MigrationReport {
  /** Names of the migrations that were applied now, oldest first. */
  applied: string[]
  total: number
}

/** A migration that failed; nothing of it is in the database. */
export class MigrationError extends Error {}

/**
 * Applies the migrations that the database does not have yet, each in one transaction together with its journal
 * row. Running it twice, or twice at once, is harmless: an advisory lock lets one run at a time. During a backup of the database
 * (`scripts/backup.ts`) a migration is refused at once.
 *
 * @param options `folder`: what drizzle-kit generated; `until`: name of the last migration to apply, the newest one if left out
 * @throws DatabaseError if the database cannot be reached, MigrationError naming the migration that failed
 */
export async function migrateDatabase(
  address: DatabaseAddress,
  { folder = MIGRATIONS_FOLDER, until }: { folder?: string; until?: string } = {},
): Promise<MigrationReport> {
  const all = readMigrations(folder)
  const migrations = until === undefined ? all : all.slice(0, all.findIndex(({ name }) => name === until) + 1)
  const opened = await openDatabase(address)
  try {
    const missing = await missingIn(opened, migrations)
    const applied: string[] = []
    for (const migration of missing) {
      if (await apply(opened, migration)) applied.push(migration.name)
    }
    return { applied, total: migrations.length }
  } finally {
    await opened.close()
  }
}

/** The migrations that a database does not have yet, oldest first; all of them for `null`, one that does not exist yet. */
export async function pendingMigrations(
  opened: OpenDatabase | null,
): Promise<Array<Pick<Migration, 'name' | 'statements'>>> {
  const migrations = readMigrations(MIGRATIONS_FOLDER)
  return opened === null ? migrations : missingIn(opened, migrations)
}

async function missingIn(opened: OpenDatabase, migrations: Migration[]): Promise<Migration[]> {
  const newest = await newestApplied(opened)
  return migrations.filter((migration) => migration.madeAt > newest)
}

/** Names of the migrations of this release, oldest first. */
export const migrationNames = (): string[] => readMigrations(MIGRATIONS_FOLDER).map(({ name }) => name)

/** Names of the migrations that the database does not have, oldest first. @throws DatabaseError if it cannot be reached */
export async function missingMigrations(address: DatabaseAddress): Promise<string[]> {
  const opened = await openDatabase(address)
  try {
    return (await pendingMigrations(opened)).map(({ name }) => name)
  } finally {
    await opened.close()
  }
}

/**
 * The newest migration of this release that a database has, which may be older than the release.
 * @param database may be a transaction, as whose snapshot has it. @returns its name; undefined without any
 */
export async function newestMigration(database: ScriptDatabase): Promise<string | undefined> {
  const newest = await newestApplied({ database })
  return readMigrations(MIGRATIONS_FOLDER).findLast(({ madeAt }) => madeAt <= newest)?.name
}

/** @returns when the newest applied migration was made, 0 for a database without any */
async function newestApplied({ database }: Pick<OpenDatabase, 'database'>): Promise<number> {
  const journal = await rowsOf(database.execute(sql`select to_regclass(${JOURNAL}) is not null as there`))
  if (journal[0]?.there !== true) return 0
  const rows = await rowsOf(database.execute(sql.raw(`select max(created_at) as newest from ${JOURNAL}`)))
  return Number(rows[0]?.newest ?? 0)
}

/** @returns false when another run applied it while this one waited for the lock */
async function apply(opened: OpenDatabase, migration: Migration): Promise<boolean> {
  try {
    await opened.transaction([
      `select pg_advisory_xact_lock(${LOCK_ID})`,
      // A migration that waits for a lock makes every later reader of the table wait behind it: it gives up instead.
      `set local lock_timeout = '10s'`,
      'create schema if not exists drizzle',
      `create table if not exists ${JOURNAL} (id serial primary key, hash text not null, created_at bigint)`,
      // Fails the transaction when the lock was waited for and the other run did the work; distinguished below.
      `do $$ begin if exists (select from ${JOURNAL} where created_at >= ${migration.madeAt}) then
         raise exception 'headgate: already applied'; end if; end $$`,
      `do $$ begin if not pg_try_advisory_xact_lock(${BACKUP_LOCK_ID}) then
         raise exception 'headgate: a backup runs'; end if; end $$`,
      ...migration.statements,
      `insert into ${JOURNAL} (hash, created_at) values ('${migration.hash}', ${migration.madeAt})`,
    ])
    return true
  } catch (error) {
    const text = databaseErrorText(error)
    if (text.includes('headgate: already applied')) return false
    if (text.includes('headgate: a backup runs'))
      throw new MigrationError(
        `migration ${migration.name} was not applied: a backup of the database runs; try again when it is done`,
      )
    throw new MigrationError(`migration ${migration.name} failed, nothing of it was applied: ${text}`)
  }
}

/** Reads what drizzle-kit generated: the journal names the files and when each was made. */
function readMigrations(folder: string): Migration[] {
  const journal = JSON.parse(readFileSync(join(folder, 'meta/_journal.json'), 'utf8')) as {
    entries: Array<{ tag: string; when: number }>
  }
  return journal.entries.map(({ tag, when }) => {
    const text = readFileSync(join(folder, `${tag}.sql`), 'utf8')
    return {
      name: tag,
      statements: text.split('--> statement-breakpoint').filter((statement) => statement.trim() !== ''),
      hash: sha256Hex(text),
      madeAt: when,
    }
  })
}

/** The two drivers wrap rows differently. */
async function rowsOf(result: PromiseLike<unknown>): Promise<Array<Record<string, unknown>>> {
  return ((await result) as { rows: Array<Record<string, unknown>> }).rows
}

async function main(): Promise<void> {
  const environment = scriptEnvironment()
  if (!/^postgres(ql)?:\/\//.test(environment.DATABASE_URL ?? '')) {
    throw new MigrationError('DATABASE_URL must be a postgres:// connection string')
  }
  const { applied, total } = await migrateDatabase({
    DATABASE_URL: environment.DATABASE_URL ?? '',
    DATABASE_FETCH_ENDPOINT: environment.DATABASE_FETCH_ENDPOINT,
  })
  console.log(
    applied.length === 0 ? `up to date (${total} migrations)` : `applied ${applied.length} of ${total}`,
  )
}

if (import.meta.main) {
  main().catch((error: unknown) => {
    console.error(`migrate: ${error instanceof Error ? error.message : String(error)}`)
    process.exitCode = 1
  })
}
