import pg from 'pg'
import { OptionError } from '../start-error.ts'
import { mayChangeSession, type PostgresBackend, toParameterText } from './backend.ts'

/** Sessions at a time; a stock server takes 100. */
const POOL_SIZE = 20
/**
 * How long a statement waits for a session, in milliseconds: for a server that takes the connection and does not answer, such as one
 * behind a firewall that drops packets, and for a free session of the pool. Without it, it would wait for as long as TCP does.
 */
const CONNECT_TIMEOUT_MS = 10_000

/**
 * Puts a real PostgreSQL behind the endpoint of SQL over HTTP. Connections are made when statements need them, so a process can
 * start while the server is away.
 *
 * @param config how `pg` connects: `connectionString` is a `postgres://` URL; `max` sessions at a time, 20 when left out;
 *   `connectionTimeoutMillis` for a session, 10,000 when left out
 * @throws OptionError when the string is no such URL
 */
export async function openRealPostgres(config: pg.PoolConfig): Promise<PostgresBackend> {
  const { connectionString = '' } = config
  if (!URL.canParse(connectionString) || !/^postgres(ql)?:/.test(connectionString)) {
    throw new OptionError('the database needs a postgres:// URL')
  }
  const pool = new pg.Pool({
    max: POOL_SIZE,
    connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
    ...config,
    // Values stay text: the Neon driver on the other side does the parsing.
    types: { getTypeParser: () => (value: string) => value } as never,
  })
  // A server that restarts ends idle connections; without a listener that would end this process too.
  pool.on('error', () => {})
  return {
    async openSession() {
      const client = await pool.connect()
      let changed = false
      let lost = false
      // The pool listens only to idle connections. One that is lost between two statements has no query that gets the error.
      const lose = (): void => {
        lost = true
      }
      client.on('error', lose)
      return {
        async query(text, parameters) {
          changed ||= mayChangeSession(text)
          try {
            const result = await client.query({
              text,
              values: parameters.map(toParameterText),
              rowMode: 'array',
              queryMode: 'extended',
            } as pg.QueryArrayConfig)
            const { fields, rows, command, rowCount } = result as pg.QueryArrayResult<(string | null)[]>
            return { fields, rows, command, rowCount }
          } catch (error) {
            lost ||= endsConnection(error)
            throw error
          }
        },
        // A connection that may carry settings or an open transaction is not used again.
        end: async () => {
          client.release(changed || lost)
          client.off('error', lose)
        },
      }
    },
    close: () => pool.end(),
  }
}

/**
 * Whether the server closes the connection after an error. It states `FATAL` in its own language, so the codes of a server that ends
 * sessions (57P01 to 57P05) count too.
 */
const endsConnection = (error: unknown): boolean =>
  !(error instanceof pg.DatabaseError) ||
  error.severity === 'FATAL' ||
  error.severity === 'PANIC' ||
  error.code?.startsWith('57P') === true
