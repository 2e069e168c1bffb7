import { sql } from 'drizzle-orm'
import { runOutbox, runRequests, runs } from '../../../schema/agents.ts'
import type { Database } from '../../../schema/database.ts'
import { executeInOrder } from '../../../schema/read-in-order.ts'
import { timeParameter } from '../../../schema/sql-values.ts'
import type { OverdueLimits } from '../queue/overdue-messages.ts'
import type { RunRevision } from './progress.store.ts'

// Deployment-wide: what a scheduled job repeats and removes. Rows are taken by where they were found (ctid): no plan has to look
// for them again, and one that changed meanwhile is left to the next job.

/**
 * Takes messages that are overdue: not published, or published without an effect. Those of a run that a delivery holds are left
 * out. A second job at the same time gets others.
 */
export async function takeOverdue(
  database: Database,
  { now, overdueSince, publishedBefore, most }: OverdueLimits,
): Promise<RunRevision[]> {
  const { rows } = await database.execute<{ run_id: string; organization_id: string; rev: number }>(sql`
    UPDATE ${runOutbox} SET published_at = ${timeParameter(now)}
    WHERE ctid = ANY(ARRAY(
      SELECT message.ctid FROM ${runOutbox} AS message JOIN ${runs} ON ${runs.id} = message.run_id
      WHERE message.due_at <= ${timeParameter(overdueSince)}
        AND (message.published_at IS NULL OR message.published_at <= ${timeParameter(publishedBefore)})
        AND (${runs.leasedUntil} IS NULL OR ${runs.leasedUntil} <= ${timeParameter(overdueSince)})
      ORDER BY message.due_at LIMIT ${most} FOR UPDATE OF message SKIP LOCKED))
    RETURNING run_id, organization_id, rev`)
  return rows.map(({ run_id: runId, organization_id: organizationId, rev }) => ({
    runId,
    organizationId,
    rev,
  }))
}

/** Marks a message as not published. */
export async function markUnpublished(
  database: Database,
  { organizationId, runId, rev }: RunRevision,
): Promise<void> {
  await database.execute(sql`UPDATE ${runOutbox} SET published_at = NULL
    WHERE run_id = ${runId} AND organization_id = ${organizationId} AND rev = ${rev}`)
}

/** Deletes runs of an organization that ended before a time, with their steps and verdicts. @returns how many; at most `most`. */
export async function deleteEndedRuns(
  database: Database,
  organizationId: string,
  endedBefore: number,
  most: number,
): Promise<number> {
  const rows = await executeInOrder(
    database,
    sql`DELETE FROM ${runs} WHERE ctid = ANY(ARRAY(
      SELECT ctid FROM ${runs}
      WHERE organization_id::text = ${organizationId} AND ended_at <= ${timeParameter(endedBefore)} AND status <> 'in_progress'
      ORDER BY ended_at LIMIT ${most} FOR UPDATE SKIP LOCKED))
    RETURNING id`,
  )
  return rows.length
}

/** Deletes requests that are not recognized any more. */
export async function deleteExpiredRequests(database: Database, now: number, most: number): Promise<void> {
  await database.execute(sql`DELETE FROM ${runRequests} WHERE ctid = ANY(ARRAY(
    SELECT ctid FROM ${runRequests} WHERE expires_at <= ${timeParameter(now)} ORDER BY expires_at LIMIT ${most}
    FOR UPDATE SKIP LOCKED))`)
}
