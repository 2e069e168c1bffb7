import { HTTPException } from 'hono/http-exception'
import { matchedRoutes } from 'hono/route'
import { errorCodeOf } from '../calls/governed-call.ts'
import { ConfigurationError } from '../env.ts'
import { ApiError, type ErrorKind, invalidRequest } from '../lib/api-error.ts'
import { logFailure, redact } from '../lib/log.ts'
import { nestedErrorCode, nestedErrorType } from '../wire/nested-error.ts'
import { errorCompatibility, openResponsesError } from './compatibility.ts'
import type { AppContext } from './context.ts'
import { mcpChallenge } from './mcp-gate.ts'
import { rateLimitHeaders } from './rate-limit-headers.ts'
import type { Surface } from './surfaces.ts'

/** Renders one envelope of the interface (Errors). */
type Renderer = (error: ApiError, requestId: string) => Record<string, unknown>

const MESSAGES_TYPES: Partial<Record<ErrorKind, string>> = {
  unauthorized: 'authentication_error',
  forbidden: 'permission_error',
  not_found: 'not_found_error',
  rate_limited: 'rate_limit_error',
  upstream: 'api_error',
  internal: 'api_error',
}

const LABELS: Record<ErrorKind, string> = {
  invalid_request: 'Bad Request',
  unauthorized: 'Unauthorized',
  forbidden: 'Forbidden',
  not_found: 'Not found',
  method_not_allowed: 'Method Not Allowed',
  not_acceptable: 'Not Acceptable',
  too_large: 'Payload Too Large',
  unsupported_media_type: 'Unsupported Media Type',
  unprocessable: 'Unprocessable Entity',
  rate_limited: 'Too Many Requests',
  upstream: 'Bad Gateway',
  internal: 'Internal Server Error',
}

function nestedError(error: ApiError): Record<string, unknown> {
  const code = nestedErrorCode(error)
  return {
    message: error.message,
    type: nestedErrorType(error.kind),
    ...(code === undefined ? {} : { code }),
  }
}

// The table gives a 401 from key authentication this body, with no type and no code.
const nested: Renderer = (error) => ({
  error: error.kind === 'unauthorized' ? 'Unauthorized' : nestedError(error),
})

/** The generic rule requires a top-level `message`; SDKs show the one of the `error` object. */
const nestedWithMessage: Renderer = (error) => ({ error: nestedError(error), message: error.message })

const messagesEnvelope: Renderer = (error, requestId) => ({
  type: 'error',
  error: {
    type: MESSAGES_TYPES[error.kind] ?? 'invalid_request_error',
    message: error.message,
    ...(error.details === undefined ? {} : { details: error.details }),
  },
  request_id: requestId,
})

const flat: Renderer = (error) => ({
  error: LABELS[error.kind],
  message: error.message,
  ...(error.details === undefined ? {} : { details: error.details }),
})

/** The interface's table for MCP gives a 401 the body of key authentication; the generic rule asks for a `message` elsewhere. */
const mcp: Renderer = (error, requestId) =>
  error.kind === 'unauthorized' ? { error: 'Unauthorized' } : flat(error, requestId)
/** Interface, Agents and runs: nothing but label and message. */
const agentsEnvelope: Renderer = ({ kind, message }) => ({ error: LABELS[kind], message })

const RENDERERS: Record<Surface, Renderer> = {
  chat_completions: nested,
  messages: messagesEnvelope,
  responses: nested,
  models: nestedWithMessage,
  mcp,
  connections: flat,
  agents: agentsEnvelope,
  management: flat,
  none: nestedWithMessage,
}

/** Renders the error that a request ended with. Texts of unexpected errors are logged, and never sent. */
export function renderError(error: unknown, context: AppContext): Response {
  const known = toApiError(error)
  const requestId = context.get('requestId')
  if (known.kind === 'internal') {
    const surface = context.get('surface') ?? 'none'
    logFailure('request_failed', { request_id: requestId ?? null, surface, route: routeOf(context) }, error)
  }
  context.set('errorCode', errorCodeOf(known))
  const surface = context.get('surface') ?? 'none'
  const body = bodyOf(known, surface, context)
  const headers: Record<string, string> = { 'content-type': 'application/json', ...rateLimitHeaders(context) }
  if (known.retryAfterSeconds !== undefined) {
    headers['retry-after'] = String(Math.max(1, Math.ceil(known.retryAfterSeconds)))
  }
  if (known.shouldRetry === false) headers['x-should-retry'] = 'false'
  if (known.limit !== undefined) headers['x-headgate-limit'] = known.limit
  if (surface === 'mcp' && known.kind === 'unauthorized') headers['www-authenticate'] = mcpChallenge(context)
  // Messages quote the request, which can have a key in the wrong place. A redacted part ends before a quotation mark.
  return context.body(redact(JSON.stringify(body)), known.status as 400, headers)
}

/** The route that failed, or that its failed middleware stands before: several patterns can match a path. */
function routeOf(context: AppContext): string | null {
  const from = matchedRoutes(context).slice(context.req.routeIndex)
  const route = from.find(({ method }) => method !== 'ALL')
  return route ? `${route.method} ${route.path}` : null
}

function bodyOf(error: ApiError, surface: Surface, context: AppContext): Record<string, unknown> {
  if (surface === 'responses' && errorCompatibility(context) === 'open_responses') {
    return { error: openResponsesError(error.status, error.message, nestedErrorCode(error)) }
  }
  // Interface: a body over the limit is answered `{ message }` on every surface.
  return error.kind === 'too_large'
    ? { message: error.message }
    : RENDERERS[surface](error, context.get('requestId'))
}

function toApiError(error: unknown): ApiError {
  if (error instanceof ApiError) return error
  // The validator's hook never sees malformed JSON: hono throws this instead.
  if (error instanceof HTTPException && error.status === 400)
    return invalidRequest('The body is not valid JSON.')
  if (error instanceof ConfigurationError) return new ApiError('internal', error.message, { cause: error })
  return new ApiError('internal', 'Something went wrong.', { cause: error })
}
