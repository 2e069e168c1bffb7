/** How long each part of a stream may take, in milliseconds. */

export interface RelayTimes {
  /** After the upstream's headers, when the answer starts without an event. */
  commit: number
  heartbeat: number
  firstEvent: number
  betweenEvents: number
}

/** A caller that takes nothing for so long holds credits and an upstream for nothing. */
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
