import { createHash } from 'node:crypto'
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, utimesSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import {
  CACHE_FOLDER,
  embeddedVersion,
  openEmbeddedDatabase,
  packDatabase,
} from '../../scripts/local/postgres/embedded-database.ts'
import { startPostgres } from '../../scripts/local/postgres/start.ts'
import { migrateDatabase } from '../../scripts/migrate.ts'

const ROOT = join(import.meta.dirname, '../..')
const PREFIX = 'migrated-'
/** Each one has 40 MB or more; checkouts and branches with other migrations have others. */
const KEPT = 4

/**
 * A packed database with the newest schema and without rows. Its migrations take as long as the rest of a gateway's start,
 * so it is kept between runs, under the hash of all that made it.
 *
 * @returns its path, for the Postgres stand-in
 */
export async function migratedDatabase(): Promise<string> {
  const path = join(CACHE_FOLDER, `${PREFIX}${hashOfOrigin()}.tar`)
  if (existsSync(path)) touch(path)
  else await make(path)
  return path
}

/** Hash of the migrations, of the script that applies them, and of the version of the database. */
function hashOfOrigin(): string {
  const migrations = join(ROOT, 'schema/migrations')
  const files = readdirSync(migrations, { recursive: true, encoding: 'utf8' })
    .map((name) => join(migrations, name))
    .filter((file) => statSync(file).isFile())
    .sort()
  const hash = createHash('sha256').update(embeddedVersion())
  for (const file of [...files, join(ROOT, 'scripts/migrate.ts')])
    hash.update(readFileSync(file)).update('\0')
  return hash.digest('hex').slice(0, 16)
}

async function make(path: string): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'headgate-migrated-'))
  try {
    const standIn = await startPostgres({ folder })
    await migrateDatabase({
      DATABASE_URL: `postgres://headgate:local@127.0.0.1:${standIn.port}/headgate`,
      DATABASE_FETCH_ENDPOINT: `${standIn.url}/sql`,
    }).finally(standIn.close)
    // Opened again, it has everything in its files.
    const database = await openEmbeddedDatabase(folder)
    await packDatabase(database, path).finally(() => database.close())
    removeUnused()
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

function touch(path: string): void {
  const now = new Date()
  utimesSync(path, now, now)
}

/** Removes all but those that were used last. */
function removeUnused(): void {
  const files = readdirSync(CACHE_FOLDER)
    .filter((name) => name.startsWith(PREFIX) && name.endsWith('.tar'))
    .map((name) => join(CACHE_FOLDER, name))
  const usedAt = new Map(files.map((file) => [file, statSync(file).mtimeMs]))
  const newestFirst = files.sort((one, other) => (usedAt.get(other) ?? 0) - (usedAt.get(one) ?? 0))
  for (const file of newestFirst.slice(KEPT)) rmSync(file, { force: true })
}
