import { isNotNull, sql } from 'drizzle-orm'
import { index, integer, pgTable, primaryKey, text, unique, uuid } from 'drizzle-orm/pg-core'
import { createdAt, instant } from './columns.ts'

/**
 * The owner of a row; every query filters by both. These are not foreign keys: each would cost a look-up for every
 * item, and the ids come from an authenticated caller.
 */
const owner = () => ({
  organizationId: uuid('organization_id').notNull(),
  userId: uuid('user_id').notNull(),
})

/**
 * The organization in an index of its rows by age, for retention and the erasure of a person. As an expression: without statistics,
 * Postgres would prefer an index that begins with the column itself to the primary key.
 */
const ofOrganization = sql`(organization_id::text)`

/** An ordered list of items, which responses continue one at a time. */
export const conversations = pgTable(
  'conversations',
  {
    id: text('id').primaryKey(),
    ...owner(),
    /** The response that is in progress; null when the next one may begin. */
    writer: text('writer'),
    /** The last response that added items; null before the first, in a new fork, and when that one was deleted. */
    headResponseId: text('head_response_id'),
    nextPosition: integer('next_position').notNull().default(0),
    createdAt: instant('created_at').notNull(),
  },
  (table) => [index('conversations_created').on(ofOrganization, table.createdAt, table.id)],
)

export const responses = pgTable(
  'responses',
  {
    id: text('id').primaryKey(),
    ...owner(),
    keyId: text('key_id').notNull(),
    conversationId: text('conversation_id').references(() => conversations.id),
    /** `previous_response_id` of the request. That response may have been deleted. */
    previousResponseId: text('previous_response_id'),
    model: text('model').notNull(),
    /** Form in which the response is rendered, chosen by its request. */
    compatibility: text('compatibility', { enum: ['headgate', 'open_responses'] })
      .notNull()
      .default('headgate'),
    status: text('status', { enum: ['in_progress', 'completed', 'incomplete', 'failed'] }).notNull(),
    /** The final response object as JSON, without `output`. Text, because jsonb does not keep the bytes. */
    body: text('body'),
    /** The conversation's next position when it began, and after it had added its items: where a fork ends. */
    contextPosition: integer('context_position'),
    /** Number of the last event; 0 while it is in progress. */
    lastSequence: integer('last_sequence').notNull().default(0),
    /** Version of the data-loss prevention policies in force when it was made. */
    policyVersion: text('policy_version').notNull(),
    createdAt: instant('created_at').notNull(),
    completedAt: instant('completed_at'),
  },
  (table) => [
    // Index of the job that searches for old responses in progress that no object has. There are few of them.
    index('responses_in_progress').on(table.createdAt, table.id).where(sql`${table.status} = 'in_progress'`),
    index('responses_created').on(ofOrganization, table.createdAt, table.id),
    // For the deletion of conversations.
    index('responses_conversation').on(table.conversationId).where(isNotNull(table.conversationId)),
  ],
)

/** Input and output of responses. An item is erased together with the response that added it. */
export const responseItems = pgTable(
  'response_items',
  {
    id: text('id').primaryKey(),
    ...owner(),
    /** The response that added it; others may use it too. */
    responseId: text('response_id')
      .notNull()
      .references(() => responses.id, { onDelete: 'cascade' }),
    type: text('type').notNull(),
    role: text('role'),
    callId: text('call_id'),
    /** The item as JSON with its id; null when the content store has it. */
    body: text('body'),
    /** Key in the content store, for an item that is too large for a row. */
    contentKey: text('content_key'),
    createdAt: instant('created_at').notNull(),
  },
  (table) => [index('response_items_response').on(table.responseId)],
)

/** The input and output items of a response, in order. A response uses an item only once. */
export const responseItemUses = pgTable(
  'response_item_uses',
  {
    responseId: text('response_id')
      .notNull()
      .references(() => responses.id, { onDelete: 'cascade' }),
    direction: text('direction', { enum: ['input', 'output'] }).notNull(),
    position: integer('position').notNull(),
    itemId: text('item_id')
      .notNull()
      .references(() => responseItems.id, { onDelete: 'cascade' }),
  },
  (table) => [
    primaryKey({ columns: [table.responseId, table.direction, table.position] }),
    // The item is the first column, so that the uses of an erased item are found by this key.
    unique('response_item_uses_item').on(table.itemId, table.responseId),
  ],
)

/** The items of a conversation. Positions only grow; an erased item leaves a gap. */
export const conversationItems = pgTable(
  'conversation_items',
  {
    conversationId: text('conversation_id')
      .notNull()
      .references(() => conversations.id, { onDelete: 'cascade' }),
    position: integer('position').notNull(),
    itemId: text('item_id')
      .notNull()
      .references(() => responseItems.id, { onDelete: 'cascade' }),
    /** The response that added it, also in a fork. It may be deleted. */
    responseId: text('response_id').notNull(),
  },
  (table) => [
    primaryKey({ columns: [table.conversationId, table.position] }),
    // The item is the first column, so that the positions of an erased item are found by this key.
    unique('conversation_items_item').on(table.itemId, table.conversationId),
  ],
)

/**
 * The call that a request for approval was used for: written before the call is made, and never changed. It outlives responses
 * and conversations, since copies of the request may be anywhere.
 */
export const approvalClaims = pgTable(
  'approval_claims',
  {
    ...owner(),
    /** Id of the request for approval. */
    id: text('id').notNull(),
    responseId: text('response_id').notNull(),
    /** Id of the governed call, as in its audit record. */
    callId: text('call_id').notNull(),
    createdAt: instant('created_at').notNull(),
  },
  (table) => [primaryKey({ columns: [table.organizationId, table.userId, table.id] })],
)

/**
 * Content that no row refers to, until the content store has confirmed that it is erased. Written by the transaction that
 * deletes the rows, so that no content stays behind.
 */
export const contentErasures = pgTable(
  'content_erasures',
  {
    contentKey: text('content_key').primaryKey(),
    organizationId: uuid('organization_id').notNull(),
    createdAt: createdAt(),
  },
  (table) => [index('content_erasures_created').on(table.createdAt, table.contentKey)],
)
