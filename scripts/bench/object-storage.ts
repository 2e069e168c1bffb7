import { cpSync, existsSync, mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'

/** The SQLite files of the Durable Objects of a runtime. */
export const databaseFiles = (folder: string): string[] =>
  readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.sqlite'))
    .map((name) => join(folder, name))

/**
 * Reads a copy of a database, since the runtime holds the file and what it has not moved there from its log yet.
 * @returns an empty list for a database without one of the tables: that of another object.
 */
export function readDatabase<Result>(file: string, read: (database: DatabaseSync) => Result): Result[] {
  const folder = mkdtempSync(join(tmpdir(), 'headgate-bench-rows-'))
  try {
    const copy = join(folder, basename(file))
    // A database that is closed has no log.
    for (const part of ['', '-wal']) {
      if (existsSync(file + part)) cpSync(file + part, copy + part, { force: true })
    }
    const database = new DatabaseSync(copy)
    try {
      return [read(database)]
    } finally {
      database.close()
    }
  } catch (error) {
    if (error instanceof Error && error.message.includes('no such table')) return []
    throw error
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}
