import { type AnyColumn, type SQL, sql } from 'drizzle-orm'
import type { Database } from '../../../schema/database.ts'
import { conversationItems, responseItems, responseItemUses, responses } from '../../../schema/responses.ts'
import { isPlainText } from '../../wire/page-cursor.ts'
import { contextTooLong } from '../context/context-errors.ts'
import type { Owner } from '../types.ts'

// What the functions of the store share: whose a row is, writing items in parts, and reading them in pages.

/** An item as Postgres has it. */
export interface StoredItem {
  id: string
  type: string
  role: string | null
  /** Of calls and of their outputs. */
  callId: string | null
  /** The item as JSON, its id included; null when `contentKey` says where it lies. */
  body: string | null
  contentKey: string | null
}

/** A part of an ordered list of items. */
export interface ItemPageRequest {
  limit: number
  order: 'asc' | 'desc'
  /** Id of the item that the page follows in that order; the first page when left out. */
  after?: string | null | undefined
}

export interface ItemPage {
  items: StoredItem[]
  hasMore: boolean
}

/**
 * Items of one insert statement, in bytes. They are there as text, as JSON, and as what the driver makes of it, at worst
 * four times as long: a part of it all has to be little.
 */
const LARGEST_INSERT_BYTES = 2 * 1024 * 1024
/** Bodies of one answer: the driver's limit is 64 MB, and an isolate holds an answer twice. */
const LARGEST_ANSWER_BYTES = 16 * 1024 * 1024
/** Items of one answer where a whole list is read. */
const LONGEST_ANSWER = 2_000

/** The condition that a row is the owner's. */
export function ownedBy(table: { organizationId: AnyColumn; userId: AnyColumn }, owner: Owner): SQL {
  return sql`(${table.organizationId} = ${owner.organizationId}::uuid AND ${table.userId} = ${owner.userId}::uuid)`
}

/** An id that a caller gave, as a parameter. Text that Postgres cannot hold becomes an id that no row has. */
export const idParameter = (id: string): string => (isPlainText(id) ? id : '')

/**
 * The item of an id, to be joined laterally: looked up by its key each time. Joined as a table it can be read once for
 * every id of a list whose length the planner does not know, which takes half a minute for 10,000.
 */
export const ownItem = (owner: Owner, id: SQL): SQL =>
  sql`SELECT * FROM ${responseItems} WHERE ${responseItems.id} = ${id} AND ${ownedBy(responseItems, owner)} OFFSET 0`

/** Characters of a body from which on it is a parameter of its own, and not part of a JSON text that is one more copy. */
const LARGE_BODY = 64 * 1024

/** What an item takes in a statement besides its body, at most: its ids are those of callers. */
const ITEM_BYTES = 500

/** Cuts items into statements of a bounded size, each of which is made when the one before it was used. */
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
 * Adds items that a response brings in; those that are there already stay as they are. Waits for whoever erases the
 * response, and then adds nothing: what was erased must not come back.
 * @param open the condition that the response is the owner's and still to be finished.
 */
export function insertItems(owner: Owner, open: SQL, items: readonly StoredItem[], at: number): SQL {
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
    SELECT ${owner.organizationId}::uuid, ${owner.userId}::uuid, response.id, ${instant(at)},
      entry.id, entry.type, entry.role, entry."callId", ${body}, entry."contentKey"
    FROM (SELECT id FROM ${responses} WHERE ${open} FOR KEY SHARE) AS response
    CROSS JOIN jsonb_to_recordset(${JSON.stringify(entries)}::jsonb) AS entry(
      id text, type text, role text, "callId" text, body text, "contentKey" text, large int)
    ON CONFLICT DO NOTHING`
}

const whens = (texts: readonly string[]): SQL =>
  sql.join(
    texts.map((text, index) => sql`WHEN ${sql.raw(String(index + 1))} THEN ${text}::text`),
    sql` `,
  )

/** A time in milliseconds since the epoch, as a parameter. */
export const instant = (at: number): SQL => sql`${new Date(at).toISOString()}::timestamptz`

/** The places of a response's context: its conversation up to where it ended, or else its own input and output. */
export function contextPlaces(owner: Owner, responseId: string): SQL {
  const given = sql`${responses.id} = ${idParameter(responseId)} AND ${ownedBy(responses, owner)}`
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

/** Items of a list, from some place on. */
export interface ItemSlice {
  /** A query with the columns `item_id` and `position`. */
  places: SQL
  order: 'asc' | 'desc'
  /** The place before the first one; none when left out. */
  after?: SQL | number | undefined
  limit: number
}

type SliceRow = {
  id: string
  type: string
  role: string | null
  call_id: string | null
  body: string | null
  content_key: string | null
  position: number
  found: number
}

/**
 * The query of a slice. It reads one item too many, to know whether more follow, and leaves out those with which the
 * answer would become too large; the first is always there.
 */
export function sliceQuery(owner: Owner, { places, order, after, limit }: ItemSlice): SQL {
  const direction = sql.raw(order)
  const beyond = sql.raw(order === 'asc' ? '>' : '<')
  const from = after === undefined ? sql`true` : sql`place.position ${beyond} ${after}`
  return sql`
    SELECT id, type, role, call_id, body, content_key, position::int, found::int
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
    WHERE bytes_before < ${LARGEST_ANSWER_BYTES}
    ORDER BY position ${direction}`
}

/** Items with their places, and whether the list goes on after them. */
export interface ReadSlice {
  items: Array<{ position: number; item: StoredItem }>
  hasMore: boolean
}

/** Makes a slice of the rows that its query answered. */
export function readSlice(rows: Array<Record<string, unknown>>, limit: number): ReadSlice {
  const known = rows as SliceRow[]
  const items = known.slice(0, limit).map(({ call_id, content_key, position, found: _, ...row }) => ({
    position,
    item: { ...row, callId: call_id, contentKey: content_key },
  }))
  return { items, hasMore: (known[0]?.found ?? 0) > items.length }
}

/** The query of the beginning of a list that is read to its end. */
export const beginningQuery = (owner: Owner, places: SQL): SQL =>
  sliceQuery(owner, { places, order: 'asc', limit: LONGEST_ANSWER })

/** Items of a context: more of them take more memory than an object has, however small they are. */
const MOST_ITEMS = 20_000

/**
 * Reads a list to its end, in several queries when it is long.
 * @throws ApiError invalid_request `context_length_exceeded` for more items than a context may have.
 * @param beginning what `beginningQuery` answered. @param end the place after the last one that is wanted.
 */
export async function readToEnd(
  database: Database,
  owner: Owner,
  places: SQL,
  beginning: Array<Record<string, unknown>>,
  end = Number.POSITIVE_INFINITY,
): Promise<StoredItem[]> {
  const items: StoredItem[] = []
  let slice = readSlice(beginning, LONGEST_ANSWER)
  for (;;) {
    for (const { position, item } of slice.items) if (position < end) items.push(item)
    if (items.length > MOST_ITEMS) throw contextTooLong(`${MOST_ITEMS} items`)
    const after = slice.items.at(-1)?.position
    if (!slice.hasMore || after === undefined || after >= end) return items
    const query = sliceQuery(owner, { places, order: 'asc', after, limit: LONGEST_ANSWER })
    slice = readSlice((await database.execute(query)).rows, LONGEST_ANSWER)
  }
}
