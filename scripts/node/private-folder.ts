import { chmodSync, mkdirSync, readdirSync, statSync } from 'node:fs'
import { StartError } from './start-error.ts'

const OTHER_USERS = 0o077

/** The bits of a mode that `chmod` sets. */
const MODE = 0o7777

/**
 * What Kubernetes makes of 0700: for a volume with `fsGroup`, it adds 02070 to every folder before each start of a pod. Only this mode
 * is taken for it. A folder that others need open, such as /srv when run as root, has 0755 or more.
 */
const OPENED_BY_MOUNT = 0o2770

/**
 * Makes a folder that only its owner may use (mode 0700). One that is there and empty is closed to other users, and so is one of this
 * user that Kubernetes has opened to the group of a volume; any other one that has files is left as it is, because it may be a folder
 * that other programs use too. Files in it may stay open to a group: what is in a closed folder cannot be reached.
 *
 * @throws StartError, with what to do, for a folder that stays open to other users
 */
export function makePrivateFolder(folder: string): void {
  mkdirSync(folder, { recursive: true, mode: 0o700 })
  // Windows has no such modes.
  if (process.platform === 'win32') return
  const { mode, uid } = statSync(folder)
  if ((mode & OTHER_USERS) === 0) return
  // Root could close a folder of another user too, whose choice the mode may be.
  const isOpenedByMount = uid === process.getuid?.() && (mode & MODE) === OPENED_BY_MOUNT
  if (!isOpenedByMount && readdirSync(folder).length > 0)
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
