import { chmodSync, cpSync, existsSync, mkdirSync, readdirSync, statSync } from 'node:fs'
import { basename, join } from 'node:path'
import { makePrivateFolder } from '../../node/private-folder.ts'
import { StartError } from '../../node/start-error.ts'

/** Shared memory of SQLite, which the next process makes anew, and claims of processes. */
const LEFT_OUT = /-shm$|\.lock$|\.new$/

/** Copies a folder or file of a data folder, for its owner alone; one that is missing is left out. */
export function copyFiles(from: string, to: string): void {
  if (!existsSync(from)) return
  cpSync(from, to, {
    recursive: true,
    errorOnExist: true,
    force: false,
    filter: (path) => !LEFT_OUT.test(basename(path)),
  })
  // A copy has the modes of what it is copied from.
  closeToOthers(to)
}

function closeToOthers(path: string): void {
  const isFolder = statSync(path).isDirectory()
  chmodSync(path, isFolder ? 0o700 : 0o600)
  if (isFolder) for (const name of readdirSync(path)) closeToOthers(join(path, name))
}

/**
 * Makes a folder for its owner alone, which has to be empty or missing.
 * @param ignored names that may be in it
 * @throws StartError if it has anything else, or other users may use it
 */
export function makeEmptyFolder(folder: string, ignored: readonly string[] = []): void {
  mkdirSync(folder, { recursive: true, mode: 0o700 })
  const found = readdirSync(folder).find((name) => !ignored.includes(name))
  if (found !== undefined) throw new StartError(`${folder} is not empty: it has ${found}`)
  makePrivateFolder(folder)
}
