import type { ApiError, ErrorKind } from '../lib/api-error.ts'

const TYPES: Partial<Record<ErrorKind, string>> = {
  unauthorized: 'authentication_error',
  forbidden: 'permission_error',
  rate_limited: 'rate_limit_error',
  upstream: 'server_error',
  internal: 'server_error',
}

/** The `type` of an error in the envelope of chat completions and responses (interface: Errors). */
export const nestedErrorType = (kind: ErrorKind): string => TYPES[kind] ?? 'invalid_request_error'

/** The `type` of a provider's error in that envelope. @param status of the provider's answer. */
export function refusalType(status: number): string {
  if (status === 403) return 'permission_error'
  if (status === 429) return 'rate_limit_error'
  return status >= 500 ? 'server_error' : 'invalid_request_error'
}

/** The `code` of an internal error where the interface has none. */
export const nestedErrorCode = ({ kind, code }: ApiError): string | undefined =>
  kind === 'internal' ? 'internal_error' : code
