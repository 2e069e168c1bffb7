import type { IncomingMessage, ServerResponse } from 'node:http'
import { listenOnLoopback, readBody, sendJson } from '../loopback-server.ts'
import type { RunningStandIn } from '../stand-in-process.ts'
import type { PostgresBackend } from './backend.ts'
import { openEmbeddedPostgres } from './embedded-backend.ts'
import { openRealPostgres } from './real-backend.ts'
import { answerSql } from './sql-over-http.ts'

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

/** Neon's limit for a request of SQL over HTTP, in bytes. https://neon.com/docs/serverless/serverless-driver */
const REQUEST_LIMIT = 64 * 1024 * 1024

/**
 * Starts the stand-in for Neon: `POST /sql` is its SQL-over-HTTP endpoint, and `GET /health` answers 200 once the
 * database is open. It accepts any connection string, because it has one database.
 *
 * @throws `EADDRINUSE` for a port in use, OptionError for a folder in use or a malformed URL
 */
export async function startPostgres(options: PostgresOptions = {}): Promise<RunningStandIn> {
  let backend: PostgresBackend | undefined
  const handle = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const path = (request.url ?? '').split('?', 1)[0]
    if (backend === undefined) return sendJson(response, 503, { message: 'the database is starting' })
    if (path === '/health') return sendJson(response, 200, { ready: true })
    if (path !== '/sql') return sendJson(response, 404, { message: `nothing at ${path}` })
    if (request.method !== 'POST') return sendJson(response, 405, { message: 'POST only' })
    const answer = await answerSql(backend, request.headers, await readBody(request, REQUEST_LIMIT))
    sendJson(response, answer.status, answer.body)
  }
  // The port comes first: a second start must fail before it touches the first one's data.
  const http = await listenOnLoopback(options.port ?? 0, handle)
  try {
    backend =
      options.databaseUrl === undefined
        ? await openEmbeddedPostgres(options.folder ?? 'memory', options.template)
        : await openRealPostgres(options.databaseUrl)
  } catch (error) {
    await http.close()
    throw error
  }
  const opened = backend
  let closing: Promise<void> | undefined
  const close = (): Promise<void> => {
    closing ??= http.close().then(() => opened.close())
    return closing
  }
  return { port: http.port, url: http.url, close }
}
