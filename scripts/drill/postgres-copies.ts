import { cpSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { PGlite } from '@electric-sql/pglite'
import pg from 'pg'
import { migratedDatabase } from '../../test/harness/migrated-database.ts'
import { startRealPostgres } from '../../test/local/real-servers.ts'

/** A database that can be copied, and replaced by its copy. Nothing may be connected to it meanwhile. */
export interface CopiedPostgres {
  name: string
  /** The option of `startGateway` for it. */
  gateway: { postgresFolder: string } | { postgresUrl: string }
  copy(): Promise<void>
  restore(): Promise<void>
  remove(): Promise<void>
}

/** Embedded Postgres in a temporary folder, with the newest schema. Its copy is one of all its files. */
export async function embeddedPostgres(): Promise<CopiedPostgres> {
  const parent = mkdtempSync(join(tmpdir(), 'headgate-drill-'))
  const [folder, copied] = [join(parent, 'data'), join(parent, 'copy')]
  const loadDataDir = new Blob([readFileSync(await migratedDatabase())])
  await (await PGlite.create({ dataDir: folder, loadDataDir })).close()
  return {
    name: 'embedded PostgreSQL',
    gateway: { postgresFolder: folder },
    copy: async () => cpSync(folder, copied, { recursive: true }),
    restore: async () => {
      rmSync(folder, { recursive: true })
      cpSync(copied, folder, { recursive: true })
    },
    remove: async () => rmSync(parent, { recursive: true, force: true }),
  }
}

/** A PostgreSQL server of its own. Its copy is a database made from the first one. @throws without such a server. */
export async function realPostgres(): Promise<CopiedPostgres> {
  const server = await startRealPostgres()
  const [database, copied] = ['postgres', 'copied']
  const administer = async (...statements: string[]) => {
    const client = new pg.Client({ connectionString: server.url.replace(/postgres$/, 'template1') })
    await client.connect()
    try {
      for (const statement of statements) await client.query(statement)
    } finally {
      await client.end()
    }
  }
  return {
    name: 'a PostgreSQL server',
    gateway: { postgresUrl: server.url },
    copy: () => administer(`CREATE DATABASE ${copied} TEMPLATE ${database}`),
    restore: () => administer(`DROP DATABASE ${database}`, `CREATE DATABASE ${database} TEMPLATE ${copied}`),
    remove: () => server.stop(),
  }
}
