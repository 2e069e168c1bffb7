import { neon, neonConfig } from '@neondatabase/serverless'
import { drizzle as drizzleNeon } from 'drizzle-orm/neon-http'
import { drizzle as drizzlePostgres } from 'drizzle-orm/node-postgres'
import type { PgDatabase, PgQueryResultHKT } from 'drizzle-orm/pg-core'
import pg from 'pg'

/** Variables of the Worker from which a script finds the database. */
export interface DatabaseAddress {
  DATABASE_URL: string
  /** SQL over HTTP, when the database is reached through it. */
  DATABASE_FETCH_ENDPOINT?: string | undefined
  /** How `pg` connects, where the connection string alone does not say it. */
  connection?: pg.PoolConfig
}

/** A query builder for scripts, over whichever way leads to the database. */
export type ScriptDatabase = PgDatabase<PgQueryResultHKT>

export interface OpenDatabase {
  database: ScriptDatabase
  /**
   * Runs statements in one transaction, so that either all of them count or none. Takes SQL text that carries its
   * own values, since the two ways share no other form of a transaction.
   */
  transaction(statements: string[]): Promise<void>
  close(): Promise<void>
}

/** A database that does not answer or does not take us. The message is one line and holds no password. */
export class DatabaseError extends Error {}

const CONNECT_TIMEOUT_MS = 10_000

/** SQL-over-HTTP endpoints by `host:port` of the connection string. */
const endpoints = new Map<string, string>()

/**
 * Opens the database: through SQL over HTTP where an endpoint is given (the local system), else directly.
 *
 * @throws DatabaseError if it cannot be reached
 */
export async function openDatabase(address: DatabaseAddress): Promise<OpenDatabase> {
  const opened = address.DATABASE_FETCH_ENDPOINT
    ? overHttp(address.DATABASE_URL, address.DATABASE_FETCH_ENDPOINT)
    : directly(address.connection ?? { connectionString: address.DATABASE_URL })
  try {
    await opened.database.execute('select 1')
    return opened
  } catch (error) {
    await opened.close()
    throw new DatabaseError(`the database does not answer: ${databaseErrorText(error)}`)
  }
}

function overHttp(url: string, endpoint: string): OpenDatabase {
  // The driver has one setting for the whole process, which may use several databases.
  const { hostname, port } = new URL(url)
  endpoints.set(`${hostname}:${port || '5432'}`, endpoint)
  neonConfig.fetchEndpoint = (host, hostPort) => endpoints.get(`${host}:${hostPort || '5432'}`) ?? endpoint
  const client = neon(url)
  return {
    database: drizzleNeon({ client }),
    transaction: async (statements) => {
      await client.transaction(statements.map((statement) => client.query(statement)))
    },
    close: async () => {},
  }
}

function directly(connection: pg.PoolConfig): OpenDatabase {
  const pool = new pg.Pool({
    ...connection,
    max: 1,
    connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
    application_name: 'headgate-scripts',
  })
  // An idle connection that breaks must not end the process; the next query fails instead.
  pool.on('error', () => {})
  const transaction = async (statements: string[]): Promise<void> => {
    const client = await pool.connect()
    try {
      await client.query('begin')
      for (const statement of statements) await client.query(statement)
      await client.query('commit')
    } catch (error) {
      await client.query('rollback').catch(() => {})
      throw error
    } finally {
      client.release()
    }
  }
  return { database: drizzlePostgres({ client: pool }), transaction, close: () => pool.end() }
}

/** A database error as one line: the database's message, without the statement or a connection string. */
export function databaseErrorText(error: unknown): string {
  // drizzle puts the whole statement in front; the cause is the database's own message.
  const cause = error instanceof Error && error.cause instanceof Error ? error.cause : error
  const { code, message, errors } = cause as { code?: string; message?: string; errors?: Error[] }
  const text = message || errors?.[0]?.message || code || 'no reason given'
  return (text.split('\n', 1)[0] ?? text).replace(/postgres(ql)?:\/\/\S+/g, 'postgres://…')
}
