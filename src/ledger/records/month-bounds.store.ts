import { and, type SQL, sql } from 'drizzle-orm'
import type { PgColumn } from 'drizzle-orm/pg-core'
import { timeParameter, utc } from '../../../schema/sql-values.ts'
import { isStorableInstant } from '../changes/scoped-statements.store.ts'

// Records and usage are partitioned by month in UTC. The key of the partitions is an expression of `at`: a condition on it selects the
// partitions that Postgres reads, and leaves the choice of the index to the other conditions.

/**
 * The condition that selects the partitions of a period; none of it selects rows beside `within`.
 * @param period both ends inclusive; one that Postgres cannot read bounds nothing.
 */
export function inPartitionsOf(
  at: PgColumn,
  { from, to }: { from?: Date | undefined; to?: Date | undefined },
): SQL | undefined {
  const bound = (date: Date) => utc(timeParameter(date))
  return and(
    from && isStorableInstant(from) ? sql`${utc(at)} >= ${bound(from)}` : undefined,
    to && isStorableInstant(to) ? sql`${utc(at)} <= ${bound(to)}` : undefined,
  )
}

/** The condition that selects the partitions of the months in which all of these instants are. */
export function inMonthsOf(at: PgColumn, instants: readonly Date[]): SQL | undefined {
  const times = instants.filter(isStorableInstant).map((date) => date.getTime())
  if (times.length < instants.length || times.length === 0) return undefined
  const [first, last] = [new Date(Math.min(...times)), new Date(Math.max(...times))]
  return inPartitionsOf(at, {
    from: new Date(Date.UTC(first.getUTCFullYear(), first.getUTCMonth())),
    to: new Date(Date.UTC(last.getUTCFullYear(), last.getUTCMonth() + 1) - 1),
  })
}

/** SQL: the condition that a row is in the partition of the month of another row. */
export const inMonthOf = (at: SQL, other: SQL): SQL => {
  const month = sql`date_trunc('month', ${utc(other)})`
  return sql`${utc(at)} >= ${month} AND ${utc(at)} < ${month} + interval '1 month'`
}

/** The end of a period that a cursor leaves: rows after it, newest first, are at most as new. */
export const upTo = (to: Date | undefined, after: { at: number } | null): Date | undefined => {
  // The position is in microseconds, of which a Date has no room for the last three.
  const position = after === null ? undefined : new Date(Math.ceil(after.at / 1000))
  if (to === undefined || position === undefined) return to ?? position
  return position < to ? position : to
}
