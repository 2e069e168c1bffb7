import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import {
  chmodSync,
  chownSync,
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readlinkSync,
  rmSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

// A root file system as a container or a unit of systemd has it: read-only, but for some folders, and used by another user than root.

export interface PackagedRoot {
  /** Files and folders that are there to be read: by their path in it, where they are on this machine. */
  files: Record<string, string>
  /** Folders that may be written, as far as their owner and mode allow: by their path in it, where they are on this machine. */
  folders: Record<string, string>
  /** Of user and group. */
  uid: number
  workingFolder: string
}

/** Where the Node that runs the tests is in such a root. */
const NODE = '/runtime/node'
/** Folders of the machine that every program needs. */
const SYSTEM = ['/usr', '/bin', '/sbin', '/lib', '/lib64', '/etc', '/dev', '/proc']

/** Why this machine cannot make such a root; null if it can. */
export function missingForRoots(): string | null {
  if (process.platform !== 'linux') return 'Linux'
  if (process.getuid?.() !== 0) return 'right to mount (root)'
  const probe = spawnSync('unshare', ['-m', 'setpriv', '--version'], { stdio: 'ignore' })
  return probe.status === 0 ? null : 'unshare and setpriv that work'
}

/** A folder for what a root may write. @returns it, and removes it */
export function folderForRoots(): { path: string; remove(): void } {
  const path = mkdtempSync(join(tmpdir(), 'hg-roots-'))
  // Only mount points are below it: the users in a root reach them by other paths.
  return { path, remove: () => rmSync(path, { recursive: true, force: true }) }
}

/** A folder of a volume or of a unit. @param uid of its owner and group */
export function ownedFolder(path: string, uid: number, mode: number, gid = uid): string {
  mkdirSync(path, { recursive: true })
  chownSync(path, uid, gid)
  chmodSync(path, mode)
  return path
}

/**
 * Starts a program in such a root, without capabilities and without new privileges. The network is that of the machine.
 * @param command its first word is `node`
 * @param emptyFolder on which the root is mounted, for this process alone
 */
export function spawnInRoot(
  root: PackagedRoot,
  [, ...words]: readonly string[],
  environment: Record<string, string | undefined>,
  emptyFolder: string,
): ChildProcess {
  mkdirSync(emptyFolder, { recursive: true })
  const script = [
    ...mountSteps(root),
    'in_root=$ROOT; unset ROOT',
    // Every step replaces the process, so that signals reach Node.
    `exec chroot "$in_root" env -C ${root.workingFolder} setpriv --reuid ${root.uid} --regid ${root.uid} --clear-groups \\
      --no-new-privs --bounding-set -all ${NODE} "$@"`,
  ].join('\n')
  return spawn('unshare', ['-m', '--propagation', 'private', 'sh', '-c', script, 'sh', ...words], {
    env: { PATH: process.env.PATH, ...environment, ROOT: emptyFolder },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
}

const inRoot = (path: string): string => `"$ROOT"${path}`

/** Lines of a shell that build the root at `$ROOT`. */
function mountSteps({ files, folders }: PackagedRoot): string[] {
  const readOnly = ([path, from]: [string, string]) => [
    lstatSync(from).isDirectory() ? `mkdir -p ${inRoot(path)}` : `install -D /dev/null ${inRoot(path)}`,
    `mount --rbind ${from} ${inRoot(path)}`,
    `mount -o remount,bind,ro ${inRoot(path)}`,
  ]
  const writable = ([path, from]: [string, string]) => [
    `mkdir -p ${inRoot(path)}`,
    `mount --bind ${from} ${inRoot(path)}`,
  ]
  const ofSystem = (path: string) =>
    lstatSync(path).isSymbolicLink()
      ? [`ln -s ${readlinkSync(path)} ${inRoot(path)}`]
      : [`mkdir ${inRoot(path)}`, `mount --rbind ${path} ${inRoot(path)}`]
  return [
    'set -e',
    'mount -t tmpfs -o mode=755 tmpfs "$ROOT"',
    ...SYSTEM.filter((path) => existsSync(path)).flatMap(ofSystem),
    `mount -o remount,bind,ro ${inRoot('/usr')}`,
    ...Object.entries({ ...files, [NODE]: process.execPath }).flatMap(readOnly),
    ...Object.entries(folders).flatMap(writable),
    `mkdir ${inRoot('/tmp')}`,
    `mount -t tmpfs -o mode=1777,size=64m tmpfs ${inRoot('/tmp')}`,
    'mount -o remount,ro "$ROOT"',
  ]
}
