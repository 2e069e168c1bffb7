import { index, integer, pgTable, primaryKey, text, timestamp, unique, uuid } from 'drizzle-orm/pg-core'

const instant = (name: string) => timestamp(name, { withTimezone: true })

/**
 * Whose a row is; every query filters by both. Not foreign keys: each would cost a look-up for every item, and the
 * ids come from a caller who was authenticated.
 */
const owner = () => ({
  organizationId: uuid('organization_id').notNull(),
  userId: uuid('user_id').notNull(),
})

/** Items that belong together in one order, which responses continue one at a time. */
export const conversations = pgTable('conversations', {
  id: text('id').primaryKey(),
  ...owner(),
  /** The response that is writing, null when the next one may. */
  writer: text('writer'),
  /** The response that was the last to add to it; null before the first, in a fresh fork, and when that one was deleted. */
  headResponseId: text('head_response_id'),
  nextPosition: integer('next_position').notNull().default(0),
  createdAt: instant('created_at').notNull(),
})

export const responses = pgTable('responses', {
  id: text('id').primaryKey(),
  ...owner(),
  keyId: text('key_id').notNull(),
  conversationId: text('conversation_id').references(() => conversations.id),
  /** As the caller gave it: the response it names may be gone. */
  previousResponseId: text('previous_response_id'),
  model: text('model').notNull(),
  status: text('status', { enum: ['in_progress', 'completed', 'incomplete', 'failed'] }).notNull(),
  /** The final response object as JSON, without `output`. Text, not jsonb: its bytes come back as they were. */
  body: text('body'),
  /** The conversation's next position when it began, and when it had ended and added its items: where a fork cuts. */
  contextPosition: integer('context_position'),
  /** Number of the last event; 0 while it is in progress. */
  lastSequence: integer('last_sequence').notNull().default(0),
  /** Version of the data-loss prevention policies that it was made under. */
  policyVersion: text('policy_version').notNull(),
  createdAt: instant('created_at').notNull(),
  completedAt: instant('completed_at'),
})

/** Input and output of responses. An item is erased together with the response that brought it in. */
export const responseItems = pgTable(
  'response_items',
  {
    id: text('id').primaryKey(),
    ...owner(),
    /** The response that brought it in; others may use it as well. */
    responseId: text('response_id')
      .notNull()
      .references(() => responses.id, { onDelete: 'cascade' }),
    type: text('type').notNull(),
    role: text('role'),
    callId: text('call_id'),
    /** The item as JSON, its id included; null when the content lies elsewhere. */
    body: text('body'),
    /** Where content lies that is too large for a row. */
    contentKey: text('content_key'),
    createdAt: instant('created_at').notNull(),
  },
  (table) => [index('response_items_response').on(table.responseId)],
)

/** Which items a response was given and which it made, in order. An item is used once by a response. */
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
    // The item first: this is also how the uses of an erased item are found.
    unique('response_item_uses_item').on(table.itemId, table.responseId),
  ],
)

/** The order of a conversation. Positions only grow; an erased item leaves a gap. */
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
    /** The response that put it here, also in a fork. It may be gone. */
    responseId: text('response_id').notNull(),
  },
  (table) => [
    primaryKey({ columns: [table.conversationId, table.position] }),
    // The item first: this is also how the places of an erased item are found.
    unique('conversation_items_item').on(table.itemId, table.conversationId),
  ],
)

/**
 * Content that no row names any more, until the content store is known to have erased it. Written by the transaction
 * that deletes the rows, so that nothing is left behind however that went on.
 */
export const contentErasures = pgTable('content_erasures', {
  contentKey: text('content_key').primaryKey(),
  organizationId: uuid('organization_id').notNull(),
  createdAt: instant('created_at').notNull().defaultNow(),
})
