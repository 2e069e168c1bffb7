/** Times of a stream, in milliseconds. */
export interface RelayTimes {
  /** Time after the upstream's headers: the answer then starts without an event. */
  commit: number
  heartbeat: number
  firstEvent: number
  betweenEvents: number
  /** Longest time that events which have arrived wait for others. */
  gather: number
}

/** A caller that takes nothing for this long counts as gone: it would hold credits and an upstream. */
export const LONGEST_UNREAD_MS = 5 * 60_000

/** For a caller over HTTP: a delay this short is not noticed. */
export const GATHER_MS = 10
/** For the object of a response: its events wait up to 100 ms for the segment that is stored (`responses/log`). */
export const GATHER_TURN_MS = 50
