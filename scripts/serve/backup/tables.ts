import { createReadStream, createWriteStream, mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { createGunzip, createGzip } from 'node:zlib'
import { drizzle } from 'drizzle-orm/node-postgres'
import type pg from 'pg'
import { from as copyFrom, to as copyTo } from 'pg-copy-streams'
import { newestMigration } from '../../migrate.ts'
import { StartError } from '../../node/start-error.ts'
import { createInstallationTable, NODE_SCHEMA, refuseUnfinishedRestore } from '../installation.ts'
import type { Manifest } from './manifest.ts'

// Rows go by COPY and the schema comes from the migrations, so that no version of pg_dump has to fit that of the server.

type Tables = Pick<Manifest, 'migration' | 'tables' | 'sequences'>

/** Ordinary and partitioned tables; partitions are part of theirs. */
const TABLES = `select c.relname as name, c.relkind = 'p' as partitioned,
    (select array_agg(a.attname::text order by a.attnum) from pg_attribute a
     where a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped and a.attgenerated = '') as columns
  from pg_class c where c.relnamespace = 'public'::regnamespace and c.relkind in ('r', 'p') and not c.relispartition
  order by c.relname`

/** The partitions of months (migration 0024). Rows of a month without one would stay in the default partition for ever. */
const MONTHS = (table: string) =>
  `select distinct date_trunc('month', at at time zone 'UTC')::text as month from ${quoted(table)} order by 1`
const ADD_MONTH = 'select add_month_partition($1, $2::timestamp)'

interface FoundTable {
  name: string
  partitioned: boolean
  columns: string[]
}

const SEQUENCES = `select sequencename as name, last_value::text as value from pg_sequences
  where schemaname = 'public' and last_value is not null order by sequencename`

const FOREIGN_KEYS = `select conrelid::regclass::text as table, quote_ident(conname) as name, pg_get_constraintdef(oid) as definition
  from pg_constraint where contype = 'f' and connamespace = 'public'::regnamespace and conparentid = 0`

const quoted = (name: string): string => `"${name.replaceAll('"', '""')}"`

const fileOf = (folder: string, table: string): string => join(folder, `${table}.copy.gz`)

/** How long the locks of the tables are waited for, in milliseconds. Calls are refused meanwhile, and wait behind the locks too. */
const LOCK_LIMIT_MS = 10_000

/** Of PostgreSQL: https://www.postgresql.org/docs/current/errcodes-appendix.html */
const LOCK_NOT_AVAILABLE = '55P03'

/**
 * Begins the transaction whose snapshot the copy is made of. What is written later is not in it, and no table or partition of it can be
 * dropped until `copyTables` is done: a snapshot keeps rows, and not tables. Retention gives up its drop of a month after three
 * seconds, and tries again at its next sweep.
 *
 * @param client used for nothing else until `copyTables` is done
 * @throws StartError if another session keeps a table locked for longer than the limit; no transaction is begun then
 */
export async function beginSnapshot(client: pg.ClientBase, lockLimitMs = LOCK_LIMIT_MS): Promise<void> {
  const { rows } = await client.query<FoundTable>(TABLES)
  await client.query('begin transaction isolation level repeatable read, read only')
  await client.query(`set local lock_timeout = ${lockLimitMs}`)
  // Before the snapshot, which the first query takes: it has no drop that waited for these locks. A lock of a table is one of its
  // partitions too.
  if (rows.length > 0) await lockTables(client, rows, lockLimitMs)
  await client.query('select 1')
}

async function lockTables(client: pg.ClientBase, tables: FoundTable[], limitMs: number): Promise<void> {
  const names = tables.map(({ name }) => quoted(name)).join(', ')
  try {
    await client.query(`lock table ${names} in access share mode`)
  } catch (error) {
    await client.query('rollback').catch(() => {})
    if ((error as pg.DatabaseError).code !== LOCK_NOT_AVAILABLE) throw error
    throw new StartError(
      `another session has locked a table for more than ${limitMs / 1_000} s: end it, or make the backup later`,
    )
  }
}

/**
 * Writes every table of the snapshot to a file of its own, and ends the transaction.
 * @param folder made by this. @throws StartError for a database without a migration of this release
 */
export async function copyTables(client: pg.Client, folder: string): Promise<Tables> {
  mkdirSync(folder, { recursive: true, mode: 0o700 })
  const { rows: found } = await client.query<FoundTable>(TABLES)
  const tables: Tables['tables'] = []
  for (const { name, partitioned, columns } of found) {
    const source = `select ${columns.map(quoted).join(', ')} from ${quoted(name)}`
    const stream = client.query(copyTo(`copy (${source}) to stdout`))
    await pipeline(stream, createGzip({ level: 6 }), createWriteStream(fileOf(folder, name), { mode: 0o600 }))
    const months = partitioned ? await client.query<{ month: string }>(MONTHS(name)) : null
    tables.push({
      name,
      columns,
      rows: stream.rowCount,
      months: (months?.rows ?? []).map(({ month }) => month),
    })
  }
  const { rows: sequences } = await client.query<Tables['sequences'][number]>(SEQUENCES)
  const migration = await newestMigration(drizzle({ client }))
  if (migration === undefined) throw new StartError('the database has no migration of this release')
  await client.query('commit')
  return { migration, tables, sequences }
}

/** @throws StartError if the database has any table of this product, with what to do if it is from a restore that did not end */
export async function checkEmptyDatabase(client: pg.ClientBase): Promise<void> {
  await refuseUnfinishedRestore(client)
  const { rows } = await client.query<{ name: string }>(
    `select relname as name from pg_class join pg_namespace n on n.oid = relnamespace
     where n.nspname in ('public', 'drizzle', '${NODE_SCHEMA}') and relkind in ('r', 'p') limit 1`,
  )
  if (rows[0] !== undefined)
    throw new StartError(`the database is not empty: it has the table ${rows[0].name}`)
}

/**
 * Fills the tables of a database that was migrated to the version of a backup, in one transaction.
 * @throws StartError if its tables or counts of rows differ from those of the manifest; nothing is changed then
 */
export async function restoreTables(
  client: pg.ClientBase,
  folder: string,
  manifest: Manifest,
): Promise<void> {
  await client.query('begin')
  try {
    const { rows: present } = await client.query<FoundTable>(TABLES)
    const described = (tables: { name: string; columns: string[] }[]) =>
      JSON.stringify(tables.map(({ name, columns }) => [name, [...columns].sort()]).sort())
    if (described(present) !== described(manifest.tables))
      throw new StartError('the tables of the backup are not those of its migration')
    // Rows that refer to each other come in any order: the constraints are checked once at the end.
    const { rows: keys } = await client.query<{ table: string; name: string; definition: string }>(
      FOREIGN_KEYS,
    )
    for (const { table, name } of keys) await client.query(`alter table ${table} drop constraint ${name}`)
    // Migrations may have put rows into them.
    await client.query(`truncate ${present.map(({ name }) => quoted(name)).join(', ')}`)
    for (const { name, months } of manifest.tables)
      for (const month of months) await client.query(ADD_MONTH, [name, month])
    for (const table of manifest.tables) await restoreTable(client, folder, table)
    for (const { name, value } of manifest.sequences)
      await client.query('select setval($1::regclass, $2::bigint)', [quoted(name), value])
    for (const { table, name, definition } of keys)
      await client.query(`alter table ${table} add constraint ${name} ${definition}`)
    await createInstallationTable(client)
    await client.query(`insert into ${NODE_SCHEMA}.installation (id) values ($1)`, [manifest.installation])
    await client.query('commit')
  } catch (error) {
    await client.query('rollback').catch(() => {})
    throw error
  }
  // Plans made without statistics are slow until autovacuum comes by.
  await client.query('analyze')
}

async function restoreTable(
  client: pg.ClientBase,
  folder: string,
  { name, columns, rows }: Manifest['tables'][number],
): Promise<void> {
  const stream = client.query(copyFrom(`copy ${quoted(name)} (${columns.map(quoted).join(', ')}) from stdin`))
  await pipeline(createReadStream(fileOf(folder, name)), createGunzip(), stream)
  if (stream.rowCount !== rows)
    throw new StartError(`${name} got ${stream.rowCount} rows, and the backup has ${rows}`)
}
