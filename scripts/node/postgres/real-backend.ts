import pg from 'pg'
import { OptionError } from '../start-error.ts'
import { mayChangeSession, type PostgresBackend, toParameterText } from './backend.ts'

/** Sessions at a time; a stock server takes 100. */
const POOL_SIZE = 20

/**
 * Puts a real PostgreSQL behind the endpoint of SQL over HTTP.
 *
 * @param config how `pg` connects: `connectionString` is a `postgres://` URL; `max` sessions at a time, 20 when left out
 * @throws OptionError when the string is no such URL; the connection error when the server cannot be reached
 */
export async function openRealPostgres(config: pg.PoolConfig): Promise<PostgresBackend> {
  const { connectionString = '' } = config
  if (!URL.canParse(connectionString) || !/^postgres(ql)?:/.test(connectionString)) {
    throw new OptionError('the database needs a postgres:// URL')
  }
  const pool = new pg.Pool({
    max: POOL_SIZE,
    ...config,
    // Values stay text: the Neon driver on the other side does the parsing.
    types: { getTypeParser: () => (value: string) => value } as never,
  })
  // A server that restarts ends idle connections; without a listener that would end this process too.
  pool.on('error', () => {})
  try {
    ;(await pool.connect()).release()
  } catch (error) {
    await pool.end()
    throw error
  }
  return {
    async openSession() {
      const client = await pool.connect()
      let changed = false
      let lost = false
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
            lost ||= !(error instanceof pg.DatabaseError)
            throw error
          }
        },
        // A connection that may carry settings or an open transaction is not used again.
        end: async () => client.release(changed || lost),
      }
    },
    close: () => pool.end(),
  }
}
