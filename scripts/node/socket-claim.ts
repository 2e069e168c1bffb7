import { chmodSync, chownSync, rmSync, statSync } from 'node:fs'
import { connect, createServer, type Server, type Socket } from 'node:net'
import { dirname } from 'node:path'
import { StartError } from './start-error.ts'

/** Bytes of a path that a socket may have: 103 on macOS, 107 on Linux, where the path of a claim should work too. */
const MAX_PATH_BYTES = 103

/**
 * Claims a folder: the owner listens at a Unix socket in it, which works for processes of other containers of the machine too, whose
 * process ids say nothing here. A claim whose owner is gone is taken over, because nothing listens there then.
 *
 * Processes on two machines that share a folder over a network do not see each other's claims, and two that claim at the same instant
 * what a killed process has left may both get it.
 *
 * @param path of the socket, in a folder that is there
 * @param answer to a connection of another process
 * @returns ends the claim, and its connections
 * @throws StartError if another process has the folder, or no socket can be made there
 */
export async function claimBySocket(
  path: string,
  answer: (socket: Socket) => void,
): Promise<() => Promise<void>> {
  const folder = dirname(path)
  if (Buffer.byteLength(path) > MAX_PATH_BYTES)
    throw new StartError(`${path} is longer than ${MAX_PATH_BYTES} bytes: use a folder with a shorter path`)
  const other = await connectToClaim(path)
  other?.destroy()
  if (other !== null) throw new StartError(`${folder} is in use by another process`)
  rmSync(path, { force: true })
  const sockets = new Set<Socket>()
  const server = createServer((socket) => {
    sockets.add(socket)
    socket.on('error', () => {})
    socket.on('close', () => sockets.delete(socket))
    answer(socket)
  })
  await listen(server, path)
  chmodSync(path, 0o600)
  // A script of root uses the folder of a service, which has to find it in use.
  const { uid, gid } = statSync(folder)
  if (process.getuid?.() === 0 && uid !== 0) chownSync(path, uid, gid)
  return () =>
    new Promise((resolve) => {
      server.close(() => resolve())
      for (const socket of sockets) socket.destroy()
    })
}

/**
 * Connects to the owner of a claim.
 * @returns null if nothing listens there
 * @throws StartError if a process may listen there that this one cannot reach
 */
export function connectToClaim(path: string): Promise<Socket | null> {
  return new Promise((resolve, reject) => {
    const socket = connect(path, () => resolve(socket))
    socket.on('error', ({ code, message }: NodeJS.ErrnoException) => {
      if (code === 'ENOENT' || code === 'ECONNREFUSED') resolve(null)
      else reject(new StartError(`${path} cannot be reached: ${message}`))
    })
  })
}

const listen = (server: Server, path: string): Promise<void> =>
  new Promise((resolve, reject) => {
    server.once('error', (error) => reject(new StartError(`${path} cannot be made: ${error.message}`)))
    server.listen(path, resolve)
  })
