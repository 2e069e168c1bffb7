import type { RunningServer } from '../../node/loopback-server.ts'
import type { PostgresBackend } from '../../node/postgres/backend.ts'
import { openRealPostgres } from '../../node/postgres/real-backend.ts'
import { startSqlServer } from '../../node/postgres/server.ts'
import { openEmbeddedPostgres } from './embedded-backend.ts'

/** Options of the Postgres stand-in. */
export interface PostgresOptions {
  /** TCP port on 127.0.0.1; any free one when left out. */
  readonly port?: number
  /** Data folder of embedded Postgres, or `memory` (the default) for one that ends with the process. */
  readonly folder?: string
  /** File of `packDatabase` that a database in memory begins with; it is empty when left out. */
  readonly template?: string
  /** URL of a real PostgreSQL that runs the statements, in place of the embedded one. */
  readonly databaseUrl?: string
}

/**
 * Starts the stand-in for Neon. It accepts any connection string, because it has one database.
 *
 * @throws `EADDRINUSE` for a port in use, OptionError for a folder in use or a malformed URL, and the
 * connection error of a real PostgreSQL
 */
export function startPostgres(options: PostgresOptions = {}): Promise<RunningServer> {
  const { databaseUrl, folder = 'memory', template, port } = options
  return startSqlServer({
    ...(port !== undefined && { port }),
    open: () =>
      databaseUrl === undefined ? openEmbeddedPostgres(folder, template) : openChecked(databaseUrl),
  })
}

/** @throws the connection error of a server that cannot be reached */
async function openChecked(databaseUrl: string): Promise<PostgresBackend> {
  const backend = await openRealPostgres({ connectionString: databaseUrl })
  try {
    await (await backend.openSession()).end()
    return backend
  } catch (error) {
    await backend.close()
    throw error
  }
}
