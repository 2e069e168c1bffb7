import type { PGlite } from '@electric-sql/pglite'
import { serialize } from 'pg-protocol'
import { Parser } from 'pg-protocol/dist/parser.js'
import { claimPath } from '../folder-claim.ts'
import {
  mayChangeSession,
  type PostgresBackend,
  type ResultField,
  readCommandTag,
  type StatementResult,
  toParameterText,
} from './backend.ts'
import { openDatabase } from './embedded-database.ts'
import { EmbeddedSocket } from './embedded-socket.ts'
import { SessionLock } from './session-lock.ts'
import { type Frame, lastTransactionStatus } from './wire-frames.ts'

/** Undoes settings, advisory locks, notifications and temporary tables of the shared session. */
const RESET_STATEMENTS = 'RESET ALL; SELECT pg_advisory_unlock_all(); UNLISTEN *; DISCARD TEMP'

/** The one session of embedded Postgres, as raw protocol bytes. Its user holds the session lock. */
export interface EmbeddedSession {
  /** What the greeting of a connection reports, for example `server_version`. */
  readonly parameters: Record<string, string>
  /** Sends client messages and returns all the server answered. */
  exchange(messages: Buffer): Promise<Buffer>
  /** Brings the session back to its defaults. */
  reset(): Promise<void>
  /** Whether a Parse or Query message may change the session for others. */
  leavesTrace(message: Frame): boolean
}

/**
 * Opens embedded Postgres (PGlite).
 *
 * @param folder the data folder, created if missing, or `memory` for a database that ends with the process
 * @param lockTimeoutMs how long a request may wait for the one session, in milliseconds
 * @throws OptionError when another process has the folder open
 */
export async function openEmbeddedPostgres(folder: string, lockTimeoutMs: number): Promise<PostgresBackend> {
  const releaseFolder = folder === 'memory' ? () => {} : claimPath(folder)
  let database: PGlite
  try {
    database = await openDatabase(folder)
  } catch (error) {
    releaseFolder()
    throw new Error(`embedded Postgres did not start on ${folder}: ${String(error)}`)
  }
  const lock = new SessionLock(lockTimeoutMs)
  const session = await describeSession(database)
  return {
    async openSession() {
      const release = await lock.acquire('an HTTP query')
      let changed = false
      let status = 'I'
      return {
        async query(text, parameters) {
          changed ||= mayChangeSession(text)
          const output = await session.exchange(extendedQuery(text, parameters))
          status = lastTransactionStatus(output) ?? status
          return readResult(output)
        },
        async end() {
          try {
            if (status !== 'I') await session.exchange(serialize.query('ROLLBACK'))
            if (changed) await session.reset()
          } finally {
            release()
          }
        },
      }
    },
    serveSocket: (socket) => new EmbeddedSocket(socket, session, lock).serve(),
    async close() {
      // Waiting for the session lets the statement in flight end; a transaction left open is not waited for long.
      await lock.acquire('closing').catch(() => {})
      await database.close()
      releaseFolder()
    },
  }
}

async function describeSession(database: PGlite): Promise<EmbeddedSession> {
  const exchange = async (messages: Buffer): Promise<Buffer> => {
    const output = await database.execProtocolRaw(messages)
    return Buffer.from(output.buffer, output.byteOffset, output.byteLength)
  }
  const version = readResult(await exchange(extendedQuery('SHOW server_version', [])))
  return {
    parameters: {
      server_version: version.rows[0]?.[0] ?? '',
      server_encoding: 'UTF8',
      client_encoding: 'UTF8',
      DateStyle: 'ISO, MDY',
      TimeZone: 'UTC',
      integer_datetimes: 'on',
      standard_conforming_strings: 'on',
    },
    exchange,
    // One statement at a time: DISCARD and UNLISTEN must not share the implicit transaction of a query string.
    async reset() {
      for (const statement of RESET_STATEMENTS.split('; ')) await exchange(serialize.query(statement))
    },
    leavesTrace: (message) => mayChangeSession(message.bytes.toString('utf8', 5)),
  }
}

function extendedQuery(text: string, parameters: unknown[]): Buffer {
  return Buffer.concat([
    serialize.parse({ text }),
    serialize.bind({ values: parameters.map(toParameterText) }),
    serialize.describe({ type: 'P' }),
    serialize.execute(),
    serialize.sync(),
  ])
}

/** What `pg-protocol` reports of a server message, as far as results are concerned. */
interface ServerMessage {
  name: string
  fields?: unknown
  text?: string
}

function readResult(output: Buffer): StatementResult {
  let fields: ResultField[] = []
  const rows: (string | null)[][] = []
  let tag = ''
  let failure: unknown
  new Parser().parse(output, (received) => {
    const message = received as ServerMessage
    if (message.name === 'rowDescription') fields = message.fields as ResultField[]
    else if (message.name === 'dataRow') rows.push(message.fields as (string | null)[])
    else if (message.name === 'commandComplete') tag = message.text ?? ''
    else if (message.name === 'error') failure ??= message
  })
  if (failure !== undefined) throw failure
  return { fields, rows, ...readCommandTag(tag) }
}
