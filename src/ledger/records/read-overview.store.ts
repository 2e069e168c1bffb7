import { and, eq, sql } from 'drizzle-orm'
import { calls } from '../../../schema/governance.ts'
import { executeInOrder, READ_IN_ORDER } from '../../../schema/read-in-order.ts'
import { OUTCOMES, type Outcome } from '../../wire/calls.ts'
import { equal, newestFirst, type OrganizationScope, within } from '../changes/scoped-statements.store.ts'
import type { CallRow } from './extracted-rows.ts'

/** Calls that an overview counts, the newest ones. */
const MOST_COUNTED = 100_000
/** Latest errors, and users that have spent the most. */
const MOST_LISTED = 6

const ERRORS = OUTCOMES.filter((outcome) => outcome !== 'ok' && outcome !== 'cancelled')

interface Counted {
  outcome: Outcome
  count: number
  /** Micro-credits. */
  cost: number
}

/** The times of an overview. */
export interface OverviewTimes {
  now: Date
  /** Midnight, UTC. */
  today: Date
  /** The beginning of the first of the last 24 hours that are counted one by one. */
  firstHour: Date
  /** A week before: from midnight to the same time of the day. */
  weekBefore: { from: Date; to: Date }
}

/** What calls of an organization were since midnight, and in each of the last 24 hours. */
export interface CountedDay {
  hours: Array<Counted & { hour: number }>
  /** Median time to the first event of streams, in milliseconds. */
  firstEvents: Array<{ hour: number; p50: number }>
  today: Counted[]
  firstEvent: number[] | null
  /** The provider of the most failed calls, and the user of the most refused ones. */
  failedAt: { name: string; count: number } | null
  refusedTo: { name: string; count: number } | null
  /** Detectors of blocked calls, the most frequent first. */
  blockedBy: Array<{ name: string; count: number }>
  spend: Array<{ user: string | null; calls: number; cost: number }>
  users: number
  weekBefore: number
  /** Milliseconds since the epoch of the oldest that was counted, where there are older ones; else null. */
  countedFrom: number | null
}

/** @param userId of whom; undefined for all of the organization. */
export async function selectDay(
  scope: OrganizationScope,
  userId: string | undefined,
  times: OverviewTimes,
): Promise<CountedDay> {
  const { database, organizationId } = scope
  const ofScope = and(eq(calls.organizationId, organizationId), equal(calls.userId, userId))
  const from = times.firstHour < times.today ? times.firstHour : times.today
  const newest = sql.join(newestFirst(calls.at, calls.id), sql`, `)
  const examined = sql`SELECT at, outcome, cost, first_event_milliseconds AS first_event, provider, user_id, detectors
    FROM ${calls} WHERE ${and(ofScope, within(calls.at, { from, to: times.now }))}
    ORDER BY ${newest} LIMIT ${MOST_COUNTED}`
  const before = sql`SELECT 1 FROM ${calls} WHERE ${and(ofScope, within(calls.at, times.weekBefore))}
    ORDER BY ${newest} LIMIT ${MOST_COUNTED}`
  const rows = await executeInOrder<{ day: CountedDay }>(database, dayStatement({ examined, before, times }))
  const [row] = rows
  if (row === undefined) throw new Error('A statement without a condition has one row.')
  return row.day
}

const rowsOf = (select: ReturnType<typeof sql>) =>
  sql`(SELECT coalesce(json_agg(part), '[]') FROM (${select}) part)`
const firstOf = (select: ReturnType<typeof sql>) => sql`(SELECT to_json(part) FROM (${select} LIMIT 1) part)`

/** One statement, so that all counts are of the same calls. */
function dayStatement({
  examined,
  before,
  times,
}: {
  examined: ReturnType<typeof sql>
  before: ReturnType<typeof sql>
  times: OverviewTimes
}) {
  const hour = sql`floor(extract(epoch FROM at - ${times.firstHour.toISOString()}::timestamptz) / 3600)::int`
  const top = (
    column: string,
    outcome: Outcome,
  ) => sql`SELECT ${sql.identifier(column)} AS name, count(*) AS count
    FROM today WHERE outcome = ${outcome} AND ${sql.identifier(column)} IS NOT NULL GROUP BY 1 ORDER BY 2 DESC, 1`
  return sql`
    WITH examined AS MATERIALIZED (${examined}),
      today AS MATERIALIZED (SELECT * FROM examined WHERE at >= ${times.today.toISOString()}::timestamptz),
      spent AS MATERIALIZED (SELECT user_id AS "user", count(*) AS calls, sum(cost) AS cost FROM today GROUP BY 1),
      hourly AS MATERIALIZED (SELECT ${hour} AS hour, outcome, cost, first_event FROM examined
        WHERE at >= ${times.firstHour.toISOString()}::timestamptz)
    SELECT json_build_object(
      'hours', ${rowsOf(sql`SELECT hour, outcome, count(*) AS count, sum(cost) AS cost FROM hourly GROUP BY 1, 2`)},
      'firstEvents', ${rowsOf(sql`SELECT hour, round(percentile_cont(0.5) WITHIN GROUP (ORDER BY first_event)) AS p50
        FROM hourly WHERE first_event IS NOT NULL GROUP BY 1`)},
      'today', ${rowsOf(sql`SELECT outcome, count(*) AS count, sum(cost) AS cost FROM today GROUP BY 1`)},
      'firstEvent', (SELECT percentile_cont(ARRAY[0.5, 0.95]) WITHIN GROUP (ORDER BY first_event) FROM today),
      'failedAt', ${firstOf(top('provider', 'failed'))},
      'refusedTo', ${firstOf(top('user_id', 'refused'))},
      'blockedBy', ${rowsOf(sql`SELECT detector AS name, count(*) AS count FROM today, unnest(detectors) AS detector
        WHERE outcome = 'blocked' GROUP BY 1 ORDER BY 2 DESC, 1 LIMIT 3`)},
      'spend', ${rowsOf(sql`SELECT * FROM spent ORDER BY cost DESC, calls DESC, 1 LIMIT ${MOST_LISTED - 1}`)},
      'users', (SELECT count(*) FROM spent),
      'weekBefore', (SELECT count(*) FROM (${before}) earlier),
      'countedFrom', (SELECT CASE WHEN count(*) >= ${MOST_COUNTED}
        THEN floor(extract(epoch FROM min(at)) * 1000) END FROM examined)
    ) AS day`
}

/** The latest calls since a time that were refused, blocked or failed, newest first. @param userId as for `selectDay`. */
export async function selectLatestErrors(
  { database, organizationId }: OrganizationScope,
  userId: string | undefined,
  since: Date,
): Promise<CallRow[]> {
  const select = (outcome: Outcome) =>
    database
      .select()
      .from(calls)
      .where(
        and(
          eq(calls.organizationId, organizationId),
          // By the index of calls that did not succeed; of one user by that of users, since the other has the errors of all.
          userId === undefined
            ? and(eq(calls.outcome, outcome), sql`outcome <> 'ok'`)
            : sql`${calls.outcome} || '' = ${outcome}`,
          equal(calls.userId, userId),
          within(calls.at, { from: since }),
        ),
      )
      .orderBy(...newestFirst(calls.at, calls.id))
      .limit(MOST_LISTED)
  const [, ...found] = await database.batch([database.execute(READ_IN_ORDER), ...ERRORS.map(select)])
  return found
    .flat()
    .sort((left, right) => right.at.getTime() - left.at.getTime() || (left.id < right.id ? 1 : -1))
    .slice(0, MOST_LISTED)
}
