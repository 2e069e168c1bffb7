import { StoredEvents } from '../log/stored-events.ts'
import type { UnflushedEvents } from '../log/unflushed-events.ts'
import type { CommitRows, Frames } from '../storage/commit-rows.ts'
import type { LiveParts } from '../storage/live-parts.ts'
import type { Slice } from '../storage/slice.ts'

/** A response that has to be continued. */
interface LiveResponse extends Slice {
  number: number
  live: LiveParts
  /** The last commit before the head in its row. */
  since: number
}

/** What commits have of a response that its own rows do not have. */
interface Recovered {
  response: LiveResponse
  stored: StoredEvents
  /** Number of the last event that is in its own rows or in `frames`. */
  last: number
  frames: Frames[]
  head: string | null
}

/**
 * Writes what commits have of the live responses into rows of their own, and drops the commits: all of it, or nothing. The
 * restarted object begins with the storage that an object without commits has.
 * @throws the error of SQLite.
 */
export function recoverCommits(
  storage: DurableObjectStorage,
  commits: CommitRows,
  live: readonly LiveResponse[],
  unflushed: UnflushedEvents,
): void {
  if (!commits.exist) return
  const byNumber = new Map(live.map((response) => [response.number, recovered(response, unflushed)]))
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
    for (const { response, stored, frames, head } of byNumber.values()) {
      if (frames.length > 0) stored.write(frames, false)
      if (head !== null) response.live.writeHead(head)
    }
    commits.drop()
  })
}

function recovered(response: LiveResponse, unflushed: UnflushedEvents): Recovered {
  const stored = new StoredEvents(response, unflushed)
  return { response, stored, last: stored.lastSequence, frames: [], head: null }
}
