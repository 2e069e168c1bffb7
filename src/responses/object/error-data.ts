import { ApiError, type ErrorKind } from '../../lib/api-error.ts'
import { errorText, logEvent } from '../../lib/log.ts'
import type { ErrorData, StartResult } from '../types.ts'

/** An error as data. An internal error has no details for the caller. */
function errorData(error: unknown): ErrorData {
  const known = error instanceof ApiError ? error : null
  return {
    kind: known?.kind ?? 'internal',
    message: known?.message ?? 'Something went wrong.',
    status: known?.status ?? 500,
    ...(known?.code !== undefined && { code: known.code }),
    ...(known?.retryAfterSeconds !== undefined && { retryAfterSeconds: known.retryAfterSeconds }),
    ...(known?.shouldRetry !== undefined && { shouldRetry: known.shouldRetry }),
  }
}

/** The result of a start that failed. @param recorded see `StartResult`. */
export function notStarted(error: unknown, recorded: boolean): StartResult {
  if (!(error instanceof ApiError)) logEvent('error', 'response_not_started', { error: errorText(error) })
  return { error: errorData(error), recorded }
}

/** The error of such a result, outside of the object. */
export const apiErrorOf = ({ kind, message, code, retryAfterSeconds, shouldRetry }: ErrorData): ApiError =>
  new ApiError(kind as ErrorKind, message, {
    ...(code !== undefined && { code }),
    ...(retryAfterSeconds !== undefined && { retryAfterSeconds }),
    ...(shouldRetry !== undefined && { shouldRetry }),
  })
