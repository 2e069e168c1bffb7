import { randomUUID } from 'node:crypto'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type pg from 'pg'
import { writePrivateFile } from '../node/private-file.ts'
import { StartError } from '../node/start-error.ts'
import { DATA } from './data-folder.ts'

/** The table with the id of the installation, beside the schema of the product, as the journal of migrations is. */
export const NODE_SCHEMA = 'headgate_node'

/** A table that is there from the begin of a restore to its end: until then, the database lacks records or the folders lack objects. */
const UNFINISHED_RESTORE = `${NODE_SCHEMA}.unfinished_restore`

/**
 * Checks that a data folder and a database belong together. Ledgers in the folder number the records in the database: with
 * an empty folder, or that of another database, numbers would be used twice and the audit chain would break for ever.
 *
 * @param client connected, and alone with the database (`lockDatabase`), after the migrations
 * @throws StartError if they do not belong together
 */
export async function checkInstallation(client: pg.ClientBase, folder: string): Promise<void> {
  await createInstallationTable(client)
  const inDatabase = await installationOf(client)
  const inFolder = readInstallation(folder)
  if (inDatabase !== null && inDatabase === inFolder) return
  if (inDatabase !== null && inFolder === null)
    throw new StartError(
      'DATA_DIR is empty, and the database is not: restore a backup, or set the DATA_DIR it was used with',
    )
  if (inDatabase !== null) throw new StartError('DATA_DIR and the database belong to different installations')
  if (hasObjects(folder))
    throw new StartError('DATA_DIR has objects, and the database has none of their records: restore a backup')
  const used = await client.query<{ used: boolean }>('select exists (select from audit_records) as used')
  if (used.rows[0]?.used)
    throw new StartError(
      'the database has records whose ledgers are elsewhere; npm run serve needs a database of its own',
    )
  const id = inFolder ?? randomUUID()
  // The folder first: a crash in between leaves one that has no objects, which passes the check above.
  writePrivateFile(join(folder, DATA.installation), `${JSON.stringify({ id })}\n`)
  await client.query(`insert into ${NODE_SCHEMA}.installation (id) values ($1)`, [id])
}

/** Makes the table for the id of the installation, where it is missing. */
export async function createInstallationTable(client: pg.ClientBase): Promise<void> {
  await client.query(`create schema if not exists ${NODE_SCHEMA}`)
  await client.query(`create table if not exists ${NODE_SCHEMA}.installation (id uuid primary key)`)
}

/** The id of the installation that a database belongs to; null for one that no node has used. */
export async function installationOf(client: pg.ClientBase): Promise<string | null> {
  if (!(await hasTable(client, `${NODE_SCHEMA}.installation`))) return null
  const { rows } = await client.query<{ id: string }>(`select id from ${NODE_SCHEMA}.installation`)
  return rows[0]?.id ?? null
}

/** Marks an empty database as one that is being restored, before anything else is written to it. */
export async function beginRestore(client: pg.ClientBase): Promise<void> {
  // One statement text is one transaction.
  await client.query(`create schema if not exists ${NODE_SCHEMA}; create table ${UNFINISHED_RESTORE} ()`)
}

/** Marks the restore as done, after everything else. */
export async function endRestore(client: pg.ClientBase): Promise<void> {
  await client.query(`drop table ${UNFINISHED_RESTORE}`)
}

/** @throws StartError for a database whose restore is under way, has failed or was killed */
export async function refuseUnfinishedRestore(client: pg.ClientBase): Promise<void> {
  if (!(await hasTable(client, UNFINISHED_RESTORE))) return
  throw new StartError(
    'a restore into this database has not ended: drop the database and create it again, empty DATA_DIR, TOOLS_DATA_DIR and CONTENT, ' +
      'and run npm run restore again',
  )
}

async function hasTable(client: pg.ClientBase, name: string): Promise<boolean> {
  const { rows } = await client.query<{ there: boolean }>('select to_regclass($1) is not null as there', [
    name,
  ])
  return rows[0]?.there === true
}

/** The id of the installation that a data folder belongs to; null for a new folder. */
export function readInstallation(folder: string): string | null {
  const path = join(folder, DATA.installation)
  if (!existsSync(path)) return null
  return (JSON.parse(readFileSync(path, 'utf8')) as { id: string }).id
}

function hasObjects(folder: string): boolean {
  const path = join(folder, DATA.objects)
  return existsSync(path) && readdirSync(path).length > 0
}
