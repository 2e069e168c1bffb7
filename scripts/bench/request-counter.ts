import { Agent, request as sendRequest } from 'node:http'
import { type LoopbackServer, listenOnLoopback } from '../node/loopback-server.ts'

/** Counts the requests to a server. */
export interface Counter {
  url: string
  count(): number
  reset(): void
  close(): Promise<void>
}

/** An HTTP server that passes every request on and counts them. */
export async function startCounter(target: string): Promise<Counter> {
  const agent = new Agent({ keepAlive: true })
  let count = 0
  const server: LoopbackServer = await listenOnLoopback(0, (incoming, outgoing) => {
    count += 1
    const { method, headers, url } = incoming
    const forwarded = { agent, ...(method !== undefined && { method }), headers }
    return new Promise<void>((resolve, reject) => {
      const onward = sendRequest(target + (url ?? '/'), forwarded, (answer) => {
        outgoing.writeHead(answer.statusCode ?? 502, answer.headers)
        answer.pipe(outgoing).once('close', resolve)
      })
      onward.once('error', reject)
      incoming.pipe(onward)
    })
  })
  return {
    url: server.url,
    count: () => count,
    reset: () => {
      count = 0
    },
    close: async () => {
      await server.close()
      agent.destroy()
    },
  }
}
