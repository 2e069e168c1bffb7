import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net'

/**
 * `pass`: as if it were not there. `refuse`: nobody listens. `hang`: connections are taken and nothing is answered.
 * `error`: every request is answered 500. `lose_answers`: requests get through, and the connection breaks before
 * their answer, which is the case where doing it again must do no harm.
 */
export type FaultMode = 'pass' | 'refuse' | 'hang' | 'error' | 'lose_answers' | { delayMilliseconds: number }

export interface FaultProxy {
  readonly url: string
  readonly mode: FaultMode
  /** Changes what happens to new requests. Connections of the mode before are cut, except on the way into a delay. */
  become(mode: FaultMode): Promise<void>
  close(): Promise<void>
}

const ERROR_BODY = '{"error":"ERR out of order","message":"out of order"}'
const ERROR_ANSWER =
  'HTTP/1.1 500 Internal Server Error\r\ncontent-type: application/json\r\nconnection: close\r\n' +
  `content-length: ${ERROR_BODY.length}\r\n\r\n${ERROR_BODY}`

/**
 * A proxy between the gateway and a service on loopback, which simulates failures of the service. @param targetUrl the
 * service
 */
export async function startFaultProxy(targetUrl: string): Promise<FaultProxy> {
  const target = Number(new URL(targetUrl).port)
  const open = new Set<Socket>()
  let mode: FaultMode = 'pass'
  const accept = (client: Socket): void => {
    open.add(client)
    client.on('close', () => open.delete(client)).on('error', () => client.destroy())
    serve(client, target, mode)
  }
  let server = await listen(accept, 0)
  const { port } = server.address() as AddressInfo
  const cut = async (): Promise<void> => {
    for (const client of open) client.resetAndDestroy()
    if (!server.listening) return
    server.close()
    await once(server, 'close')
  }
  return {
    url: `http://127.0.0.1:${port}`,
    get mode() {
      return mode
    },
    become: async (next) => {
      mode = next
      await cut()
      if (next !== 'refuse') server = await listen(accept, port)
    },
    close: cut,
  }
}

async function listen(accept: (client: Socket) => void, port: number): Promise<Server> {
  const server = createServer(accept)
  server.listen(port, '127.0.0.1')
  await once(server, 'listening')
  return server
}

/** The mode of a connection is the one it was opened in: a change of mode cuts it. */
function serve(client: Socket, target: number, mode: FaultMode): void {
  if (mode === 'hang') {
    client.resume()
    return
  }
  if (mode === 'error') {
    client.once('data', () => client.end(ERROR_ANSWER))
    return
  }
  const service = connect(target, '127.0.0.1')
  client.on('close', () => service.destroy())
  service.on('close', () => client.destroy()).on('error', () => client.destroy())
  if (mode === 'lose_answers') {
    client.pipe(service)
    service.once('data', () => client.resetAndDestroy())
    return
  }
  service.pipe(client)
  if (typeof mode === 'string') {
    client.pipe(service)
    return
  }
  const { delayMilliseconds } = mode
  client.on('data', (bytes) => {
    setTimeout(() => service.writable && service.write(bytes), delayMilliseconds)
  })
}
