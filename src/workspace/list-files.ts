import type { FileInfo } from './contract.ts'
import type { Entry } from './files/entries.ts'
import type { FileStore } from './files/file-store.ts'

/** The files below a folder, or the file itself, in the order of paths. Links are not followed. @throws FileError */
export function* listFiles(store: FileStore, path: string, recursive: boolean): Generator<FileInfo> {
  const entry = store.get(path)
  if (entry.type === 'file') return yield infoOf(path, entry)
  for (const child of store.list(path)) {
    const childPath = `${path === '/' ? '' : path}/${child.name}`
    yield infoOf(childPath, child)
    if (recursive && child.type === 'directory') yield* listFiles(store, childPath, true)
  }
}

const infoOf = (path: string, { type, size, modified }: Entry): FileInfo => ({
  path,
  type,
  bytes: size,
  modifiedAt: modified,
})
