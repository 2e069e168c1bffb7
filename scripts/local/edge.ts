import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'

export interface Edge {
  /** `http://127.0.0.1:<port>`, in place of the gateway's own URL. */
  url: string
  close(): Promise<void>
}

/**
 * Runs before a gateway like the platform's edge: it resets the gateway's connection as soon as a client leaves. workerd
 * alone treats the FIN of a closed connection as the end of the client's sending. It detects the closed connection only when
 * a write is answered with a reset, and there is no write while an upstream is silent.
 *
 * @param gatewayUrl of a workerd on loopback
 * @param listenPort at 127.0.0.1; 0 for any free one
 * @throws the error of `listen`, such as `EADDRINUSE`
 */
export async function startEdge(gatewayUrl: string, listenPort = 0): Promise<Edge> {
  const port = Number(new URL(gatewayUrl).port)
  const open = new Set<Socket>()
  const server = createServer({ allowHalfOpen: true, noDelay: true }, (client) => {
    const gateway = connect({ port, host: '127.0.0.1', allowHalfOpen: true, noDelay: true })
    const leave = (): void => {
      gateway.resetAndDestroy()
      client.destroy()
    }
    open.add(client)
    client.on('close', () => open.delete(client))
    client.on('end', leave).on('error', leave).pipe(gateway, { end: false })
    gateway.on('error', () => client.destroy()).pipe(client)
  })
  server.listen(listenPort, '127.0.0.1')
  await once(server, 'listening')
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    close: async () => {
      server.close()
      for (const client of open) client.destroy()
      await once(server, 'close')
    },
  }
}
