import { sql } from 'drizzle-orm'
import type { Database } from '../../schema/database.ts'
import { responses } from '../../schema/responses.ts'
import type { ResponseStatus } from '../wire/responses.ts'
import { insertItems, itemParts, ownedBy, type StoredItem } from './items/items.store.ts'
import {
  type Beginning,
  type BeginningOutcome,
  beginningOutcome,
  beginningStatement,
  conversationStatements,
  deletingStatements,
  type Ending,
  endingStatement,
  isOpen,
  lockStatements,
  membershipStatements,
  releasingStatements,
  useStatement,
} from './response-changes.store.ts'
import type { Owner } from './types.ts'

// What becomes of a response in Postgres. What does not exist and what is somebody else's look alike. Nothing is tried
// again here: each change may be repeated by its caller.

type Statement = Parameters<Database['execute']>[0]

/** Runs statements in one transaction. @returns the rows of each */
async function inOneBatch(
  database: Database,
  statements: Statement[],
): Promise<Array<Array<Record<string, unknown>>>> {
  const [first, ...rest] = statements.map((statement) => database.execute(statement))
  if (first === undefined) return []
  return (await database.batch([first, ...rest])).map(({ rows }) => rows)
}

/**
 * Writes the row of a response and makes it the writer of its conversation, or neither. Of several that begin in one
 * conversation at once, one does. Beginning once more under the same id changes nothing.
 * @returns `lockedBy` names the response that is writing; `moved` says that the conversation has grown since its context
 *   was read (only where a position was given); `not_found` means the conversation, or the response to fork.
 */
export async function beginResponse(
  database: Database,
  owner: Owner,
  begin: Beginning,
): Promise<'begun' | 'moved' | 'not_found' | { lockedBy: string }> {
  const { id, conversation } = begin
  const results = await inOneBatch(database, [
    ...conversationStatements(owner, begin),
    beginningStatement(owner, begin),
    beginningOutcome(owner, begin),
  ])
  const outcome = results.at(-1)?.[0] as BeginningOutcome | undefined
  if (outcome?.begun) return 'begun'
  if (outcome === undefined || outcome.next_position === null) return 'not_found'
  if (outcome.writer !== null && outcome.writer !== id) return { lockedBy: outcome.writer }
  const expected = conversation?.position
  return expected !== undefined && expected !== outcome.next_position ? 'moved' : 'not_found'
}

/**
 * Writes how a response ended, with its items, and adds those to its conversation when it was completed or is
 * incomplete. Many or large items go ahead in statements of their own, of which nobody sees anything before the rest is
 * written in one transaction. Doing it again changes nothing, and so does another end after the first.
 * @returns the status that the response has now; null when there is none, for instance because it was deleted. Content
 *   that lies elsewhere is then the caller's to erase.
 */
export async function finishResponse(
  database: Database,
  owner: Owner,
  final: Ending,
): Promise<ResponseStatus | null> {
  const open = isOpen(owner, final)
  const insert = (items: StoredItem[]) => insertItems(owner, open, items, final.completedAt)
  let last: StoredItem[] = []
  for (const part of itemParts(bothOf(final))) {
    if (last.length > 0) await database.execute(insert(last))
    last = part
  }
  const results = await inOneBatch(database, [
    ...lockStatements(owner, final),
    ...(last.length > 0 ? [insert(last)] : []),
    useStatement(owner, final),
    ...membershipStatements(owner, final),
    endingStatement(owner, final),
    sql`SELECT status FROM ${responses} WHERE ${responses.id} = ${final.id} AND ${ownedBy(responses, owner)}`,
  ])
  const row = results.at(-1)?.[0] as { status: ResponseStatus } | undefined
  return row?.status ?? null
}

function* bothOf({ inputItems, outputItems }: Ending): Generator<StoredItem> {
  yield* inputItems
  yield* outputItems
}

/**
 * Whether Postgres looked at a statement and will never take it: data that it cannot hold, or that breaks a constraint
 * (https://www.postgresql.org/docs/current/errcodes-appendix.html, classes 22 and 23).
 */
export function isRefusedData(error: unknown): boolean {
  if (!(error instanceof Error)) return false
  const { code } = error as Error & { code?: unknown }
  return (typeof code === 'string' && /^2[23][0-9A-Z]{3}$/.test(code)) || isRefusedData(error.cause)
}

/**
 * Takes back a beginning: what is still in progress under the id is gone, and the conversation is free again. A response
 * that has ended stays as it is.
 * @param conversationId null when it was to have none.
 */
export async function releaseConversation(
  database: Database,
  owner: Owner,
  conversationId: string | null,
  responseId: string,
): Promise<void> {
  await inOneBatch(database, releasingStatements(owner, conversationId, responseId))
}

/**
 * Erases a response and the items that it brought in, also where other responses use them. Items of others that it only
 * referred to stay.
 * @returns where content of its items lies that the caller has to erase; null when there is no such response.
 */
export async function deleteResponse(
  database: Database,
  owner: Owner,
  id: string,
): Promise<{ contentKeys: string[] } | null> {
  const results = await inOneBatch(database, deletingStatements(owner, id))
  const [keys, deleted] = results.slice(-2)
  if (!deleted?.length) return null
  return { contentKeys: (keys ?? []).map((row) => String(row.content_key)) }
}
