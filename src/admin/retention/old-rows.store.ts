import { type SQL, sql } from 'drizzle-orm'
import type { Database } from '../../../schema/database.ts'
import { calls, rejectedCalls, usageEvents } from '../../../schema/governance.ts'
import { connectSessions } from '../../../schema/integrations.ts'
import { executeInOrder } from '../../../schema/read-in-order.ts'
import { timeParameter, utc } from '../../../schema/sql-values.ts'

// Rows that retention removes one by one, in batches. Those of tables without partitions are taken by where they were found (ctid), so
// that no plan looks for them again.

async function deleteOldest(
  database: Database,
  table: typeof calls | typeof rejectedCalls | typeof connectSessions,
  condition: SQL,
  order: SQL,
  most: number,
): Promise<number> {
  const rows = await executeInOrder(
    database,
    sql`DELETE FROM ${table} WHERE ctid = ANY(ARRAY(
      SELECT ctid FROM ${table} WHERE ${condition} ORDER BY ${order} LIMIT ${most} FOR UPDATE SKIP LOCKED))
    RETURNING 1 AS deleted`,
  )
  return rows.length
}

const ofOrganization = (organizationId: string) => sql`organization_id = ${organizationId}::uuid`

/** Deletes rows of lists of calls. @returns how many; at most `most`. */
export const deleteOldCalls = (
  database: Database,
  organizationId: string,
  before: Date,
  most: number,
): Promise<number> =>
  deleteOldest(
    database,
    calls,
    sql`${ofOrganization(organizationId)} AND at < ${timeParameter(before)}`,
    sql`at, id`,
    most,
  )

export const deleteOldConnectSessions = (
  database: Database,
  organizationId: string,
  before: Date,
  most: number,
): Promise<number> =>
  deleteOldest(
    database,
    connectSessions,
    sql`organization_id::text = ${organizationId} AND created_at < ${timeParameter(before)}`,
    sql`created_at`,
    most,
  )

export const deleteOldRejectedCalls = (database: Database, before: Date, most: number): Promise<number> =>
  deleteOldest(database, rejectedCalls, sql`minute < ${timeParameter(before)}`, sql`minute`, most)

const isOldUsage = (organizationId: string, before: Date) =>
  sql`${ofOrganization(organizationId)} AND at < ${timeParameter(before)} AND ${utc(sql`at`)} < ${utc(timeParameter(before))}`

/** Deletes usage of an organization. @returns how many; `most` or a few more, of the same instant, where there is more. */
export async function deleteOldUsage(
  database: Database,
  organizationId: string,
  before: Date,
  most: number,
): Promise<number> {
  const isOld = isOldUsage(organizationId, before)
  const rows = await executeInOrder(
    database,
    sql`DELETE FROM ${usageEvents} WHERE ${isOld} AND at <= (
      SELECT max(at) FROM (SELECT at FROM ${usageEvents} WHERE ${isOld} ORDER BY at LIMIT ${most}) AS oldest)
    RETURNING 1 AS deleted`,
  )
  return rows.length
}

/** Whether an organization has usage that is older than a time. */
export async function hasUsageBefore(
  database: Database,
  organizationId: string,
  before: Date,
): Promise<boolean> {
  const { rows } = await database.execute(sql`
    SELECT 1 FROM ${usageEvents} WHERE ${isOldUsage(organizationId, before)} LIMIT 1`)
  return rows.length > 0
}

/** Whether there are counts of rejected calls that are older than a time. */
export async function hasRejectedCallsBefore(database: Database, before: Date): Promise<boolean> {
  // Ordered, so that Postgres reads one entry of the index also where it has no statistics.
  const { rows } = await database.execute<{ is_old: boolean }>(sql`
    SELECT minute < ${timeParameter(before)} AS is_old FROM ${rejectedCalls} ORDER BY minute LIMIT 1`)
  return rows[0]?.is_old === true
}
