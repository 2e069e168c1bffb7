import { type AnyColumn, type SQL, sql } from 'drizzle-orm'
import type { Database } from '../../../schema/database.ts'
import { contentErasures, conversations, responseItems, responses } from '../../../schema/responses.ts'
import { isPlainText } from '../../wire/page-cursor.ts'
import type { Owner } from '../model/types.ts'

// Parts of statements that the stores of this folder share. A row of another owner is treated as one that does not exist.
// Rows of an existing response are locked in one order, so that changes never deadlock: response, conversation, items.

type Statement = Parameters<Database['execute']>[0]

/** Runs statements in one transaction. @returns the rows of each. */
export async function inOneBatch(
  database: Database,
  statements: Statement[],
): Promise<Array<Array<Record<string, unknown>>>> {
  const [first, ...rest] = statements.map((statement) => database.execute(statement))
  if (first === undefined) return []
  return (await database.batch([first, ...rest])).map(({ rows }) => rows)
}

/** @throws when Postgres is away. */
export const pingDatabase = (database: Database) => database.execute(sql`SELECT 1`)

/** The condition that a row belongs to the owner. */
export function ownedBy(table: { organizationId: AnyColumn; userId: AnyColumn }, owner: Owner): SQL {
  return sql`(${table.organizationId} = ${owner.organizationId}::uuid AND ${table.userId} = ${owner.userId}::uuid)`
}

/** An id from a caller, as a parameter. Text that Postgres cannot hold becomes an id that no row has. */
export const idParameter = (id: string): string => (isPlainText(id) ? id : '')

export const isResponse = (owner: Owner, id: string): SQL =>
  sql`(${responses.id} = ${idParameter(id)} AND ${ownedBy(responses, owner)})`

/** No status follows another one than `in_progress`: a response ends once. */
export const isInProgress = (owner: Owner, id: string): SQL =>
  sql`(${isResponse(owner, id)} AND ${responses.status} = 'in_progress')`

export const isConversation = (owner: Owner, id: string): SQL =>
  sql`(${conversations.id} = ${idParameter(id)} AND ${ownedBy(conversations, owner)})`

export const lockConversation = (owner: Owner, id: string): SQL =>
  sql`SELECT 1 FROM ${conversations} WHERE ${isConversation(owner, id)} FOR NO KEY UPDATE`

/**
 * The item of an id, for a lateral join that looks it up by its key. The planner does not know the length of a list:
 * with a plain join it may read the table once for every id. That takes half a minute for 10,000 ids.
 */
export const ownItem = (owner: Owner, id: SQL): SQL =>
  sql`SELECT * FROM ${responseItems} WHERE ${responseItems.id} = ${id} AND ${ownedBy(responseItems, owner)} OFFSET 0`

/**
 * Records the content of items of responses that are deleted as garbage, until the content store has erased it. An earlier
 * statement has to lock the responses, since items are inserted ahead of the final write.
 * @param condition selects the responses to be deleted.
 */
export function contentGarbageStatement(
  { organizationId }: Pick<Owner, 'organizationId'>,
  condition: SQL,
): SQL {
  return sql`INSERT INTO ${contentErasures} (content_key, organization_id)
    SELECT content_key, ${organizationId}::uuid FROM ${responseItems}
    WHERE content_key IS NOT NULL AND ${isItemOf(condition)}
    ON CONFLICT DO NOTHING RETURNING content_key`
}

/**
 * The condition that an item was brought in by one of the responses that another condition selects. As an array: with a join, a planner
 * without statistics may read all items.
 */
export const isItemOf = (condition: SQL): SQL =>
  sql`${responseItems.responseId} = ANY(ARRAY(SELECT id FROM ${responses} WHERE ${condition}))`
