import { type CallIdentity, openingOf, refusalOutcome } from '../../calls/governed-call.ts'
import { refuseRequest } from '../../calls/refuse-request.ts'
import { keyIdOf, type Principal } from '../../identity/principal.ts'
import { ApiError, invalidRequest } from '../../lib/api-error.ts'
import { earliest } from '../../lib/clock.ts'
import { newId } from '../../lib/ids.ts'
import { errorText, logEvent } from '../../lib/log.ts'
import { callerError, errorEvent } from './error-event.ts'
import { KnownPrincipals } from './known-principals.ts'
import {
  CLOSE_CODES,
  type ConnectionOpening,
  isOpen,
  newSocketConnection,
  type SocketConnection,
  socketConnection,
} from './socket-connection.ts'
import type { SocketDeps, SocketHost } from './socket-deps.ts'
import { SocketResponses } from './socket-responses.ts'

/** Interval of the alarm while events are sent. It restarts an object that the platform has removed meanwhile. */
const CHECK_INTERVAL_MS = 30_000

/**
 * The WebSocket connections of one user, in their Durable Object. The sockets hibernate: an idle connection needs no
 * memory, and its state is attached to its socket. Each message is a call of the API with an id, a record and a count
 * against the limits of its own; its response is generated in an object of its own, and goes on when the client leaves.
 */
export class UserConnections {
  readonly #deps: SocketDeps
  readonly #host: SocketHost
  readonly #turns: SocketResponses
  readonly #principals: KnownPrincipals

