import { DurableObject } from 'cloudflare:workers'
import { createDeps } from '../src/deps.ts'
import type { Bindings } from '../src/env.ts'
import { unsharedLedgers } from '../src/ledger/client.ts'
import { logFailuresOf } from '../src/lib/logged-methods.ts'
import { connectionOpeningOf } from '../src/responses/sockets/socket-client.ts'
import { UserConnections } from '../src/responses/sockets/user-connections.ts'

/**
 * The Durable Object behind the WebSocket connections of a user, named by `socketsName`. It has storage, alarm and
 * name; the code is in `src`.
 */
export class ResponseSockets extends DurableObject<Bindings> {
  readonly #connections: UserConnections

  constructor(context: DurableObjectState, environment: Bindings) {
    super(context, environment)
    const deps = createDeps(environment, context as unknown as ExecutionContext, unsharedLedgers())
    this.#connections = new UserConnections(context, deps)
  }

  override async fetch(request: Request): Promise<Response> {
    const webSocket = await this.#connections.open(connectionOpeningOf(request))
    return webSocket ? new Response(null, { status: 101, webSocket }) : new Response(null, { status: 429 })
  }

  override async webSocketMessage(socket: WebSocket, message: string | ArrayBuffer) {
    await this.#connections.message(socket, message)
  }

  override async webSocketClose(socket: WebSocket) {
    // A hibernating socket does not answer the closing handshake by itself.
    if (socket.readyState === WebSocket.CLOSING) socket.close()
    await this.#connections.closed(socket)
  }

  override async webSocketError(socket: WebSocket) {
    await this.#connections.closed(socket)
  }

  override async alarm() {
    await this.#connections.alarm()
  }
}

logFailuresOf(ResponseSockets, 'ResponseSockets')
