import { and, type SQL, sql } from 'drizzle-orm'
import {
  contentErasures,
  conversationItems,
  conversations,
  responseItems,
  responseItemUses,
  responses,
} from '../../schema/responses.ts'
import type { ResponseStatus } from '../wire/responses.ts'
import {
  contextPlaces,
  idParameter,
  instant,
  ownedBy,
  ownItem,
  type StoredItem,
} from './items/items.store.ts'
import type { Owner } from './types.ts'

// The statements of each change of a response, in the order in which one batch runs them. Rows are locked in one order
// everywhere (response, conversation, items), so that changes wait for each other and never in a circle.

/** What a response becomes; from there nothing leads on. */
const NEXT_STATUS: Readonly<Record<ResponseStatus, readonly ResponseStatus[]>> = {
  in_progress: ['completed', 'incomplete', 'failed'],
  completed: [],
  incomplete: [],
  failed: [],
}

/** Ends that leave something in the conversation. */
const ADDING: readonly ResponseStatus[] = ['completed', 'incomplete']

/** What a response begins with. */
export interface Beginning {
  id: string
  keyId: string
  model: string
  /** Milliseconds since the epoch. */
  createdAt: number
  /**
   * `creates`: the id is a fresh one. `position`: as `nextPosition` of the context that was read; when the
   * conversation has grown since then, the response does not begin.
   */
  conversation: { id: string; creates: boolean; position?: number | undefined } | null
  /** The response whose context a conversation that is created starts with. */
  forkOf?: string | null | undefined
  previousResponseId: string | null
  policyVersion: string
}

/** What a response ends with. */
export interface Ending {
  id: string
  status: Exclude<ResponseStatus, 'in_progress'>
  /** The response object as JSON, without `output`. */
  body: string
  /** Milliseconds since the epoch. */
  completedAt: number
  lastSequence: number
  /** Items that came with the request; not those that it only refers to. Read once, as they are written. */
  inputItems: Iterable<StoredItem>
  outputItems: readonly StoredItem[]
  /** The whole input in order, new items and references. */
  usedItemIds: readonly string[]
  conversationId: string | null
}

const isResponse = (owner: Owner, id: string): SQL =>
  sql`(${responses.id} = ${idParameter(id)} AND ${ownedBy(responses, owner)})`

const isConversation = (owner: Owner, id: string): SQL =>
  sql`(${conversations.id} = ${idParameter(id)} AND ${ownedBy(conversations, owner)})`

/** Of anybody: a repeated beginning must not lock a second time, not even after the response has ended. */
const isNew = (id: string): SQL =>
  sql`NOT EXISTS (SELECT FROM ${responses} WHERE ${responses.id} = ${idParameter(id)})`

/** Makes the conversation, locked, or locks the one there is if nobody writes in it. */
export function conversationStatements(owner: Owner, begin: Beginning): SQL[] {
  const { conversation, id } = begin
  if (conversation === null) return []
  if (conversation.creates) return creatingStatements(owner, begin, conversation.id)
  const unchanged =
    conversation.position === undefined ? sql`true` : sql`next_position = ${conversation.position}`
  const known = isConversation(owner, conversation.id)
  return [
    sql`SELECT 1 FROM ${conversations} WHERE ${known} FOR NO KEY UPDATE`,
    sql`UPDATE ${conversations} SET writer = ${id}
      WHERE ${and(known, isNew(id), unchanged)} AND ${conversations.writer} IS NULL`,
  ]
}

