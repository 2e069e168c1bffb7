import { once } from 'node:events'
import { createServer, type IncomingMessage, request, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { RESPONSE_PAGE } from './response-page.ts'

/** A connection of the page to the stream. */
export interface Connection {
  /** `Last-Event-ID` of the request; null if it has none. */
  lastEventId: string | null
  /** Bytes of the stream that were passed on. */
  bytes: number
  /** Whether this side broke it off. */
  cut: boolean
}

export interface CuttingApplication {
  /** Origin of the page and of the calls it makes. */
  url: string
  /** Every connection to a stream so far, the newest last. */
  connections: Connection[]
  close(): Promise<void>
}

/**
 * Serves a page, passes what it asks of `/v1/` on to a gateway with a key that the page never sees, and breaks streams off:
 * the first connections after so many bytes of their bodies, wherever in an event or a character that is.
 *
 * @param gatewayUrl of a gateway, or of what stands before it
 * @param cuts after how many bytes of the stream each connection in turn breaks off; those that come later never do
 */
export async function startCuttingApplication(
  gatewayUrl: string,
  key: string,
  cuts: readonly number[],
): Promise<CuttingApplication> {
  const connections: Connection[] = []
  const server = createServer((incoming, outgoing) => {
    if (!incoming.url?.startsWith('/v1/')) {
      outgoing.writeHead(200, { 'content-type': 'text/html; charset=utf-8' }).end(RESPONSE_PAGE)
      return
    }
    const headers = onwardHeaders(incoming, key)
    const onward = request(`${gatewayUrl}${incoming.url}`, { method: incoming.method, headers, agent: false })
    onward.on('error', () => outgoing.destroy())
    onward.on('response', (answer) => {
      const type = answer.headers['content-type'] ?? ''
      outgoing.writeHead(answer.statusCode ?? 502, { 'content-type': type })
      answer.on('error', () => outgoing.destroy())
      if (!type.startsWith('text/event-stream')) {
        answer.pipe(outgoing)
        return
      }
      const id = incoming.headers['last-event-id']
      const connection = { lastEventId: id === undefined ? null : String(id), bytes: 0, cut: false }
      const limit = cuts[connections.length] ?? Number.POSITIVE_INFINITY
      connections.push(connection)
      passUntil(answer, outgoing, connection, limit)
    })
    outgoing.on('close', () => onward.destroy())
    incoming.pipe(onward)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    connections,
    close: async () => {
      server.close()
      server.closeAllConnections()
      await once(server, 'close')
    },
  }
}

/** Headers that a proxy in production forwards: those about the resource, and the key in place of a session. */
function onwardHeaders({ headers }: IncomingMessage, key: string): Record<string, string> {
  const passed = ['accept', 'content-type', 'last-event-id'].flatMap((name) => {
    const value = headers[name]
    return typeof value === 'string' ? [[name, value]] : []
  })
  return { ...Object.fromEntries(passed), authorization: `Bearer ${key}` }
}

function passUntil(answer: IncomingMessage, outgoing: ServerResponse, to: Connection, limit: number): void {
  answer.on('end', () => outgoing.end())
  answer.on('data', (bytes: Buffer) => {
    if (to.cut) return
    const passed = bytes.subarray(0, limit - to.bytes)
    to.bytes += passed.length
    if (to.bytes < limit) {
      outgoing.write(passed)
      return
    }
    to.cut = true
    // Only when the bytes have been sent: a reset would discard those in the buffers.
    outgoing.write(passed, () => outgoing.destroy())
  })
}
