import type { Hono } from 'hono'
import { listenOnLoopback, readBody } from '../../../scripts/node/loopback-server.ts'
import type { AppEnv } from '../../../src/http/context.ts'

/** Serves an app over HTTP on loopback, for clients that are no part of this process. */
export async function serve(app: Hono<AppEnv>): Promise<{ url: string; close(): Promise<void> }> {
  const { url, close } = await listenOnLoopback(0, async (incoming, outgoing) => {
    const body = await readBody(incoming, 100_000_000)
    const headers = Object.entries(incoming.headers).map(([name, value]) => [name, String(value)])
    const answer = await app.request(incoming.url ?? '/', {
      method: incoming.method ?? 'GET',
      headers: Object.fromEntries(headers),
      ...(body.length > 0 && { body: new Uint8Array(body) }),
    })
    outgoing.writeHead(answer.status, Object.fromEntries(answer.headers)).end(await answer.text())
  })
  return { url, close }
}
