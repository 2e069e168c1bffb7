/** Times of a stream, in milliseconds. */
export interface RelayTimes {
  /** After the upstream's headers: the answer then starts without an event. */
  commit: number
  heartbeat: number
  firstEvent: number
  betweenEvents: number
}

/** A caller that takes nothing for this long counts as gone: it would hold credits and an upstream. */
export const LONGEST_UNTAKEN_MS = 5 * 60_000

export function relayTimesOf(configuration: {
  STREAM_COMMIT_MS: number
  STREAM_HEARTBEAT_MS: number
  UPSTREAM_FIRST_EVENT_TIMEOUT_MS: number
  UPSTREAM_EVENT_TIMEOUT_MS: number
}): RelayTimes {
  return {
    commit: configuration.STREAM_COMMIT_MS,
    heartbeat: configuration.STREAM_HEARTBEAT_MS,
    firstEvent: configuration.UPSTREAM_FIRST_EVENT_TIMEOUT_MS,
    betweenEvents: configuration.UPSTREAM_EVENT_TIMEOUT_MS,
  }
}
