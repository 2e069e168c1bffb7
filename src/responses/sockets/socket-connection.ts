import type { CallerCredential } from '../../identity/principal.ts'
import type { Compatibility } from '../../wire/compatibility.ts'
import type { Owner } from '../model/types.ts'

/** The opening request of a connection. The key itself is not part of it. */
export interface ConnectionOpening {
  owner: Owner
  credential: CallerCredential
  /** Address of the caller; null when unknown. */
  ip: string | null
  /** Headers of the caller that calls of models use. */
  headers: Array<[name: string, value: string]>
  /** The form that the upgrade selects; null for that of the caller's key. */
  compatibility: Compatibility | null
  /** `regionOf` the upgrade; absent for a connection that an earlier release has opened. */
  region?: string | undefined
}

/** A response whose events are being sent. */
export interface FollowedResponse {
  responseId: string
  /** Number of the last event that was sent. */
  after: number
  /** Whether the response continues `Connection.last`, which a failure evicts. */
  continues: boolean
  /** Whether the object holds its context for this connection. */
  held: boolean
  /** The form of its events. */
  compatibility: Compatibility
}

/** The state of a connection. It is attached to the socket, so that it survives hibernation. */
export interface SocketConnection extends ConnectionOpening {
  /** Milliseconds since the epoch. */
  openedAt: number
  /** Id of the last response, if it is not stored: this connection may continue it. */
  last: string | null
  running: FollowedResponse | null
}

/** Bytes of the headers of a connection. The platform attaches 16 KB. */
export const MOST_HEADER_BYTES = 8 * 1024

/** @param now milliseconds since the epoch. */
export const newSocketConnection = (opening: ConnectionOpening, now: number): SocketConnection => ({
  ...opening,
  openedAt: now,
  last: null,
  running: null,
})

export const socketConnection = (socket: WebSocket): SocketConnection =>
  socket.deserializeAttachment() as SocketConnection

/** Stores changes of a connection. */
export function changeSocketConnection(socket: WebSocket, change: Partial<SocketConnection>): void {
  socket.serializeAttachment({ ...socketConnection(socket), ...change })
}

/** Whether messages can still be sent. */
export const isOpen = (socket: WebSocket): boolean => socket.readyState === WebSocket.OPEN

/** Close codes (RFC 6455, 7.4). Official clients reconnect by themselves after the first and the last. */
export const CLOSE_CODES = {
  /** The connection has reached its age limit. */
  goingAway: 1001,
  /** The caller may not call any more. */
  policyViolation: 1008,
  /** The client does not read what it is sent. */
  tryAgainLater: 1013,
} as const
