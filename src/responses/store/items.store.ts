import { type SQL, sql } from 'drizzle-orm'
import type { Database } from '../../../schema/database.ts'
import { conversationItems, responseItems, responseItemUses, responses } from '../../../schema/responses.ts'
import { timeParameter } from '../../../schema/sql-values.ts'
import { contextTooLong } from '../model/context-too-long.ts'
import type { StoredItem } from '../model/stored-items.ts'
import type { Owner } from '../model/types.ts'
import { idParameter, isInProgress, isResponse, ownItem } from './rows.store.ts'

// Items as rows: inserting them in statements of a bounded size, and reading ordered lists of them in slices.

/**
 * Bytes of the items of one insert statement. The driver holds them as text, as JSON and as its own request, up to four
 * times in all.
 */
const LARGEST_INSERT_BYTES = 2 * 1024 * 1024
/** Bytes of bodies in one result: the driver accepts 64 MB, and an isolate holds a result twice. */
const LARGEST_RESULT_BYTES = 16 * 1024 * 1024
/** Items of one result when a whole list is read. */
const LONGEST_RESULT = 2_000
/** Items of a context: more of them need more memory than an object has, however small they are. */
const MOST_CONTEXT_ITEMS = 20_000
/** Characters from which on a body is a parameter of its own. Within the JSON text it would be copied once more. */
const LARGE_BODY = 64 * 1024
/** Most bytes of an item in a statement besides its body. */
const ITEM_BYTES = 500

/** Splits items into parts of a bounded size, one part for each statement. */
export function* itemParts(items: Iterable<StoredItem>): Generator<StoredItem[]> {
  let part: StoredItem[] = []
  let bytes = 0
  for (const item of items) {
    const size = ITEM_BYTES + Buffer.byteLength(item.body ?? '')
    if (part.length > 0 && bytes + size > LARGEST_INSERT_BYTES) {
      yield part
      part = []
      bytes = 0
    }
    part.push(item)
    bytes += size
  }
  if (part.length > 0) yield part
}

/**
 * Inserts items of a response that is in progress. Items that exist are not changed. The statement waits for a concurrent
 * deletion of the response and inserts nothing then: deleted content must not come back.
 */
export function insertItems(
  owner: Owner,
  responseId: string,
  items: readonly StoredItem[],
  createdAt: number,
): SQL {
  const large: string[] = []
  const entries = items.map((item) => {
    if (item.body === null || item.body.length < LARGE_BODY) return item
    return { ...item, body: null, large: large.push(item.body) }
  })
  const body =
    large.length === 0 ? sql`entry.body` : sql`CASE entry.large ${whens(large)} ELSE entry.body END`
  return sql`
    INSERT INTO ${responseItems}
      (organization_id, user_id, response_id, created_at, id, type, role, call_id, body, content_key)
    SELECT ${owner.organizationId}::uuid, ${owner.userId}::uuid, response.id, ${timeParameter(createdAt)},
      entry.id, entry.type, entry.role, entry."callId", ${body}, entry."contentKey"
    FROM (SELECT id FROM ${responses} WHERE ${isInProgress(owner, responseId)} FOR KEY SHARE) AS response
    CROSS JOIN jsonb_to_recordset(${JSON.stringify(entries)}::jsonb) AS entry(
      id text, type text, role text, "callId" text, body text, "contentKey" text, large int)
    ON CONFLICT DO NOTHING`
}

const whens = (texts: readonly string[]): SQL =>
  sql.join(
    texts.map((text, index) => sql`WHEN ${sql.raw(String(index + 1))} THEN ${text}::text`),
    sql` `,
  )

/** The places of a response's context: its conversation up to its end, or else its own input and output. */
export function contextPlaces(owner: Owner, responseId: string): SQL {
  const given = isResponse(owner, responseId)
  return sql`
    SELECT ${conversationItems.itemId}, ${conversationItems.position}, ${conversationItems.responseId}
    FROM ${responses} JOIN ${conversationItems}
      ON ${conversationItems.conversationId} = ${responses.conversationId}
      AND ${conversationItems.position} < ${responses.contextPosition}
    WHERE ${given}
    UNION ALL
    SELECT item_id, row_number() OVER (ORDER BY direction, position) - 1, ${responses.id}
    FROM ${responses} JOIN ${responseItemUses} ON ${responseItemUses.responseId} = ${responses.id}
    WHERE ${given} AND ${responses.conversationId} IS NULL`
}

