import { listenOnLoopback, readBody } from '../../scripts/node/loopback-server.ts'

const MOST_BYTES = 1_000_000

/** Serves a stand-in that answers requests, on loopback. @param create makes it for its origin. */
export async function serve<StandIn extends { handle(request: Request): Promise<Response> }>(
  create: (origin: string) => StandIn,
): Promise<{ standIn: StandIn; host: string; close(): Promise<void> }> {
  const holder: { standIn?: StandIn } = {}
  const server = await listenOnLoopback(0, async (incoming, outgoing) => {
    const body = await readBody(incoming, MOST_BYTES)
    const headers = new Headers()
    for (let index = 0; index < incoming.rawHeaders.length; index += 2) {
      headers.append(incoming.rawHeaders[index] ?? '', incoming.rawHeaders[index + 1] ?? '')
    }
    const method = incoming.method ?? 'GET'
    const request = new Request(`${server.url}${incoming.url}`, {
      method,
      headers,
      ...(method !== 'GET' && method !== 'HEAD' && { body: new Uint8Array(body) }),
    })
    const answer = await holder.standIn?.handle(request)
    if (!answer) throw new Error('no stand-in')
    outgoing.writeHead(answer.status, Object.fromEntries(answer.headers))
    outgoing.end(Buffer.from(await answer.arrayBuffer()))
  })
  holder.standIn = create(server.url)
  return { standIn: holder.standIn, host: `127.0.0.1:${server.port}`, close: server.close }
}
