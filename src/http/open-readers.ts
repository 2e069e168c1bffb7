import { BoundedMap } from '../lib/bounded-map.ts'

/** Readers of most users at a time; others are forgotten, which only admits more. */
const MOST_USERS = 10_000
/** A reader that has not been seen for so long has left: the platform may end a request without a notice. */
const FORGOTTEN_AFTER_MS = 60_000

/** Counts the open streams of each user in this isolate. */
export class OpenReaders {
  readonly #most: number
  /** For each user: when each stream was last seen, in milliseconds since the epoch. */
  readonly #seen = new BoundedMap<string, Map<symbol, number>>(MOST_USERS)

  /** @param most streams of one user. */
  constructor(most: number) {
    this.#most = most
  }

  /** Counts a stream. @returns null when the user has as many as allowed. */
  open(user: string, now: number): { seen(at: number): void; close(): void } | null {
    const streams = this.#seen.get(user) ?? new Map<symbol, number>()
    for (const [id, at] of streams) if (now - at > FORGOTTEN_AFTER_MS) streams.delete(id)
    if (streams.size >= this.#most) return null
    const id = Symbol()
    streams.set(id, now)
    this.#seen.set(user, streams)
    return {
      seen: (at) => void streams.set(id, at),
      close: () => {
        streams.delete(id)
        if (streams.size === 0 && this.#seen.get(user) === streams) this.#seen.delete(user)
      },
    }
  }
}