function creatingStatements(owner: Owner, { id, forkOf, createdAt }: Beginning, made: string): SQL[] {
  const row = sql`${made}::text, ${owner.organizationId}::uuid, ${owner.userId}::uuid, ${id}::text, ${instant(createdAt)}`
  const columns = sql`id, organization_id, user_id, writer, created_at, next_position`
  if (!forkOf) {
    return [
      sql`INSERT INTO ${conversations} (${columns}) SELECT ${row}, 0 WHERE ${isNew(id)} ON CONFLICT DO NOTHING`,
    ]
  }
  const places = contextPlaces(owner, forkOf)
  return [
    // Whoever erases one of them is waited for, so that none is copied that is gone by then.
    sql`SELECT count(*) FROM (SELECT item.id FROM (${places}) AS place
      CROSS JOIN LATERAL (${ownItem(owner, sql`place.item_id`)} FOR KEY SHARE) AS item) AS kept`,
    sql`INSERT INTO ${conversations} (${columns})
      SELECT ${row}, (SELECT count(*) FROM (${places}) AS place)
      FROM ${responses} WHERE ${and(isResponse(owner, forkOf), isNew(id))} ON CONFLICT DO NOTHING`,
    sql`INSERT INTO ${conversationItems} (conversation_id, position, item_id, response_id)
      SELECT ${conversations.id}, row_number() OVER (ORDER BY place.position) - 1, place.item_id, place.response_id
      FROM ${conversations} CROSS JOIN (${places}) AS place
      WHERE ${and(isConversation(owner, made), isNew(id))} AND ${conversations.writer} = ${id}
      ON CONFLICT DO NOTHING`,
  ]
}

/** The row of a response: only where the conversation is its own to write in. */
export function beginningStatement(owner: Owner, begin: Beginning): SQL {
  const { id, keyId, model, conversation, previousResponseId, policyVersion, createdAt } = begin
  const row = sql`${id}::text, ${owner.organizationId}::uuid, ${owner.userId}::uuid, ${keyId}::text,
    ${previousResponseId}::text, ${model}::text, 'in_progress', ${policyVersion}::text, ${instant(createdAt)}`
  const locked = conversation && isConversation(owner, conversation.id)
  return sql`INSERT INTO ${responses} (id, organization_id, user_id, key_id, previous_response_id, model, status,
      policy_version, created_at, conversation_id, context_position)
    SELECT ${row}, ${
      locked === null
        ? sql`NULL, NULL`
        : sql`${conversations.id}, ${conversations.nextPosition} FROM ${conversations}
            WHERE ${locked} AND ${conversations.writer} = ${id}`
    } ON CONFLICT DO NOTHING`
}

/** How a beginning came out. */
export interface BeginningOutcome extends Record<string, unknown> {
  begun: boolean
  writer: string | null
  next_position: number | null
}

export function beginningOutcome(owner: Owner, { id, conversation }: Beginning): SQL {
  const known = conversation === null ? sql`false` : isConversation(owner, conversation.id)
  return sql`SELECT EXISTS (SELECT FROM ${responses} WHERE ${isResponse(owner, id)}) AS begun,
    (SELECT writer FROM ${conversations} WHERE ${known}) AS writer,
    (SELECT next_position FROM ${conversations} WHERE ${known}) AS next_position`
}

/** The condition that a response is the owner's and may still become this. */
export function isOpen(owner: Owner, { id, status }: Pick<Ending, 'id' | 'status'>): SQL {
  const from = Object.entries(NEXT_STATUS).flatMap(([state, next]) => (next.includes(status) ? [state] : []))
  const states = sql.join(
    from.map((state) => sql`${state}`),
    sql`, `,
  )
  return sql`(${isResponse(owner, id)} AND ${responses.status} IN (${states}))`
}

/** Keeps others from the rows that an ending changes, so that each statement after it sees what the others do. */
export function lockStatements(owner: Owner, { id, conversationId }: Ending): SQL[] {
  const response = sql`SELECT 1 FROM ${responses} WHERE ${isResponse(owner, id)} FOR NO KEY UPDATE`
  if (conversationId === null) return [response]
  const known = isConversation(owner, conversationId)
  return [response, sql`SELECT 1 FROM ${conversations} WHERE ${known} FOR NO KEY UPDATE`]
}

/**
 * Frees the conversation of a response that is in progress, and removes its row. The conversation comes first, as it does
 * when the response begins: of the two, one happens after the other.
 */
