import { TurnFailure } from '../../gateway/calls/turn-failure.ts'
import { ApiError, type ApiErrorOptions } from '../../lib/api-error.ts'
import { logFailure } from '../../lib/log.ts'
import type { ErrorData, NotStarted, ProviderRefusal, StartTrace } from './types.ts'

/** The result of a start that failed. An internal error has no details for the caller. */
export function notStarted(error: unknown, trace: StartTrace, requestId: string): NotStarted {
  if (error instanceof TurnFailure) return { ...trace, error: null, refusal: refusalOf(error) }
  const known = error instanceof ApiError ? error : new ApiError('internal', 'Something went wrong.')
  if (known.kind === 'internal') {
    // The cause is logged here, because it does not leave the object.
    logFailure(
      'response_not_started',
      { request_id: requestId, surface: 'responses', route: 'ResponseStream.start' },
      error,
    )
  }
  const { kind, message, status, code, retryAfterSeconds, shouldRetry, limit, param } = known
  return { ...trace, error: { kind, message, status, code, retryAfterSeconds, shouldRetry, limit, param } }
}

const refusalOf = ({ status, message, code, retryAfterSeconds }: TurnFailure): ProviderRefusal => ({
  status: status ?? 500,
  message,
  // Interface, Errors: the only code of a 502.
  code: status === 502 ? 'upstream_empty_body' : code,
  // Interface, Limits: every 429 has a Retry-After.
  retryAfterSeconds: retryAfterSeconds ?? (status === 429 ? 1 : null),
})

/** The error of such a result, outside of the object. */
export const apiErrorOf = ({ kind, message, status: _, ...options }: ErrorData): ApiError =>
  new ApiError(kind, message, options as ApiErrorOptions)
