import { describe, expect, it } from 'vitest'
import type { Principal } from '../../../src/identity/principal.ts'
import { newSocketConnection } from '../../../src/responses/sockets/socket-connection.ts'
import type { SocketDeps } from '../../../src/responses/sockets/socket-deps.ts'
import { type MessageCaller, SocketResponses } from '../../../src/responses/sockets/socket-responses.ts'
import { MOST_UNREAD_BYTES } from '../../../src/responses/sockets/unread-bytes.ts'

const MEGABYTE = 1024 * 1024
const encoder = new TextEncoder()

/** The server's end of a connection whose client reads nothing. */
function deafSocket() {
  const connection = newSocketConnection(
    {
      owner: { organizationId: 'organization', userId: 'user' },
      credential: {
        kind: 'key',
        keyId: 'key',
        scopes: ['models'],
        compatibility: 'headgate',
        expiresAt: null,
      },
      ip: null,
      headers: [],
      compatibility: null,
    },
    0,
  )
  let attachment: unknown = connection
  const socket = {
    readyState: WebSocket.OPEN as number,
    sent: 0,
    closed: 0,
    serializeAttachment: (value: unknown) => {
      attachment = value
    },
    deserializeAttachment: () => attachment,
    send: (text: string) => {
      socket.sent += text.length
    },
    close: (code: number) => {
      socket.closed = code
      socket.readyState = WebSocket.CLOSING
    },
  }
  return socket
}

/** Turns whose responses have events of a megabyte without an end. */
function endlessTurns() {
  const counts = { read: 0, cancelled: false, released: 0 }
  const frames = () =>
    new ReadableStream<Uint8Array>(
      {
        pull(controller) {
          counts.read += 1
          const data = JSON.stringify({ type: 'response.x', text: 'x'.repeat(MEGABYTE) })
          controller.enqueue(encoder.encode(`event: response.x\nid: ${counts.read}\ndata: ${data}\n\n`))
        },
        cancel() {
          counts.cancelled = true
        },
      },
      { highWaterMark: 0 },
    )
  const deps = {
    clock: Date.now,
    waitUntil: () => {},
    configuration: {
      KEY_PEPPERS: new Map([['test', new Uint8Array(32)]]),
      RESPONSE_OBJECTS: 'shared',
      SOCKET_TIME_LIMIT_MS: 1000,
    },
    responseObject: () => ({
      start: async () => ({
        recorded: true,
        error: null,
        headers: {},
        events: frames(),
        background: false,
        compatibility: 'headgate',
        held: true,
      }),
      release: async () => {
        counts.released += 1
      },
    }),
  } as unknown as SocketDeps
  return { turns: new SocketResponses(deps), counts }
}

const CALLER = { principal: {} as Principal, identity: {} } as MessageCaller

describe('a client that does not read', () => {
  it('is disconnected before its messages fill the object, and the response is not read further', async () => {
    const { turns, counts } = endlessTurns()
    const socket = deafSocket()
    const server = socket as unknown as WebSocket
    turns.begin(server)
    await turns.run(server, CALLER, '{}')
    expect(socket.closed).toBe(1013)
    expect(socket.sent).toBeLessThanOrEqual(MOST_UNREAD_BYTES)
    expect(socket.sent).toBeGreaterThan(MOST_UNREAD_BYTES - 2 * MEGABYTE)
    expect(counts.read * MEGABYTE).toBeLessThan(MOST_UNREAD_BYTES + 3 * MEGABYTE)
    expect(counts).toMatchObject({ cancelled: true, released: 1 })
  })

  it('is counted from its last response on', async () => {
    const { turns } = endlessTurns()
    const socket = deafSocket()
    const server = socket as unknown as WebSocket
    for (const _ of [1, 2]) {
      socket.readyState = WebSocket.OPEN
      socket.sent = 0
      turns.begin(server)
      await turns.run(server, CALLER, '{}')
      expect(socket.sent).toBeGreaterThan(MOST_UNREAD_BYTES - 2 * MEGABYTE)
    }
  })

  it('is disconnected as well when it sends messages that are refused', () => {
    const { turns } = endlessTurns()
    const socket = deafSocket()
    const error = 'x'.repeat(MEGABYTE)
    while (turns.send(socket as unknown as WebSocket, error))
      expect(socket.sent).toBeLessThanOrEqual(MOST_UNREAD_BYTES)
    expect(socket.closed).toBe(1013)
  })
})