export function releasingStatements(owner: Owner, conversationId: string | null, id: string): SQL[] {
  const given = sql`(${isResponse(owner, id)} AND status = 'in_progress')`
  const rows = [
    sql`SELECT 1 FROM ${responses} WHERE ${given} FOR UPDATE`,
    erasureStatement(owner, given),
    sql`DELETE FROM ${responses} WHERE ${given}`,
  ]
  if (conversationId === null) return rows
  const known = isConversation(owner, conversationId)
  return [
    sql`SELECT 1 FROM ${conversations} WHERE ${known} FOR NO KEY UPDATE`,
    sql`UPDATE ${conversations} SET writer = NULL WHERE ${known} AND writer = ${idParameter(id)}`,
    ...rows,
  ]
}

/** What the response was given and made, once its items are there. References to what was erased meanwhile are left out. */
export function useStatement(owner: Owner, ending: Ending): SQL {
  const of = (direction: string, ids: Iterable<string>) =>
    [...new Set(ids)].map((id, position) => ({ direction, position, id: idParameter(id) }))
  const outputIds = ending.outputItems.map(({ id }) => id)
  const uses = JSON.stringify([...of('input', ending.usedItemIds), ...of('output', outputIds)])
  return sql`INSERT INTO ${responseItemUses} (response_id, direction, position, item_id)
    SELECT response.id, used.direction, used.position, item.id
    FROM (SELECT id FROM ${responses} WHERE ${isOpen(owner, ending)}) AS response
    CROSS JOIN jsonb_to_recordset(${uses}::jsonb) AS used(direction text, position int, id text)
    CROSS JOIN LATERAL (${ownItem(owner, sql`used.id`)} FOR KEY SHARE) AS item
    ON CONFLICT DO NOTHING`
}

/** Adds what was used to the end of the conversation, but for items that are in it already, and lets the next one write. */
export function membershipStatements(owner: Owner, ending: Ending): SQL[] {
  const { id, status, conversationId } = ending
  if (conversationId === null) return []
  const known = sql`${isConversation(owner, conversationId)}
    AND EXISTS (SELECT FROM ${responses} WHERE ${isOpen(owner, ending)} AND conversation_id = ${conversationId})`
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

export function endingStatement(owner: Owner, ending: Ending): SQL {
  const { status, body, completedAt, lastSequence } = ending
  const position = ADDING.includes(status)
    ? sql`(SELECT next_position FROM ${conversations} WHERE ${conversations.id} = ${responses.conversationId})`
    : sql`context_position`
  return sql`UPDATE ${responses} SET status = ${status}, body = ${body}, completed_at = ${instant(completedAt)},
      last_sequence = ${lastSequence}, context_position = ${position}
    WHERE ${isOpen(owner, ending)}`
}

/**
 * Erases a response with the items that it brought in, wherever they are used, and takes the items that it only referred
 * to out of where it had put them. The last statement but one answers the content keys, the last one the id.
 */
export function deletingStatements(owner: Owner, id: string): SQL[] {
  const given = isResponse(owner, id)
  const { itemId, responseId } = conversationItems
  return [
    sql`SELECT 1 FROM ${responses} WHERE ${given} FOR UPDATE`,
    sql`UPDATE ${conversations} SET writer = nullif(writer, ${responses.id}),
        head_response_id = nullif(head_response_id, ${responses.id})
      FROM ${responses} WHERE ${given} AND ${conversations.id} = ${responses.conversationId}`,
    sql`DELETE FROM ${conversationItems} USING ${responseItemUses}, ${responses}
      WHERE ${given} AND ${responseItemUses.responseId} = ${responses.id}
        AND ${itemId} = ${responseItemUses.itemId} AND ${responseId} = ${responses.id}`,
    erasureStatement(owner, given),
    sql`DELETE FROM ${responses} WHERE ${given} RETURNING id`,
  ]
}

/**
 * Notes the content of the items that go with a response, for as long as the content store may have it. The response is
 * locked by a statement before, since items go ahead of what is written when it ends.
 * @param given the condition that the response is the one to be deleted.
 */
function erasureStatement({ organizationId }: Owner, given: SQL): SQL {
  return sql`INSERT INTO ${contentErasures} (content_key, organization_id)
    SELECT content_key, ${organizationId}::uuid FROM ${responseItems}
    WHERE content_key IS NOT NULL AND response_id IN (SELECT id FROM ${responses} WHERE ${given})
    ON CONFLICT DO NOTHING RETURNING content_key`
}
