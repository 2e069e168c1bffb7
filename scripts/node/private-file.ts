import { closeSync, fsyncSync, mkdirSync, openSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { dirname } from 'node:path'

/**
 * Writes a file that only its owner may read (mode 0600), atomically and durably: a reader finds the old text or the new one,
 * and after a power failure the new one is there. A file with wider permissions is replaced, not reused.
 *
 * @throws an error of the file system; the file has its old text then
 */
export function writePrivateFile(path: string, text: string): void {
  const folder = dirname(path)
  const firstMade = mkdirSync(folder, { recursive: true, mode: 0o700 })
  const temporary = `${path}.${process.pid}.tmp`
  // One that a process with this id has left keeps its mode when it is opened again.
  rmSync(temporary, { force: true })
  const file = openSync(temporary, 'wx', 0o600)
  try {
    writeFileSync(file, text)
    fsyncSync(file)
  } finally {
    closeSync(file)
  }
  renameSync(temporary, path)
  for (const changed of foldersUpTo(folder, firstMade)) syncFolder(changed)
}

/** The folder, and the parents in which folders were made. */
function foldersUpTo(folder: string, firstMade: string | undefined): string[] {
  const last = firstMade === undefined ? folder : dirname(firstMade)
  const folders = [folder]
  for (let current = folder; current !== last && current !== dirname(current); current = dirname(current)) {
    folders.push(dirname(current))
  }
  return folders
}

/** The name of a file is stored in its folder. Windows cannot open one. */
function syncFolder(path: string): void {
  if (process.platform === 'win32') return
  const folder = openSync(path, 'r')
  try {
    fsyncSync(folder)
  } finally {
    closeSync(folder)
  }
}
