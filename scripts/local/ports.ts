import type { AddressInfo } from 'node:net'
import { createServer } from 'node:net'

/**
 * Whether a TCP port of 127.0.0.1 can be listened on now.
 *
 * @returns the error code that says why not (`EADDRINUSE`, `EACCES`), or null when it is free
 */
export async function portProblem(port: number): Promise<string | null> {
  try {
    await listenOnce(port)
    return null
  } catch (error) {
    return (error as NodeJS.ErrnoException).code ?? 'unknown'
  }
}

/**
 * Ports that were free a moment ago, all different. Choosing them before anything starts lets every process start
 * at once, since each is told where the others will be.
 */
export async function freePorts(count: number): Promise<number[]> {
  const servers = Array.from({ length: count }, () => createServer())
  const ports: number[] = []
  for (const server of servers) {
    await new Promise<void>((resolve, reject) => {
      server.once('error', reject)
      server.listen(0, '127.0.0.1', resolve)
    })
    ports.push((server.address() as AddressInfo).port)
  }
  await Promise.all(servers.map((server) => new Promise((resolve) => server.close(resolve))))
  return ports
}

function listenOnce(port: number): Promise<void> {
  return new Promise((resolve, reject) => {
    const server = createServer()
    server.once('error', reject)
    server.listen(port, '127.0.0.1', () => server.close(() => resolve()))
  })
}
