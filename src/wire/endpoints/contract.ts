import * as z from 'zod'
import type { ErrorKind } from '../../lib/api-error.ts'

/** The schemas of an endpoint. */
export interface Contract {
  /** No parameters where left out. */
  query?: z.ZodObject
  body?: z.ZodType
  /** Strict: a member that is not listed is a fault of the gateway. */
  answer: z.ZodType
  /** 200 where left out. */
  status?: 200 | 201
  /** Whether the answer is 201 when the endpoint creates what it would otherwise replace. */
  mayCreate?: true
  /** Refusals besides those of every endpoint (`COMMON_ERRORS`, `BODY_ERRORS`). */
  errors?: readonly ErrorKind[]
  /** Whether the answer holds a secret or a caller's text, which nothing may store. */
  noStore?: true
}

/** Refusals that every endpoint has. */
export const COMMON_ERRORS = [
  'invalid_request',
  'unauthorized',
  'not_found',
  'rate_limited',
  'internal',
] as const satisfies readonly ErrorKind[]

/** Refusals of every endpoint that takes a body. */
export const BODY_ERRORS = ['too_large'] as const satisfies readonly ErrorKind[]

/** An instant in an answer: ISO 8601 in UTC. Handlers give a Date. */
export const time = z.iso.datetime().brand<'time'>()

/** What a handler gives for an answer: as the schema, with a Date for each instant. */
export type Given<Answer> =
  Answer extends z.core.$brand<'time'>
    ? Date | string
    : Answer extends readonly (infer Item)[]
      ? readonly Given<Item>[]
      : Answer extends object
        ? { [Member in keyof Answer]: Given<Answer[Member]> }
        : Answer

/** The envelope of a list. */
export const list = <Item extends z.ZodType>(item: Item) =>
  z.strictObject({ data: z.array(item), has_more: z.boolean(), next_cursor: z.string().nullable() })

export const deleted = z.strictObject({ id: z.string(), deleted: z.literal(true) })

export const count = z.int().nonnegative()

/** Sums of micro-credits, which may be negative. */
export const credits = z.int()
