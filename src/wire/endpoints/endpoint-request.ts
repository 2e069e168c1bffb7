import type * as z from 'zod'
import type { ErrorKind } from '../../lib/api-error.ts'

/** What an endpoint takes, and how it answers. */
export interface EndpointRequest {
  /** No parameters where left out. */
  query?: z.ZodObject
  body?: z.ZodType
  /** 200 where left out. */
  status?: 200 | 201 | 202
  /** Whether the answer is 201 when the endpoint creates what it would otherwise replace. */
  mayCreate?: true
  /** Refusals besides those of every endpoint (`COMMON_ERRORS`, `BODY_ERRORS`). */
  errors?: readonly ErrorKind[]
  /** Whether the answer is a stream of server-sent events, whose `data` the schema of the answer describes. */
  stream?: true
  /** Whether the answer is JSON objects, one a line, each of which the schema of the answer describes. */
  lines?: true
  /** Whether the answer holds a secret or a caller's text, which nothing may store. */
  noStore?: true
}

/** Refusals that every endpoint has. */
export const COMMON_ERRORS = [
  'invalid_request',
  'unauthorized',
  'forbidden',
  'not_found',
  'rate_limited',
  'internal',
] as const satisfies readonly ErrorKind[]

/** Refusals of every endpoint that takes a body. */
export const BODY_ERRORS = ['too_large'] as const satisfies readonly ErrorKind[]