export const usePlaces = (responseId: string, direction: 'input' | 'output'): SQL => sql`
  SELECT item_id, position FROM ${responseItemUses}
  WHERE response_id = ${idParameter(responseId)} AND direction = ${direction}`

export const conversationPlaces = (conversationId: string): SQL => sql`
  SELECT item_id, position FROM ${conversationItems} WHERE conversation_id = ${idParameter(conversationId)}`

/** A slice of an ordered list of items. */
interface ItemSlice {
  /** A query with the columns `item_id` and `position`. */
  places: SQL
  order: 'asc' | 'desc'
  /** The place before the first one; none when left out. */
  after?: SQL | number | undefined
  limit: number
}

/**
 * The query of a slice. It reads one item more than the limit, which shows whether the list continues. Items that would
 * make the result too large are left out, except for the first.
 */
export function sliceQuery(owner: Owner, { places, order, after, limit }: ItemSlice): SQL {
  const direction = sql.raw(order)
  const beyond = sql.raw(order === 'asc' ? '>' : '<')
  const from = after === undefined ? sql`true` : sql`place.position ${beyond} ${after}`
  return sql`
    SELECT id, type, role, call_id AS "callId", body, content_key AS "contentKey", position::int, found::int
    FROM (
      SELECT slice.*, count(*) OVER () AS found,
        sum(bytes) OVER (ORDER BY position ${direction}) - bytes AS bytes_before
      FROM (
        SELECT item.*, place.position, coalesce(octet_length(item.body), 0) AS bytes
        FROM (${places}) AS place CROSS JOIN LATERAL (${ownItem(owner, sql`place.item_id`)}) AS item
        WHERE ${from}
        ORDER BY place.position ${direction} LIMIT ${limit + 1}
      ) AS slice
    ) AS measured
    WHERE bytes_before < ${LARGEST_RESULT_BYTES}
    ORDER BY position ${direction}`
}

/** The items of a slice with their positions, and whether the list continues after them. */
export function readSlice(rows: Array<Record<string, unknown>>, limit: number) {
  const found = rows as Array<StoredItem & Record<'position' | 'found', number>>
  const items = found.slice(0, limit).map(({ position, found: _, ...item }) => ({ position, item }))
  return { items, hasMore: (found[0]?.found ?? 0) > items.length }
}

/** The query of the first slice of a list that `readToEnd` reads whole. */
export const firstSliceQuery = (owner: Owner, places: SQL): SQL =>
  sliceQuery(owner, { places, order: 'asc', limit: LONGEST_RESULT })

/**
 * Reads a list to its end, in several queries when it is long.
 * @param first rows of `firstSliceQuery`. @param end position after the last item of the slice.
 * @throws ApiError invalid_request `context_length_exceeded` for more items than a context may have.
 */
export async function readToEnd(
  database: Database,
  owner: Owner,
  places: SQL,
  first: Array<Record<string, unknown>>,
  end = Number.POSITIVE_INFINITY,
): Promise<StoredItem[]> {
  const items: StoredItem[] = []
  let slice = readSlice(first, LONGEST_RESULT)
  for (;;) {
    for (const { position, item } of slice.items) if (position < end) items.push(item)
    if (items.length > MOST_CONTEXT_ITEMS) throw contextTooLong(`${MOST_CONTEXT_ITEMS} items`)
    const after = slice.items.at(-1)?.position
    if (!slice.hasMore || after === undefined || after >= end) return items
    const query = sliceQuery(owner, { places, order: 'asc', after, limit: LONGEST_RESULT })
    slice = readSlice((await database.execute(query)).rows, LONGEST_RESULT)
  }
}
