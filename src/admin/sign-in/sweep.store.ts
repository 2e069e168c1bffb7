import { sql } from 'drizzle-orm'
import type { Database } from '../../../schema/database.ts'
import { apiKeys, sessions, setupLinks } from '../../../schema/identity.ts'

/** What the ceremony of a start token begins with; ids of other ceremonies begin with `ceremony_`. */
export const START_CEREMONY = 'start_'

// Deployment-wide: what a scheduled job removes. Rows are taken by where they were found (ctid), so that no plan looks for them again.

/** Deletes what has expired of a table. @param now milliseconds since the epoch. @returns how many; at most `most`. */
async function deleteExpired(
  database: Database,
  table: typeof sessions | typeof setupLinks | typeof apiKeys,
  now: number,
  most: number,
  condition = sql`true`,
): Promise<number> {
  const { rows } = await database.execute(sql`DELETE FROM ${table} WHERE ctid = ANY(ARRAY(
      SELECT ctid FROM ${table} WHERE expires_at <= ${new Date(now).toISOString()}::timestamptz AND ${condition}
      ORDER BY expires_at LIMIT ${most} FOR UPDATE SKIP LOCKED))
    RETURNING id`)
  return rows.length
}

/** The session of the start token of a local system stays: it is the mark that the token was used, and the token does not expire. */
export const deleteExpiredSessions = (database: Database, now: number, most: number): Promise<number> =>
  deleteExpired(database, sessions, now, most, sql`NOT starts_with(ceremony_id, ${START_CEREMONY})`)

export const deleteExpiredSetupLinks = (database: Database, now: number, most: number): Promise<number> =>
  deleteExpired(database, setupLinks, now, most)

export const deleteExpiredPlaygroundKeys = (database: Database, now: number, most: number): Promise<number> =>
  deleteExpired(database, apiKeys, now, most, sql`session_id IS NOT NULL`)
