import { errorText, logEvent } from '../../lib/log.ts'
import type { ResponseDeps } from '../response-deps.ts'
import { releaseConversation } from './begin-response.store.ts'
import { selectUnfinished, type UnfinishedResponse } from './left-responses.store.ts'

type LeftDeps = Pick<ResponseDeps, 'database' | 'clock' | 'responseObject'>

/** A younger row may belong to a start or a rollback that is under way. */
const SHORTEST_AGE_MS = 600_000
const PAGE = 100
/** Pages of one run, so that it ends before the next one begins. */
const MOST_PAGES = 20
const ASKED_TOGETHER = 10

/**
 * Deletes rows of responses that no object has, with the locks of their conversations: their statement reached Postgres after
 * their rollback. A response that has ended, but is not written yet, is written. Called by a schedule; concurrent calls are
 * safe. A conversation is also released by the next response that begins in it.
 * @throws what Postgres throws. An object that does not answer is asked again by the next run.
 */
export async function releaseLeftResponses(deps: LeftDeps): Promise<void> {
  const before = deps.clock() - SHORTEST_AGE_MS
  let last: UnfinishedResponse | null = null
  let released = 0
  for (let page = 0; page < MOST_PAGES; page++) {
    const rows: UnfinishedResponse[] = await selectUnfinished(deps.database, before, last, PAGE)
    for (let at = 0; at < rows.length; at += ASKED_TOGETHER) {
      const left = await Promise.all(rows.slice(at, at + ASKED_TOGETHER).map((row) => releaseLeft(deps, row)))
      released += left.filter(Boolean).length
    }
    last = rows.at(-1) ?? null
    if (rows.length < PAGE) break
  }
  if (released > 0) logEvent('warn', 'left_responses_released', { count: released })
}

/** @returns whether no object had the response. */
async function releaseLeft(
  deps: LeftDeps,
  { id, owner, conversationId, createdAt: begunUntil }: UnfinishedResponse,
): Promise<boolean> {
  try {
    if ((await deps.responseObject(owner.organizationId, id).settle(owner)) !== 'absent') return false
    await releaseConversation(deps.database, owner, { id, conversationId, begunUntil })
    return true
  } catch (error) {
    logEvent('warn', 'left_response_not_released', { error: errorText(error) })
    return false
  }
}
