import { chmodSync, existsSync } from 'node:fs'
import type { Socket } from 'node:net'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { makePrivateFolder } from '../node/private-folder.ts'
import { claimBySocket, connectToClaim } from '../node/socket-claim.ts'
import { StartError } from '../node/start-error.ts'

/** What another process may ask of the one that has a data folder. */
export interface FolderOwner {
  /**
   * Brings all writing to an end.
   * @throws with the reason if that cannot be done now; nothing is paused then
   */
  pause(): Promise<void>
  /** Continues after `pause`, and returns when calls are served again. */
  resume(): Promise<void>
}

/** A data folder in which nothing writes. */
export interface PausedFolder {
  /** Whether a process uses it, which is paused. */
  hadOwner: boolean
  /** @throws StartError if the owner has ended since: the next one may have written in the folder */
  check(): void
  /**
   * Lets the owner continue, and waits until it serves again.
   * @returns whether it does; true without an owner
   */
  end(): Promise<boolean>
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
 * Claims a data folder by a socket in it, as `claimBySocket` does. The same socket takes requests to pause and to resume; a pause ends
 * with the connection that asked for it, so that a backup that is killed leaves no gateway paused.
 *
 * @param folder created if it is missing, closed to other users
 * @param owner null for one that cannot be paused
 * @returns ends the claim
 * @throws StartError if another process has the folder, or other users may use it
 */
export async function claimDataFolder(
  folder: string,
  owner: FolderOwner | null,
): Promise<() => Promise<void>> {
  makePrivateFolder(folder)
  for (const path of [DATA.objects, DATA.tools].map((name) => join(folder, name)))
    if (existsSync(path)) chmodSync(path, 0o700)
  return claimBySocket(join(folder, SOCKET), ownerAnswers(owner))
}

/** @returns answers the lines of a connection: `pause`, and `resume` from the one that paused */
function ownerAnswers(owner: FolderOwner | null): (socket: Socket) => void {
  let pausing: Socket | null = null
  const pause = async (socket: Socket): Promise<void> => {
    if (owner === null || pausing !== null) return void socket.end('this folder cannot be paused now\n')
    pausing = socket
    try {
      await owner.pause()
      if (!socket.destroyed) socket.write('paused\n')
    } catch (error) {
      if (pausing === socket) pausing = null
      socket.end(`${firstLine(error)}\n`)
    }
  }
  const resume = async (socket: Socket): Promise<void> => {
    if (pausing !== socket) return void socket.end('this folder is not paused\n')
    pausing = null
    try {
      await owner?.resume()
      socket.end('resumed\n')
    } catch (error) {
      socket.end(`${firstLine(error)}\n`)
    }
  }
  return (socket) => {
    socket.on('close', () => void (pausing === socket && resume(socket)))
    createInterface({ input: socket }).on('line', (line) => {
      if (line === 'pause') void pause(socket)
      else if (line === 'resume') void resume(socket)
      else socket.end('unknown\n')
    })
  }
}

const firstLine = (error: unknown): string => (error as Error).message.split('\n', 1)[0] ?? ''

/**
 * Pauses the owner of a data folder, or claims the folder if it has none, so that nothing writes in it until the end.
 * @throws StartError if the owner cannot pause
 */
export async function pauseDataFolder(folder: string): Promise<PausedFolder> {
  const socket = await connectToClaim(join(folder, SOCKET))
  if (socket === null) {
    const release = await claimDataFolder(folder, null)
    return { hadOwner: false, check: () => {}, end: () => release().then(() => true) }
  }
  const ask = questions(socket)
  const text = await ask('pause')
  if (text !== 'paused') {
    // An open connection would keep this process from ending.
    socket.destroy()
    throw new StartError(`the process that uses ${folder} does not pause: ${text}`)
  }
  const check = (): void => {
    if (socket.closed) throw new StartError(`the process that used ${folder} has ended: begin again`)
  }
  const end = async (): Promise<boolean> => {
    const hasResumed = (await ask('resume')) === 'resumed'
    socket.destroy()
    return hasResumed
  }
  return { hadOwner: true, check, end }
}

/** @returns sends a line and waits for the next one of the other side, which may end instead */
function questions(socket: Socket): (line: string) => Promise<string> {
  const lines = createInterface({ input: socket })
  return (line) =>
    new Promise((resolve) => {
      if (socket.closed) return resolve('it ended')
      lines.once('line', resolve)
      socket.once('close', () => resolve('it ended'))
      socket.write(`${line}\n`)
    })
}
