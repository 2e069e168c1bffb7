import { expect } from 'vitest'
import type { Surface } from './routes.ts'

/** A refusal in the interface's words for it; each surface has its own envelope. */
export interface ExpectedRefusal {
  status: 400 | 401 | 403 | 404 | 406 | 413 | 415 | 422 | 429 | 500 | 502
  /** Only in envelopes of chat completions and responses; absent if the interface's table has none. */
  code?: string
  message?: string | RegExp
}

/** Interface, Errors, Chat completions; Responses and conversations have the same. */
const CHAT_TYPES: Record<number, string> = {
  400: 'invalid_request_error',
  401: 'authentication_error',
  403: 'permission_error',
  404: 'invalid_request_error',
  429: 'rate_limit_error',
  500: 'server_error',
  502: 'server_error',
}

/** Interface, Errors, Messages. */
const MESSAGES_TYPES: Record<number, string> = {
  400: 'invalid_request_error',
  401: 'authentication_error',
  403: 'permission_error',
  404: 'not_found_error',
  429: 'rate_limit_error',
  500: 'api_error',
  502: 'api_error',
}

/** Interface, Errors, Agents and runs: the flat envelope, which the management API has too. */
const LABELS: Record<number, string> = {
  400: 'Bad Request',
  401: 'Unauthorized',
  403: 'Forbidden',
  404: 'Not found',
  406: 'Not Acceptable',
  415: 'Unsupported Media Type',
  422: 'Unprocessable Entity',
  429: 'Too Many Requests',
  500: 'Internal Server Error',
  502: 'Bad Gateway',
}

/** The body that a surface has to answer a refusal with, for `toEqual`: no member more, none less. */
export function refusalBody(surface: Surface, { status, code, message = /./ }: ExpectedRefusal): unknown {
  const text = typeof message === 'string' ? message : expect.stringMatching(message)
  if (status === 413) return { message: text }
  const nested = { message: text, type: CHAT_TYPES[status], ...(code !== undefined && { code }) }
  if (surface === 'chat_completions' || surface === 'responses') {
    return { error: status === 401 ? 'Unauthorized' : nested }
  }
  if (surface === 'messages') {
    const error = { type: MESSAGES_TYPES[status], message: text }
    return { type: 'error', error, request_id: expect.stringMatching(/^req_/) }
  }
  // Beside the message that the generic rule asks for, the error object from which SDKs take theirs.
  if (surface === 'models' || surface === 'open') return { error: nested, message: text }
  // Interface, Errors, MCP gateway: a 401 has this body on it.
  if (surface === 'mcp' && status === 401) return { error: 'Unauthorized' }
  return { error: LABELS[status], message: text }
}
