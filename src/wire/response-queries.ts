import * as z from 'zod'

/** The queries of the Responses surface (interface: Responses, Conversations; Events, Resume). */

/**
 * Events of a rebuilt stream are numbered after the caller's number, and every reader of JSON must read them exactly. No
 * stream has so many events.
 */
const HIGHEST_SEQUENCE = 2 ** 52

/** A sequence number as text: any whole number, since one beyond the end of a stream is valid too. */
export const sequenceParameter = z
  .string()
  .regex(/^\d+$/, 'must be a whole number, 0 or higher')
  .transform((text) => Math.min(Number(text), HIGHEST_SEQUENCE))

/** Capitals too: Python's HTTP clients send `True` (https://github.com/psf/requests). */
const flag = z
  .string()
  .regex(/^([Tt][Rr][Uu][Ee]|[Ff][Aa][Ll][Ss][Ee])$/, 'must be true or false')
  .transform((text) => text.toLowerCase() === 'true')

/** Official clients repeat a parameter, and some add `[]` to its name. Unknown values are ignored. */
const include = z.union([z.string().transform((value) => [value]), z.array(z.string())])
const includes = { include: include.optional(), 'include[]': include.optional() }

/** The values of `include`. */
export function includesOf(query: {
  include?: string[] | undefined
  'include[]'?: string[] | undefined
}): Includes {
  return new Set([...(query.include ?? []), ...(query['include[]'] ?? [])])
}

export type Includes = ReadonlySet<string>

export const retrieveQuery = z.object({
  stream: flag.optional(),
  starting_after: sequenceParameter.optional(),
  ...includes,
})

export const itemQuery = z.object(includes)

export const itemListQuery = z.object({
  limit: z
    .string()
    .regex(/^(0{0,2}[1-9]|0?[1-9]\d|100)$/, 'must be a whole number from 1 to 100')
    .transform(Number)
    .default(20),
  order: z.enum(['asc', 'desc'], 'must be asc or desc').default('desc'),
  after: z.string().min(1, 'must be the id of an item').max(200, 'must be the id of an item').optional(),
  ...includes,
})

export type ItemListQuery = z.infer<typeof itemListQuery>
