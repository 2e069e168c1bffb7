import { once } from 'node:events'
import { createServer, type IncomingMessage, request, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { CHAT_PAGE } from './chat-page.ts'

export interface Application {
  /** Origin of the page and of the calls it makes. */
  url: string
  close(): Promise<void>
}

/**
 * Serves a page, and forwards its requests to `/v1/` to a gateway with a key that the page does not have.
 *
 * @param gatewayUrl of a gateway, or of what stands before it
 */
export async function startApplication(gatewayUrl: string, key: string): Promise<Application> {
  const server = createServer((incoming, outgoing) => {
    if (incoming.url?.startsWith('/v1/')) {
      pass(`${gatewayUrl}${incoming.url}`, key, incoming, outgoing)
      return
    }
    outgoing.writeHead(200, { 'content-type': 'text/html; charset=utf-8' })
    outgoing.end(incoming.url === '/' ? CHAT_PAGE : '<!doctype html><title>Elsewhere</title>')
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    close: async () => {
      server.close()
      server.closeAllConnections()
      await once(server, 'close')
    },
  }
}

function pass(url: string, key: string, incoming: IncomingMessage, outgoing: ServerResponse): void {
  const headers = { 'content-type': 'application/json', authorization: `Bearer ${key}` }
  const onward = request(url, { method: incoming.method ?? 'POST', headers, agent: false })
  onward.on('response', (answer) => {
    outgoing.writeHead(answer.statusCode ?? 502, { 'content-type': answer.headers['content-type'] ?? '' })
    answer.on('error', () => outgoing.destroy()).pipe(outgoing)
  })
  onward.on('error', () => outgoing.destroy())
  outgoing.on('close', () => onward.destroy())
  incoming.pipe(onward)
}
