import { randomInt } from 'node:crypto'
import { createServer, type Server } from 'node:net'

/**
 * Whether a TCP port of 127.0.0.1 can be listened on now.
 *
 * @returns the error code of a port that is not (`EADDRINUSE`, `EACCES`), or null when it is free
 */
export async function portProblem(port: number): Promise<string | null> {
  try {
    await close(await listen(port))
    return null
  } catch (error) {
    return (error as NodeJS.ErrnoException).code ?? 'unknown'
  }
}

/** Below the ports that systems give to outgoing connections (Linux from 32768 on), which nothing keeps off a free port. */
const FIRST_PORT = 20_000
const LAST_PORT = 32_000
const MOST_TRIES = 1_000

/**
 * Ports that were free a moment ago, all different. They are chosen before anything starts, so that all processes can start
 * at once with the addresses of the others.
 *
 * @throws when nearly none is free
 */
export async function freePorts(count: number): Promise<number[]> {
  const servers = new Map<number, Server>()
  for (let tries = 0; servers.size < count; tries += 1) {
    const port = randomInt(FIRST_PORT, LAST_PORT)
    const server = servers.has(port) ? null : await listen(port).catch(() => null)
    if (server) servers.set(port, server)
    else if (tries > MOST_TRIES)
      throw new Error(`no ${count} ports from ${FIRST_PORT} to ${LAST_PORT} are free`)
  }
  await Promise.all([...servers.values()].map(close))
  return [...servers.keys()]
}

function listen(port: number): Promise<Server> {
  return new Promise((resolve, reject) => {
    const server = createServer()
    server.once('error', reject)
    server.listen(port, '127.0.0.1', () => resolve(server))
  })
}

const close = (server: Server): Promise<void> => new Promise((resolve) => server.close(() => resolve()))
