import * as z from 'zod'

/** An instant in an answer: ISO 8601 in UTC. Handlers give a Date. */
export const time = z.iso.datetime().brand<'time'>()

/** What a handler gives for an answer: as its schema, with a Date for each instant. */
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
