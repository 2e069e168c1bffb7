import { EventSegments } from '../log/event-segments.ts'
import type { HeldSegments } from '../log/held-segments.ts'
import type { CommitRows, Frames } from '../storage/commit-rows.ts'
import type { PooledResponse } from './pooled-response.ts'

/** What commits have of a response that its own rows do not have. */
interface Recovered {
  response: PooledResponse
  segments: EventSegments
  /** Number of the last event that is in its own rows or in `frames`. */
  last: number
  frames: Frames[]
  head: string | null
}

/**
 * Writes what commits have of the live responses into rows of their own, and drops the commits: all of it, or nothing. The
 * restarted object begins with the storage that an object without commits has.
 * @param live the responses that have to be continued. @throws the error of SQLite.
 */
export function recoverCommits(
  storage: DurableObjectStorage,
  commits: CommitRows,
  live: readonly PooledResponse[],
  held: HeldSegments,
): void {
  if (!commits.exist) return
  const byNumber = new Map(live.map((response) => [response.number, recovered(response, held)]))
  for (const { sequence, parts } of commits.commits()) {
    for (const { number, frames, head } of parts) {
      const found = byNumber.get(number)
      if (!found) continue
      if (head !== null && sequence > found.response.since) found.head = head
      // What its own rows have, a commit may still have.
      if (frames && frames.first > found.last) {
        found.frames.push(frames)
        found.last = frames.last
      }
    }
  }
  storage.transactionSync(() => {
    for (const { response, segments, frames, head } of byNumber.values()) {
      if (frames.length > 0) segments.write(frames, false)
      if (head !== null) response.live.writeHead(head)
    }
    commits.drop()
  })
}

function recovered(response: PooledResponse, held: HeldSegments): Recovered {
  const segments = new EventSegments(response, held)
  return { response, segments, last: segments.lastSequence, frames: [], head: null }
}
