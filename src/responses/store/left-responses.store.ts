import { sql } from 'drizzle-orm'
import type { Database } from '../../../schema/database.ts'
import { responses } from '../../../schema/responses.ts'
import { timeParameter } from '../../../schema/sql-values.ts'
import type { Owner } from '../model/types.ts'

// Deployment-wide: what a scheduled job looks through.

/** A response that is in progress, as Postgres has it. */
export interface UnfinishedResponse {
  id: string
  owner: Owner
  conversationId: string | null
  /** Milliseconds since the epoch. */
  createdAt: number
}

/**
 * Responses that are in progress and began before a time, the oldest first.
 * @param before milliseconds since the epoch. @param after the last response of the page before; null for the first page.
 */
export async function selectUnfinished(
  database: Database,
  before: number,
  after: UnfinishedResponse | null,
  most: number,
): Promise<UnfinishedResponse[]> {
  const { id, organizationId, userId, conversationId, createdAt, status } = responses
  const next =
    after === null ? sql`true` : sql`(${createdAt}, ${id}) > (${timeParameter(after.createdAt)}, ${after.id})`
  const rows = await database
    .select({ id, organizationId, userId, conversationId, createdAt })
    .from(responses)
    .where(sql`${status} = 'in_progress' AND ${createdAt} <= ${timeParameter(before)} AND ${next}`)
    .orderBy(createdAt, id)
    .limit(most)
  return rows.map((row) => ({
    id: row.id,
    owner: { organizationId: row.organizationId, userId: row.userId },
    conversationId: row.conversationId,
    createdAt: row.createdAt.getTime(),
  }))
}
