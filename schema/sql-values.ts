import { type SQL, sql } from 'drizzle-orm'
import type { PgColumn } from 'drizzle-orm/pg-core'

// Values as statements write them.

/** A time, in milliseconds since the epoch or as a date, as a parameter. @throws RangeError for an invalid one. */
export const timeParameter = (at: number | Date): SQL => sql`${new Date(at).toISOString()}::timestamptz`

/** SQL: a time without its zone, as the keys of monthly partitions have it. */
export const utc = (time: SQL | PgColumn): SQL => sql`${time} AT TIME ZONE 'UTC'`

/** An array of texts, with any characters that Postgres can hold, as one parameter. */
export const textArray = (texts: readonly string[]): SQL =>
  sql`ARRAY(SELECT jsonb_array_elements_text(${JSON.stringify(texts)}::jsonb))`
