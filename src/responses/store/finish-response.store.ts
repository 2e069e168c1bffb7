import { type SQL, sql } from 'drizzle-orm'
import type { Database } from '../../../schema/database.ts'
import { conversationItems, conversations, responseItemUses, responses } from '../../../schema/responses.ts'
import { timeParameter } from '../../../schema/sql-values.ts'
import type { ResponseStatus } from '../../wire/responses.ts'
import type { StoredItem } from '../model/stored-items.ts'
import type { Owner } from '../model/types.ts'
import { insertItems, itemParts } from './items.store.ts'
import {
  idParameter,
  inOneBatch,
  isConversation,
  isInProgress,
  isResponse,
  lockConversation,
  ownItem,
} from './rows.store.ts'

// The final write of a response: its status, its items, and their places in its conversation.

export interface FinishedResponse {
  id: string
  status: Exclude<ResponseStatus, 'in_progress'>
  /** The response object as JSON, without `output`. */
  body: string
  /** Milliseconds since the epoch. */
  completedAt: number
  lastSequence: number
  /** New items of the request, without those it refers to. Iterated once, as they are written. */
  inputItems: Iterable<StoredItem>
  outputItems: readonly StoredItem[]
  /** The whole input in order, new items and references. */
  usedItemIds: readonly string[]
  conversationId: string | null
}

/** Only these statuses add items to the conversation. */
const ADDING: readonly ResponseStatus[] = ['completed', 'incomplete']

/**
 * Writes how a response ended, with its items, and appends those to its conversation if it is completed or incomplete.
 * Many or large items are inserted ahead in statements of their own; no query sees them before the final transaction. A
 * repeated call changes nothing, nor does another end after the first.
 * @returns the status that the response has now; null when it does not exist, for instance because it was deleted. The
 *   caller then has to erase its content.
 */
export async function finishResponse(
  database: Database,
  owner: Owner,
  response: FinishedResponse,
): Promise<ResponseStatus | null> {
  const insert = (items: StoredItem[]) => insertItems(owner, response.id, items, response.completedAt)
  let last: StoredItem[] = []
  for (const part of itemParts(allItems(response))) {
    if (last.length > 0) await database.execute(insert(last))
    last = part
  }
  const results = await inOneBatch(database, [
    ...lockStatements(owner, response),
    ...(last.length > 0 ? [insert(last)] : []),
    useStatement(owner, response),
    ...membershipStatements(owner, response),
    statusStatement(owner, response),
    sql`SELECT status FROM ${responses} WHERE ${isResponse(owner, response.id)}`,
  ])
  const row = results.at(-1)?.[0] as { status: ResponseStatus } | undefined
  return row?.status ?? null
}

function* allItems({ inputItems, outputItems }: FinishedResponse): Generator<StoredItem> {
  yield* inputItems
  yield* outputItems
}

/**
 * Whether Postgres will never accept a statement, because it cannot hold the data or the data violates a constraint
 * (https://www.postgresql.org/docs/current/errcodes-appendix.html, classes 22 and 23).
 */
export function isRefusedData(error: unknown): boolean {
  if (!(error instanceof Error)) return false
  const { code } = error as Error & { code?: unknown }
  return (typeof code === 'string' && /^2[23][0-9A-Z]{3}$/.test(code)) || isRefusedData(error.cause)
}

/** Each statement after these sees what concurrent changes have committed. */
function lockStatements(owner: Owner, { id, conversationId }: FinishedResponse): SQL[] {
  const response = sql`SELECT 1 FROM ${responses} WHERE ${isResponse(owner, id)} FOR NO KEY UPDATE`
  return conversationId === null ? [response] : [response, lockConversation(owner, conversationId)]
}

/** Links input and output items to the response. References to items that were deleted meanwhile are left out. */
function useStatement(owner: Owner, { id, usedItemIds, outputItems }: FinishedResponse): SQL {
  const uses = (direction: string, ids: readonly string[]) =>
    [...new Set(ids)].map((itemId, position) => ({ direction, position, id: idParameter(itemId) }))
  const outputIds = outputItems.map((item) => item.id)
  const rows = JSON.stringify([...uses('input', usedItemIds), ...uses('output', outputIds)])
  return sql`INSERT INTO ${responseItemUses} (response_id, direction, position, item_id)
    SELECT response.id, used.direction, used.position, item.id
    FROM (SELECT id FROM ${responses} WHERE ${isInProgress(owner, id)}) AS response
    CROSS JOIN jsonb_to_recordset(${rows}::jsonb) AS used(direction text, position int, id text)
    CROSS JOIN LATERAL (${ownItem(owner, sql`used.id`)} FOR KEY SHARE) AS item
    ON CONFLICT DO NOTHING`
}

/** Appends the items to the conversation, without those that are in it already, and releases its lock. */
function membershipStatements(owner: Owner, { id, status, conversationId }: FinishedResponse): SQL[] {
  if (conversationId === null) return []
  const known = sql`${isConversation(owner, conversationId)}
    AND EXISTS (SELECT FROM ${responses} WHERE ${isInProgress(owner, id)} AND conversation_id = ${conversationId})`
  if (!ADDING.includes(status)) {
    return [sql`UPDATE ${conversations} SET writer = nullif(writer, ${id}) WHERE ${known}`]
  }
  return [
    sql`INSERT INTO ${conversationItems} (conversation_id, position, item_id, response_id)
      SELECT ${conversations.id},
        ${conversations.nextPosition} + row_number() OVER (ORDER BY direction, position) - 1,
        ${responseItemUses.itemId}, ${responseItemUses.responseId}
      FROM ${responseItemUses} CROSS JOIN ${conversations}
      WHERE ${known} AND ${responseItemUses.responseId} = ${id} AND NOT EXISTS (
        SELECT FROM ${conversationItems} AS there
        WHERE there.item_id = ${responseItemUses.itemId} AND there.conversation_id = ${conversations.id})
      ON CONFLICT DO NOTHING`,
    sql`UPDATE ${conversations} SET head_response_id = ${id}, writer = nullif(writer, ${id}),
        next_position = greatest(next_position, coalesce((
          SELECT max(position) + 1 FROM ${conversationItems} WHERE conversation_id = ${conversationId}), 0))
      WHERE ${known}`,
  ]
}

function statusStatement(owner: Owner, response: FinishedResponse): SQL {
  const { id, status, body, completedAt, lastSequence } = response
  const position = ADDING.includes(status)
    ? sql`(SELECT next_position FROM ${conversations} WHERE ${conversations.id} = ${responses.conversationId})`
    : sql`context_position`
  return sql`UPDATE ${responses} SET status = ${status}, body = ${body}, completed_at = ${timeParameter(completedAt)},
      last_sequence = ${lastSequence}, context_position = ${position}
    WHERE ${isInProgress(owner, id)}`
}
