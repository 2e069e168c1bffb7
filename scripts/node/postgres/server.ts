import type { IncomingMessage, ServerResponse } from 'node:http'
import { secretsEqual } from '../../../src/lib/crypto.ts'
import { listenOnLoopback, type RunningServer, readBody, sendJson } from '../loopback-server.ts'
import type { PostgresBackend } from './backend.ts'
import { answerSql } from './sql-over-http.ts'

/** Options of the endpoint of SQL over HTTP. */
export interface SqlServerOptions {
  /** TCP port on 127.0.0.1; any free one when left out. */
  readonly port?: number
  /** Opens what runs the statements. */
  open(): Promise<PostgresBackend>
  /** The password that the connection string of the driver has to have. Left out, any is accepted. */
  readonly password?: string
}

/** Neon's limit for a request of SQL over HTTP, in bytes. https://neon.com/docs/serverless/serverless-driver */
const REQUEST_LIMIT = 64 * 1024 * 1024

/**
 * Starts Neon's SQL-over-HTTP protocol before a PostgreSQL: `POST /sql` takes statements, and `GET /health` answers 200 once the
 * database is open.
 *
 * @throws `EADDRINUSE` for a port in use, and what `open` throws
 */
export async function startSqlServer(options: SqlServerOptions): Promise<RunningServer> {
  let backend: PostgresBackend | undefined
  const handle = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const path = (request.url ?? '').split('?', 1)[0]
    if (backend === undefined) return sendJson(response, 503, { message: 'the database is starting' })
    if (path === '/health') return sendJson(response, 200, { ready: true })
    if (path !== '/sql') return sendJson(response, 404, { message: `nothing at ${path}` })
    if (request.method !== 'POST') return sendJson(response, 405, { message: 'POST only' })
    if (!isAuthorized(request, options.password))
      return sendJson(response, 401, { message: 'wrong password' })
    const answer = await answerSql(backend, request.headers, await readBody(request, REQUEST_LIMIT))
    sendJson(response, answer.status, answer.body)
  }
  // The port comes first: a second start must fail before it touches the first one's data.
  const http = await listenOnLoopback(options.port ?? 0, handle)
  try {
    backend = await options.open()
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

/** The driver sends its connection string, in a form of its own, with every request. Other processes do not know the password. */
function isAuthorized({ headers }: IncomingMessage, expected: string | undefined): boolean {
  if (expected === undefined) return true
  const text = String(headers['neon-connection-string'] ?? '')
  return secretsEqual(URL.canParse(text) ? new URL(text).password : '', expected)
}
