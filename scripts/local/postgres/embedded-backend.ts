import type { PGlite } from '@electric-sql/pglite'
import { serialize } from 'pg-protocol'
import { Parser } from 'pg-protocol/dist/parser.js'
import { claimPath } from '../../node/folder-claim.ts'
import {
  mayChangeSession,
  type PostgresBackend,
  type ResultField,
  readCommandTag,
  type StatementResult,
  toParameterText,
} from '../../node/postgres/backend.ts'
import { openEmbeddedDatabase, openPackedDatabase } from './embedded-database.ts'
import { KeptStatements } from './kept-statements.ts'

/**
 * Undoes settings, advisory locks, notifications and temporary tables of the shared session. Each statement is sent by
 * itself: DISCARD and UNLISTEN must not share the implicit transaction of a query string.
 */
const RESET_STATEMENTS = ['RESET ALL', 'SELECT pg_advisory_unlock_all()', 'UNLISTEN *', 'DISCARD TEMP']

/**
 * Opens embedded Postgres (PGlite). It has one session, which requests use one after the other.
 *
 * @param folder the data folder, created if missing, or `memory` for a database that ends with the process
 * @param template what a database in memory begins with, a file of `packDatabase`; nothing when left out
 * @throws OptionError when another process has the folder open
 */
export async function openEmbeddedPostgres(folder: string, template?: string): Promise<PostgresBackend> {
  const releaseFolder = folder === 'memory' ? () => {} : claimPath(folder)
  let database: PGlite
  try {
    database = await (template === undefined ? openEmbeddedDatabase(folder) : openPackedDatabase(template))
  } catch (error) {
    releaseFolder()
    throw new Error(`embedded Postgres did not start on ${folder}: ${String(error)}`)
  }
  const kept = new KeptStatements()
  let lastUse: Promise<void> = Promise.resolve()
  /** Waits until all earlier holders of the session have ended. @returns ends this one */
  const acquire = async (): Promise<() => void> => {
    const before = lastUse
    const own = Promise.withResolvers<void>()
    lastUse = own.promise
    await before
    return own.resolve
  }
  return {
    async openSession() {
      const release = await acquire()
      let changed = false
      let idle = true
      const run = async (messages: Buffer, onParsed = () => {}): Promise<StatementResult> => {
        const { failure, isIdle, isParsed, ...result } = readResult(await database.execProtocolRaw(messages))
        idle = isIdle
        if (isParsed) onParsed()
        if (failure !== undefined) throw failure
        return result
      }
      return {
        async query(text, parameters) {
          changed ||= mayChangeSession(text)
          const { messages, name } = kept.before(text)
          return run(extendedQuery(messages, name, parameters), () => kept.keep(text, name))
        },
        async end() {
          try {
            if (!idle) await run(serialize.query('ROLLBACK'))
            if (changed) for (const statement of RESET_STATEMENTS) await run(serialize.query(statement))
          } finally {
            release()
          }
        },
      }
    },
    async close() {
      await acquire()
      await database.close()
      releaseFolder()
    },
  }
}

/** @param before what comes before the Bind. @param statement the name of the parsed statement. */
function extendedQuery(before: Buffer[], statement: string, parameters: unknown[]): Buffer {
  return Buffer.concat([
    ...before,
    serialize.bind({ statement, values: parameters.map(toParameterText) }),
    serialize.describe({ type: 'P' }),
    serialize.execute(),
    serialize.sync(),
  ])
}

/** The members of a message of `pg-protocol` that results need. */
interface ServerMessage {
  name: string
  fields?: unknown
  text?: string
  status?: string
}

interface Outcome extends StatementResult {
  failure: unknown
  /** Whether no transaction is open after it. */
  isIdle: boolean
  /** Whether a Parse in front of it succeeded. */
  isParsed: boolean
}

/** @returns the outcome of one statement, and its error if there was one */
function readResult(output: Uint8Array): Outcome {
  let fields: ResultField[] = []
  const rows: (string | null)[][] = []
  let tag = ''
  let failure: unknown
  let isIdle = true
  let isParsed = false
  new Parser().parse(Buffer.from(output.buffer, output.byteOffset, output.byteLength), (received) => {
    const message = received as ServerMessage
    if (message.name === 'rowDescription') fields = message.fields as ResultField[]
    else if (message.name === 'dataRow') rows.push(message.fields as (string | null)[])
    else if (message.name === 'commandComplete') tag = message.text ?? ''
    else if (message.name === 'readyForQuery') isIdle = message.status === 'I'
    else if (message.name === 'parseComplete') isParsed = true
    else if (message.name === 'error') failure ??= message
  })
  return { fields, rows, ...readCommandTag(tag), failure, isIdle, isParsed }
}
