import { Agent, request as sendRequest } from 'node:http'
import { type LoopbackServer, listenOnLoopback } from '../node/loopback-server.ts'

/** Counts the requests to a server. */
export interface Counter {
  url: string
  count(): number
  /** Units of the requests, as `unitsOf` counts them. */
  units(): number
  /** Bytes of bodies, to the server and from it. */
  bytes(): { sent: number; received: number }
  reset(): void
  close(): Promise<void>
}

/**
 * An HTTP server that passes every request on and counts them.
 * @param unitsOf the number of units, such as commands or statements, in the body of a request; one for each when left out.
 */
export async function startCounter(
  target: string,
  unitsOf: (body: string) => number = () => 1,
): Promise<Counter> {
  const agent = new Agent({ keepAlive: true })
  let [count, units] = [0, 0]
  const bytes = { sent: 0, received: 0 }
  const server: LoopbackServer = await listenOnLoopback(0, (incoming, outgoing) => {
    count += 1
    const { method, headers, url } = incoming
    const forwarded = { agent, ...(method !== undefined && { method }), headers }
    return new Promise<void>((resolve, reject) => {
      const onward = sendRequest(target + (url ?? '/'), forwarded, (answer) => {
        outgoing.writeHead(answer.statusCode ?? 502, answer.headers)
        answer.on('data', (chunk: Buffer) => {
          bytes.received += chunk.length
        })
        answer.pipe(outgoing).once('close', resolve)
      })
      const pieces: Buffer[] = []
      incoming.on('data', (chunk: Buffer) => {
        bytes.sent += chunk.length
        pieces.push(chunk)
      })
      incoming.once('end', () => {
        units += unitsOf(Buffer.concat(pieces).toString())
      })
      onward.once('error', reject)
      incoming.pipe(onward)
    })
  })
  return {
    url: server.url,
    count: () => count,
    units: () => units,
    bytes: () => ({ ...bytes }),
    reset: () => {
      count = 0
      units = 0
      Object.assign(bytes, { sent: 0, received: 0 })
    },
    close: async () => {
      await server.close()
      agent.destroy()
    },
  }
}