  constructor(host: SocketHost, deps: SocketDeps) {
    this.#host = host
    this.#deps = deps
    this.#turns = new SocketResponses(deps)
    this.#principals = new KnownPrincipals(deps)
    // Responses whose events were being sent when the object was removed.
    for (const socket of host.getWebSockets()) {
      if (isOpen(socket) && socketConnection(socket).running) deps.waitUntil(this.#turns.resume(socket))
    }
  }

  /** Accepts a connection. @returns the client's end; null when the user has the most connections already. */
  async open(opening: ConnectionOpening): Promise<WebSocket | null> {
    const open = this.#host.getWebSockets().filter(isOpen)
    if (open.length >= this.#deps.configuration.SOCKET_USER_LIMIT) return null
    const { 0: client, 1: server } = new WebSocketPair()
    this.#host.acceptWebSocket(server)
    server.serializeAttachment(newSocketConnection(opening, this.#deps.clock()))
    await this.#arrangeAlarm()
    return client
  }

  /** Handles a message. Never throws: its client gets every error. */
  async message(socket: WebSocket, data: string | ArrayBuffer): Promise<void> {
    const connection = socketConnection(socket)
    if (this.#hasExpired(connection)) return this.#expire(socket)
    const identity = this.#identityOf(connection)
    let principal: Principal | null = null
    try {
      const text = textOf(connection, data)
      this.#turns.begin(socket)
      await this.#arrangeAlarm()
      principal = await this.#principals.of(connection)
      const failed = await this.#turns.run(socket, { principal, identity }, text)
      if (failed) await this.#refuse(socket, { principal, identity }, failed)
    } catch (error) {
      // A message that is refused because a response is running does not end that response.
      if (!connection.running) this.#turns.end(socket, false)
      await this.#refuse(
        socket,
        { principal, identity },
        {
          error: callerError(error, identity.requestId),
          recorded: false,
        },
      )
    }
  }

  /** To be called when a connection has ended. */
  async closed(socket: WebSocket): Promise<void> {
    this.#turns.forget(socket)
    if (!this.#host.getWebSockets().some(isOpen)) await this.#host.storage.deleteAlarm()
  }

  /** Ends the connections that have reached their age limit. */
  async alarm(): Promise<void> {
    for (const socket of this.#host.getWebSockets()) {
      if (isOpen(socket) && this.#hasExpired(socketConnection(socket))) this.#expire(socket)
    }
    await this.#arrangeAlarm()
  }

  #hasExpired({ openedAt }: SocketConnection): boolean {
    return this.#deps.clock() >= openedAt + this.#deps.configuration.SOCKET_TIME_LIMIT_MS
  }

  #expire(socket: WebSocket): void {
    const minutes = Math.ceil(this.#deps.configuration.SOCKET_TIME_LIMIT_MS / 60_000)
    const message = `A connection may be open for ${minutes} minutes. Open a new one to continue.`
    const error = new ApiError('invalid_request', message, { code: 'websocket_connection_limit_reached' })
    this.#turns.forget(socket)
    const isSent = this.#turns.send(socket, errorEvent(error, null))
    if (isSent) socket.close(CLOSE_CODES.goingAway, 'The connection has reached its age limit.')
  }

  #identityOf({ owner, credential, ip }: SocketConnection): CallIdentity {
    return {
      callId: newId('call'),
      requestId: newId('req'),
      at: this.#deps.clock(),
      actor: { userId: owner.userId, keyId: keyIdOf({ credential }), administrator: null, ip },
      surface: 'responses',
      action: 'WEBSOCKET /v1/responses',
    }
  }

  /** Records a refused message, unless that is done, and sends its error. A caller without access is disconnected. */
  async #refuse(
    socket: WebSocket,
    caller: { principal: Principal | null; identity: CallIdentity },
    failed: { error: ApiError; recorded: boolean },
  ): Promise<void> {
    const error = failed.recorded ? failed.error : await this.#record(socket, caller, failed.error)
    const isSent = this.#turns.send(socket, errorEvent(error, caller.identity.requestId))
    if (isSent && error.kind === 'unauthorized') socket.close(CLOSE_CODES.policyViolation, error.message)
  }

  /** @returns the error for the caller, in whose place a limit that is reached can be. */
  async #record(
    socket: WebSocket,
    { principal: known, identity }: { principal: Principal | null; identity: CallIdentity },
    error: ApiError,
  ): Promise<ApiError> {
    const connection = socketConnection(socket)
    // A message that is refused before its caller is looked up counts against the limits as well.
    const principal = known ?? (await this.#principals.of(connection).catch(() => null))
    if (principal && error.kind !== 'rate_limited') {
      const rights = { principal, catalogueEpoch: null, learned: null }
      const refused = await refuseRequest(this.#deps, { identity, rights }, error)
      if (refused) return refused.error
    }
    const opening = openingOf(identity, principal ?? connection.owner, null)
    await this.#deps
      .ledgerOf(opening.organizationId, opening.shard)
      .record(opening, refusalOutcome(opening, this.#deps.clock(), error))
      .catch((failure) => logEvent('error', 'audit_failed', { error: errorText(failure) }))
    return error
  }

  /** One alarm serves all connections, because setting an alarm costs a row. */
  async #arrangeAlarm(): Promise<void> {
    const { SOCKET_TIME_LIMIT_MS } = this.#deps.configuration
    const open = this.#host.getWebSockets().filter(isOpen).map(socketConnection)
    const check = open.some(({ running }) => running) ? this.#deps.clock() + CHECK_INTERVAL_MS : null
    const next = earliest([check, ...open.map(({ openedAt }) => openedAt + SOCKET_TIME_LIMIT_MS)])
    const set = await this.#host.storage.getAlarm()
    if (next !== null && (set === null || set > next)) await this.#host.storage.setAlarm(next)
  }
}

const inFlight = () =>
  invalidRequest(
    'A response is being created on this connection, which takes one at a time. Wait for its last event.',
    'response_already_in_flight',
  )

/** @throws ApiError for a message that cannot be taken now. */
function textOf({ running }: SocketConnection, data: string | ArrayBuffer): string {
  if (running) throw inFlight()
  if (typeof data !== 'string') throw invalidRequest('A message must be text, not binary.')
  return data
}
