import { WORKSPACE_LIMITS } from '../limits.ts'
import { FileError } from './file-error.ts'

const encoder = new TextEncoder()

/**
 * The names of an absolute path, without `.` and `..`; a `..` at the root stays there, as in POSIX.
 * @throws FileError ENAMETOOLONG or EINVAL
 */
export function namesOf(path: string): string[] {
  if (path.includes('\0')) throw new FileError('EINVAL', path.replaceAll('\0', '\\0'))
  if (path.length > 4 * WORKSPACE_LIMITS.pathBytes)
    throw new FileError('ENAMETOOLONG', `${path.slice(0, 60)}…`)
  const names: string[] = []
  for (const name of path.split('/')) {
    if (name === '' || name === '.') continue
    if (name === '..') names.pop()
    else names.push(name)
  }
  return names
}

/** Checks what is going to be created. @throws FileError ENAMETOOLONG */
export function checkNewPath(names: readonly string[]): void {
  const path = pathOf(names)
  const tooLong =
    names.length > WORKSPACE_LIMITS.depth ||
    encoder.encode(path).length > WORKSPACE_LIMITS.pathBytes ||
    names.some((name) => encoder.encode(name).length > WORKSPACE_LIMITS.nameBytes)
  if (tooLong) throw new FileError('ENAMETOOLONG', path.length > 80 ? `${path.slice(0, 80)}…` : path)
}

export const pathOf = (names: readonly string[]): string => `/${names.join('/')}`

/** @param path relative to `base`, or absolute. */
export const resolvePath = (base: string, path: string): string =>
  pathOf(namesOf(path.startsWith('/') ? path : `${base}/${path}`))
