import { cpSync, existsSync, mkdirSync, readdirSync } from 'node:fs'
import { basename } from 'node:path'
import { StartError } from '../../node/start-error.ts'

/** Shared memory of SQLite, which the next process makes anew, and claims of processes. */
const LEFT_OUT = /-shm$|\.lock$|\.new$/

/** Copies a folder or file of a data folder; one that is missing is left out. */
export function copyFiles(from: string, to: string): void {
  if (!existsSync(from)) return
  cpSync(from, to, {
    recursive: true,
    errorOnExist: true,
    force: false,
    filter: (path) => !LEFT_OUT.test(basename(path)),
  })
}

/**
 * Makes a folder, which has to be empty or missing.
 * @param ignored names that may be in it
 * @throws StartError if it has anything else
 */
export function makeEmptyFolder(folder: string, ignored: readonly string[] = []): void {
  mkdirSync(folder, { recursive: true, mode: 0o700 })
  const found = readdirSync(folder).find((name) => !ignored.includes(name))
  if (found !== undefined) throw new StartError(`${folder} is not empty: it has ${found}`)
}
