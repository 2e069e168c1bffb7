import { chmodSync, mkdirSync, rmSync } from 'node:fs'
import { connect, createServer, type Server, type Socket } from 'node:net'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { StartError } from '../node/start-error.ts'

/** What another process may ask of the one that has a data folder. */
export interface FolderOwner {
  /**
   * Brings all writing to an end.
   * @throws with the reason if that cannot be done now; nothing is paused then
   */
  pause(): Promise<void>
  /** Continues after `pause`. */
  resume(): Promise<void>
}

const SOCKET = 'control.sock'

/** Names in a data folder; `backup` copies some of them. */
export const DATA = {
  objects: 'objects',
  tools: 'tools',
  queue: 'queue.jsonl',
  installation: 'installation.json',
  /** Sockets and configuration of running processes. */
  run: 'run',
} as const

/**
 * Claims a data folder: its owner listens at a Unix socket in it, which works for processes of other containers too, whose process ids
 * say nothing here. The same socket takes requests to pause; a pause ends with the connection that asked for it, so that a backup
 * that is killed leaves no gateway paused.
 *
 * @param folder created if it is missing, closed to other users
 * @param owner null for one that cannot be paused
 * @returns ends the claim
 * @throws StartError if another process has the folder
 */
export async function claimDataFolder(
  folder: string,
  owner: FolderOwner | null,
): Promise<() => Promise<void>> {
  mkdirSync(folder, { recursive: true, mode: 0o700 })
  const path = join(folder, SOCKET)
  const other = await connectTo(path)
  other?.destroy()
  if (other !== null) throw new StartError(`${folder} is in use by another process`)
  rmSync(path, { force: true })
  let pausing: Socket | null = null
  const sockets = new Set<Socket>()
  const server = createServer((socket) => {
    sockets.add(socket)
    socket.on('error', () => {})
    socket.on('close', () => {
      sockets.delete(socket)
      if (pausing !== socket) return
      pausing = null
      void owner?.resume().catch(() => {})
    })
    createInterface({ input: socket }).on('line', async (line) => {
      if (line !== 'pause') return void socket.end('unknown\n')
      if (owner === null || pausing !== null) return void socket.end('this folder cannot be paused now\n')
      pausing = socket
      try {
        await owner.pause()
        if (!socket.destroyed) socket.write('paused\n')
      } catch (error) {
        if (pausing === socket) pausing = null
        socket.end(`${(error as Error).message.split('\n', 1)[0]}\n`)
      }
    })
  })
  await listen(server, path)
  chmodSync(path, 0o600)
  return () =>
    new Promise((resolve) => {
      server.close(() => resolve())
      for (const socket of sockets) socket.destroy()
    })
}

/**
 * Lets the owner of a data folder pause, or claims the folder if it has none, so that nothing writes in it until the end.
 * @returns ends it, and whether the folder had an owner
 * @throws StartError if the owner cannot pause
 */
export async function quietDataFolder(folder: string): Promise<{ hadOwner: boolean; end(): Promise<void> }> {
  const socket = await connectTo(join(folder, SOCKET))
  if (socket === null) return { hadOwner: false, end: await claimDataFolder(folder, null) }
  const answer = new Promise<string>((resolve) => {
    createInterface({ input: socket }).once('line', resolve)
    socket.once('close', () => resolve('it ended'))
  })
  socket.write('pause\n')
  const text = await answer
  if (text !== 'paused') {
    // An open connection would keep this process from ending.
    socket.destroy()
    throw new StartError(`the process that uses ${folder} does not pause: ${text}`)
  }
  const end = (): Promise<void> =>
    new Promise((resolve) => {
      socket.once('close', () => resolve())
      socket.end()
      socket.destroySoon()
    })
  return { hadOwner: true, end }
}

/** @returns null if nothing listens there */
function connectTo(path: string): Promise<Socket | null> {
  return new Promise((resolve) => {
    const socket = connect(path, () => resolve(socket))
    socket.once('error', () => resolve(null))
  })
}

const listen = (server: Server, path: string): Promise<void> =>
  new Promise((resolve, reject) => {
    server.once('error', (error) => reject(new StartError(`${path} cannot be made: ${error.message}`)))
    server.listen(path, resolve)
  })
