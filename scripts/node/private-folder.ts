import { chmodSync, mkdirSync, readdirSync, statSync } from 'node:fs'
import { StartError } from './start-error.ts'

const OTHER_USERS = 0o077

/**
 * Makes a folder that only its owner may use (mode 0700). One that is there and empty is closed to other users; one that has files is
 * left as it is, because it may be a folder that other programs use too.
 *
 * @throws StartError, with what to do, for a folder that stays open to other users
 */
export function makePrivateFolder(folder: string): void {
  mkdirSync(folder, { recursive: true, mode: 0o700 })
  // Windows has no such modes.
  if (process.platform === 'win32' || (statSync(folder).mode & OTHER_USERS) === 0) return
  if (readdirSync(folder).length > 0)
    throw new StartError(`${folder} is open to other users: run chmod 700 ${folder}`)
  try {
    chmodSync(folder, 0o700)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EPERM') throw error
    throw new StartError(
      `${folder} is open to other users, and belongs to another one: set a folder in it, such as ${folder}/headgate`,
    )
  }
}
