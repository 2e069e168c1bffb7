import { ApiError, type ApiErrorOptions } from '../../lib/api-error.ts'
import { errorText, logEvent } from '../../lib/log.ts'
import type { ErrorData, LedgerTrace, StartResult } from '../types.ts'

/** The result of a start that failed. An internal error has no details for the caller. */
export function notStarted(error: unknown, trace: LedgerTrace): StartResult {
  const isKnown = error instanceof ApiError
  if (!isKnown) logEvent('error', 'response_not_started', { error: errorText(error) })
  const known = isKnown ? error : new ApiError('internal', 'Something went wrong.')
  const { kind, message, status, code, retryAfterSeconds, shouldRetry, limit } = known
  return { ...trace, error: { kind, message, status, code, retryAfterSeconds, shouldRetry, limit } }
}

/** The error of such a result, outside of the object. */
export const apiErrorOf = ({ kind, message, status: _, ...options }: ErrorData): ApiError =>
  new ApiError(kind, message, options as ApiErrorOptions)
