import { randomUUID } from 'node:crypto'
import { sql } from 'drizzle-orm'
import type { Database } from '../../../schema/database.ts'
import { newItemId } from '../../../src/responses/items/types/item-types.ts'
import { newConversationId } from '../../../src/responses/model/response-ids.ts'
import type { StoredItem } from '../../../src/responses/model/stored-items.ts'
import type { Owner } from '../../../src/responses/model/types.ts'
import { beginResponse } from '../../../src/responses/store/begin-response.store.ts'
import { finishResponse } from '../../../src/responses/store/finish-response.store.ts'

export type Begin = Parameters<typeof beginResponse>[2]
export type Final = Parameters<typeof finishResponse>[2]

/** A moment at which responses of the tests are made. */
export const NOW = Date.UTC(2026, 4, 1, 12, 0, 0, 123)

export const someOwner = (values: Partial<Owner> = {}): Owner => ({
  organizationId: randomUUID(),
  userId: randomUUID(),
  ...values,
})

let made = 0
export const responseId = (): string => `resp_test${made++}`

export function message(text: string, values: Partial<StoredItem> = {}): StoredItem {
  const id = newItemId('message')
  const body = JSON.stringify({ id, type: 'message', role: 'user', content: text })
  return { id, type: 'message', role: 'user', callId: null, body, contentKey: null, ...values }
}

export const beginOf = (values: Partial<Begin> = {}): Begin => ({
  id: responseId(),
  keyId: 'key',
  model: 'scripted-chat',
  compatibility: 'headgate',
  createdAt: NOW,
  conversation: null,
  previousResponseId: null,
  policyVersion: 'policy-1',
  ...values,
})

export const finalOf = (begin: Begin, values: Partial<Final> = {}): Final => ({
  id: begin.id,
  status: 'completed',
  body: JSON.stringify({ id: begin.id, status: values.status ?? 'completed' }),
  completedAt: NOW + 1_000,
  lastSequence: 9,
  inputItems: [],
  outputItems: [],
  usedItemIds: [...(values.inputItems ?? [])].map(({ id }) => id),
  conversationId: begin.conversation?.id ?? null,
  ...values,
})

/** A response that has ended, in a conversation of its own unless told otherwise. */
export async function endedResponse(
  database: Database,
  owner: Owner,
  begin: Partial<Begin> = {},
  final: Partial<Final> = {},
) {
  const conversation = { id: newConversationId(), creates: true }
  const begun = beginOf({ conversation, ...begin })
  const outcome = await beginResponse(database, owner, begun)
  if (outcome !== 'begun') throw new Error(`did not begin: ${JSON.stringify(outcome)}`)
  const input = [message('question')]
  const output = [message('answer', { role: 'assistant' })]
  const ended = finalOf(begun, { inputItems: input, outputItems: output, ...final })
  const status = await finishResponse(database, owner, ended)
  return { id: begun.id, conversationId: begun.conversation?.id ?? '', begun, ended, input, output, status }
}

/** Rows of each table of responses, for one owner. */
export async function rowCounts(database: Database, owner: Owner): Promise<Record<string, number>> {
  const whose = sql`organization_id = ${owner.organizationId} AND user_id = ${owner.userId}`
  const { rows } = await database.execute<Record<string, number>>(sql`SELECT
    (SELECT count(*)::int FROM conversations WHERE ${whose}) AS conversations,
    (SELECT count(*)::int FROM responses WHERE ${whose}) AS responses,
    (SELECT count(*)::int FROM response_items WHERE ${whose}) AS items,
    (SELECT count(*)::int FROM response_item_uses WHERE response_id IN
      (SELECT id FROM responses WHERE ${whose})) AS uses,
    (SELECT count(*)::int FROM conversation_items WHERE conversation_id IN
      (SELECT id FROM conversations WHERE ${whose})) AS places`)
  return rows[0] ?? {}
}

export const bodiesOf = (items: ReadonlyArray<StoredItem> | undefined): unknown[] =>
  (items ?? []).map(({ body }) => JSON.parse(body ?? 'null').content)
