import type { IncomingHttpHeaders } from 'node:http'
import type { PostgresBackend, SqlSession, StatementResult } from './backend.ts'

/** A statement of a request body. */
interface StatementRequest {
  readonly query: string
  readonly params: unknown[]
}

/** Status and JSON body of an answer. */
export interface SqlAnswer {
  readonly status: number
  readonly body: unknown
}

/** The members of an error that the Neon driver copies onto `NeonDbError`. */
const ERROR_FIELDS = [
  'severity',
  'code',
  'detail',
  'hint',
  'position',
  'internalPosition',
  'internalQuery',
  'where',
  'schema',
  'table',
  'column',
  'dataType',
  'constraint',
  'file',
  'line',
  'routine',
] as const

const ISOLATION_LEVELS: Record<string, string> = {
  ReadUncommitted: 'READ UNCOMMITTED',
  ReadCommitted: 'READ COMMITTED',
  RepeatableRead: 'REPEATABLE READ',
  Serializable: 'SERIALIZABLE',
}

/** Thrown for a body or header that is none of the protocol's; answered with 400 and no SQLSTATE. */
class BadRequestError extends Error {}

/**
 * Answers a request of Neon's SQL-over-HTTP protocol, as `@neondatabase/serverless` sends it.
 *
 * A single statement runs on its own; `queries` run in one transaction with the isolation level of the headers.
 * Errors of the database are answered with 400, since the driver reads the error's fields for that status only.
 *
 * @param backend where the statements run
 * @param headers the request's headers
 * @param body the request's body
 */
export async function answerSql(
  backend: PostgresBackend,
  headers: IncomingHttpHeaders,
  body: Buffer,
): Promise<SqlAnswer> {
  try {
    const request = readRequest(body)
    const begin = 'queries' in request ? beginStatement(headers) : ''
    const session = await backend.openSession()
    try {
      if ('queries' in request) {
        const results = await runTransaction(session, begin, request.queries)
        return { status: 200, body: { results: results.map((result) => shapeResult(result, headers)) } }
      }
      const result = await session.query(request.query, request.params)
      return { status: 200, body: shapeResult(result, headers) }
    } finally {
      await session.end()
    }
  } catch (error) {
    return describeError(error)
  }
}

async function runTransaction(
  session: SqlSession,
  begin: string,
  statements: StatementRequest[],
): Promise<StatementResult[]> {
  await session.query(begin, [])
  try {
    const results: StatementResult[] = []
    for (const { query, params } of statements) results.push(await session.query(query, params))
    await session.query('COMMIT', [])
    return results
  } catch (error) {
    // Report the first error; a connection that broke cannot roll back either.
    await session.query('ROLLBACK', []).catch(() => {})
    throw error
  }
}

function readRequest(body: Buffer): StatementRequest | { queries: StatementRequest[] } {
  let parsed: unknown
  try {
    parsed = JSON.parse(body.toString('utf8'))
  } catch {
    throw new BadRequestError('request body is not valid JSON')
  }
  if (typeof parsed !== 'object' || parsed === null)
    throw new BadRequestError('request body must be an object')
  if (!('queries' in parsed)) return readStatement(parsed)
  if (!Array.isArray(parsed.queries)) throw new BadRequestError('"queries" must be an array')
  return { queries: parsed.queries.map(readStatement) }
}

function readStatement(value: unknown): StatementRequest {
  const { query, params } = (value ?? {}) as { query?: unknown; params?: unknown }
  if (typeof query !== 'string') throw new BadRequestError('"query" must be a string')
  if (params !== undefined && !Array.isArray(params)) throw new BadRequestError('"params" must be an array')
  return { query, params: params ?? [] }
}

function beginStatement(headers: IncomingHttpHeaders): string {
  const name = headers['neon-batch-isolation-level']
  const level = name === undefined ? undefined : ISOLATION_LEVELS[String(name)]
  if (name !== undefined && level === undefined)
    throw new BadRequestError(`unknown isolation level "${name}"`)
  return [
    'BEGIN',
    level === undefined ? '' : `ISOLATION LEVEL ${level}`,
    headers['neon-batch-read-only'] === 'true' ? 'READ ONLY' : '',
    headers['neon-batch-deferrable'] === 'true' ? 'DEFERRABLE' : '',
  ]
    .filter((word) => word !== '')
    .join(' ')
}

/** The driver always requests text values in arrays; without these headers the endpoint answers with JSON values. */
function shapeResult(result: StatementResult, headers: IncomingHttpHeaders): unknown {
  const rawText = headers['neon-raw-text-output'] === 'true'
  const rowAsArray = headers['neon-array-mode'] === 'true'
  const { fields } = result
  const rows = result.rows.map((row) => {
    const values = rawText ? row : row.map((value, column) => toJsonValue(value, fields[column]?.dataTypeID))
    return rowAsArray
      ? values
      : Object.fromEntries(values.map((value, column) => [fields[column]?.name, value]))
  })
  return { ...result, rows, rowAsArray }
}

/** Boolean, the integers up to 32 bits, the floats and JSON become JSON values; everything else stays text. */
function toJsonValue(value: string | null, typeId: number | undefined): unknown {
  if (value === null) return null
  if (typeId === 16) return value === 't'
  if (typeId === 114 || typeId === 3802) return JSON.parse(value)
  const isNumber = typeId === 21 || typeId === 23 || typeId === 700 || typeId === 701
  return isNumber && Number.isFinite(Number(value)) ? Number(value) : value
}

function describeError(error: unknown): SqlAnswer {
  const failure = error as Error & Partial<Record<(typeof ERROR_FIELDS)[number], unknown>>
  const fromDatabase = typeof failure.severity === 'string'
  const body = Object.fromEntries(
    ERROR_FIELDS.map((field) => [field, fromDatabase ? (failure[field] ?? null) : null]),
  )
  const status = fromDatabase || error instanceof BadRequestError ? 400 : 500
  return { status, body: { message: failure.message, ...body } }
}
