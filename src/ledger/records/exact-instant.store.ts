import { type SQL, sql } from 'drizzle-orm'
import type { PgColumn } from 'drizzle-orm/pg-core'

/** A column of time, read exactly: an invalid date for one that no record has (microseconds, infinity). */
export const exactInstant = (column: PgColumn): SQL<Date> =>
  sql<Date>`(extract(epoch from ${column}) * 1000)::text`.mapWith((text: string) => {
    const milliseconds = Number(text)
    return new Date(Number.isInteger(milliseconds) ? milliseconds : Number.NaN)
  })
