import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

const MIGRATIONS = join(import.meta.dirname, '../../schema/migrations')

/** A copy of the migrations with one more at the end, whose name is `9999_more`. */
export function withMigration(statements: string): { folder: string; remove: () => void } {
  const folder = mkdtempSync(join(tmpdir(), 'headgate-migrations-'))
  cpSync(MIGRATIONS, folder, { recursive: true })
  const file = join(folder, 'meta/_journal.json')
  const journal = JSON.parse(readFileSync(file, 'utf8'))
  journal.entries.push({
    idx: 999,
    version: '7',
    when: 4_000_000_000_000,
    tag: '9999_more',
    breakpoints: true,
  })
  writeFileSync(file, JSON.stringify(journal))
  writeFileSync(join(folder, '9999_more.sql'), statements)
  return { folder, remove: () => rmSync(folder, { recursive: true }) }
}
