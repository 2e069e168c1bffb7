import { ApiError } from '../../lib/api-error.ts'
import type { Owner } from '../model/types.ts'
import type { ResponseDeps } from '../response-deps.ts'
import { releaseConversation } from '../store/begin-response.store.ts'

/** A start of a response, in its object. */
export interface OwnStart {
  responseId: string
  /** Milliseconds since the epoch. */
  createdAt: number
}

/** A conversation has one writer at a time. */
export const conversationLocked = () =>
  new ApiError(
    'invalid_request',
    'Another response is being made in this conversation. Try again when it has ended.',
    { code: 'conversation_locked' },
  )

/**
 * Releases a conversation from a response that does not run any more. One that has ended, but is not written yet, is written
 * first. The row of one that no object has is deleted: its statement reached Postgres after its rollback.
 * @param writer the response that has locked the conversation. @param conversationId null if only the writer's row names it.
 * @param start that of the calling object: if its response is the writer, an earlier start has left the lock.
 * @returns false if the conversation stays locked. @throws what Postgres and the writer's object throw.
 */
export async function releaseWriter(
  deps: Pick<ResponseDeps, 'database' | 'clock' | 'responseObject'>,
  owner: Owner,
  writer: string,
  conversationId: string | null,
  start: OwnStart | null,
): Promise<boolean> {
  const isOwn = writer === start?.responseId
  // The time of the release would be wrong: a start that follows the answer, or the end of this one, keeps its row.
  const begunUntil = isOwn ? start.createdAt : deps.clock()
  const state = isOwn ? 'absent' : await deps.responseObject(owner.organizationId, writer).settle(owner)
  if (state === 'absent') {
    await releaseConversation(deps.database, owner, { id: writer, conversationId, begunUntil })
  }
  return state === 'settled' || state === 'absent'
}
