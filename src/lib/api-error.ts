/** The kind of an error, independent of the surface. Each surface's renderer maps it to its own envelope. */
export type ErrorKind =
  | 'invalid_request'
  | 'unauthorized'
  | 'forbidden'
  | 'not_found'
  | 'method_not_allowed'
  | 'not_acceptable'
  | 'too_large'
  | 'unsupported_media_type'
  | 'unprocessable'
  | 'rate_limited'
  | 'upstream'
  | 'internal'

const STATUS: Record<ErrorKind, number> = {
  invalid_request: 400,
  unauthorized: 401,
  forbidden: 403,
  not_found: 404,
  method_not_allowed: 405,
  not_acceptable: 406,
  too_large: 413,
  unsupported_media_type: 415,
  unprocessable: 422,
  rate_limited: 429,
  upstream: 502,
  internal: 500,
}

/** The limit that refused a call with 429: the credits, or a limit of calls of the organization or of the user. */
type LimitKind = 'credits' | 'organization' | 'user'

export interface ApiErrorOptions {
  /** The interface's code for this cause, such as `model_not_found`; absent where its table has none. */
  code?: string
  /** Seconds; rounded up to at least 1 when sent. */
  retryAfterSeconds?: number
  /** False: official SDKs must not repeat the call (`x-should-retry: false`). */
  shouldRetry?: boolean
  /**
   * For a 429: the limit that ran out (header `x-headgate-limit`). The interface gives every 429 the same type, without a code.
   */
  limit?: LimitKind
  /** The member of the request at fault. Sent in the errors of a WebSocket. */
  param?: string
  /** Further facts about the error, as JSON. Sent on the management surface and with Messages. */
  details?: Record<string, unknown>
  cause?: unknown
}

/** Ends a request. Thrown anywhere, rendered once, in the envelope of the surface (interface: Errors). */
export class ApiError extends Error {
  readonly kind: ErrorKind
  readonly status: number
  readonly code: string | undefined
  readonly retryAfterSeconds: number | undefined
  readonly shouldRetry: boolean | undefined
  readonly limit: LimitKind | undefined
  readonly param: string | undefined
  readonly details: Record<string, unknown> | undefined

  /** @param message sent to the caller as it is: never a credential, never a third party's text. */
  constructor(kind: ErrorKind, message: string, options: ApiErrorOptions = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause })
    this.name = 'ApiError'
    this.kind = kind
    this.status = STATUS[kind]
    this.code = options.code
    this.retryAfterSeconds = options.retryAfterSeconds
    this.shouldRetry = options.shouldRetry
    this.limit = options.limit
    this.param = options.param
    this.details = options.details
  }
}

/** A body or parameter that breaks the interface's rules. */
export const invalidRequest = (message: string, code = 'invalid_body') =>
  new ApiError('invalid_request', message, { code })

/** A refusal of the management API that a program tells apart by its code, in `details`. */
export const codedRefusal = (
  kind: ErrorKind,
  code: string,
  message: string,
  details: Record<string, unknown> = {},
) => new ApiError(kind, message, { code, details: { code, ...details } })

/**
 * A request that fits the schema of its operation, and cannot be done all the same: a part contradicts another, what exists, or
 * rules that a schema does not state. `invalid_request` is left to what the schema refuses.
 */
export const unprocessable = (message: string, details?: Record<string, unknown>) =>
  new ApiError('unprocessable', message, { code: 'invalid_body', ...(details && { details }) })

/** An entity that does not exist, or that this caller may not see: both have the same error. */
export const notFound = (entity: string, id: string) =>
  new ApiError('not_found', `${entity} ${id} not found.`, { code: 'not_found' })
