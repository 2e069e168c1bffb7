/** Times of a stream, in milliseconds. */
export interface RelayTimes {
  /** Time after the upstream's headers: the answer then starts without an event. */
  commit: number
  heartbeat: number
  firstEvent: number
  betweenEvents: number
}

/** A caller that takes nothing for this long counts as gone: it would hold credits and an upstream. */
export const LONGEST_UNREAD_MS = 5 * 60_000
