import { ApiError } from '../../lib/api-error.ts'
import { logFailure, redact } from '../../lib/log.ts'
import { nestedErrorCode, nestedErrorType, refusalType } from '../../wire/nested-error.ts'
import type { ProviderRefusal } from '../model/types.ts'

/** An error of a connection, as it is sent. The code is always present (Open Responses, WebSocket errors). */
interface ErrorEvent {
  type: 'error'
  status: number
  error: { type: string; code: string; message: string; param: string | null }
  /** The members that an HTTP answer has as headers. */
  headers: Record<string, string>
}

/** The codes of errors that have none over HTTP. */
const CODES: Record<string, string> = {
  unauthorized: 'invalid_api_key',
  rate_limited: 'rate_limit_exceeded',
  too_large: 'message_too_large',
}

/** An error for the caller: an unexpected one is logged, and its text is never sent. */
export function callerError(error: unknown, requestId: string): ApiError {
  if (error instanceof ApiError && error.kind !== 'internal') return error
  const place = { request_id: requestId, surface: 'responses', route: 'WEBSOCKET /v1/responses' }
  logFailure('socket_message_failed', place, error)
  return error instanceof ApiError
    ? error
    : new ApiError('internal', 'Something went wrong.', { cause: error })
}

/** @param requestId of the message that it answers; null for none. */
export function errorEvent(error: ApiError, requestId: string | null): string {
  const { kind, message, status, param, retryAfterSeconds, shouldRetry, limit } = error
  const headers = {
    ...(retryAfterSeconds !== undefined && { 'retry-after': wholeSeconds(retryAfterSeconds) }),
    ...(shouldRetry === false && { 'x-should-retry': 'false' }),
    ...(limit !== undefined && { 'x-headgate-limit': limit }),
  }
  if (param === 'previous_response_id') {
    // The official status and code, which clients match to begin a new chain.
    const type = 'invalid_request_error'
    const details = {
      type,
      code: 'previous_response_not_found',
      message: `Previous ${lowered(message)}`,
      param,
    }
    return textOf({ type: 'error', status: 400, error: details, headers }, requestId)
  }
  const code = nestedErrorCode(error) ?? CODES[kind] ?? kind
  const details = { type: nestedErrorType(kind), code, message, param: param ?? null }
  return textOf({ type: 'error', status, error: details, headers }, requestId)
}

/** A provider's refusal of the first turn, with the provider's status. */
export function refusalEvent(refusal: ProviderRefusal, requestId: string): string {
  const { status, message, code, retryAfterSeconds } = refusal
  const headers = {
    'x-headgate-error-source': 'provider',
    ...(retryAfterSeconds !== null && { 'retry-after': wholeSeconds(retryAfterSeconds) }),
  }
  const error = { type: refusalType(status), code, message, param: null }
  return textOf({ type: 'error', status, error, headers }, requestId)
}

function textOf(event: ErrorEvent, requestId: string | null): string {
  const headers = requestId === null ? event.headers : { 'x-request-id': requestId, ...event.headers }
  // Messages quote the request, which can have a key in the wrong place.
  return redact(JSON.stringify({ ...event, headers }))
}

const wholeSeconds = (seconds: number): string => String(Math.max(1, Math.ceil(seconds)))

const lowered = (text: string): string => text.charAt(0).toLowerCase() + text.slice(1)
