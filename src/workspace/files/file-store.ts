import type { Entries, Entry } from './entries.ts'
import { FileError } from './file-error.ts'
import { checkNewPath, namesOf, pathOf } from './paths.ts'

/** Maximum number of links in one path, the same as in Linux. */
const MOST_LINKS = 40
/** The folders at the root, which are the only writable ones. */
const ROOT_FOLDERS = ['workspace', 'tmp']

/** The place of a name, which may not exist yet: the entry, if there is one, with its folder. */
interface Place {
  folder: Entry
  /** Path of the entry, after links are resolved. */
  names: string[]
  entry: Entry | null
}

/** The files of a workspace by absolute paths. Methods throw FileError as their POSIX counterparts fail. */
export class FileStore {
  readonly #entries: Entries

  constructor(entries: Entries) {
    this.#entries = entries
    const root = entries.root()
    for (const name of ROOT_FOLDERS) {
      if (!entries.child(root.id, name)) entries.create(root.id, name, 'directory', `/${name}`)
    }
  }

  /** @param follow whether a link at the end stands for its target. Null without such an entry. */
  find(path: string, follow = true): Entry | null {
    try {
      return this.#place(path, follow).entry
    } catch (error) {
      if (error instanceof FileError && (error.code === 'ENOENT' || error.code === 'ENOTDIR')) return null
      throw error
    }
  }

  get(path: string, follow = true): Entry {
    return this.#place(path, follow).entry ?? fail('ENOENT', path)
  }

  realPath(path: string): string {
    const { entry, names } = this.#place(path, true)
    return entry ? pathOf(names) : fail('ENOENT', path)
  }

  read(path: string): Uint8Array {
    const entry = this.get(path)
    if (entry.type === 'directory') fail('EISDIR', path)
    return this.#entries.content(entry)
  }

  /** @returns whether the file is new. */
  write(path: string, bytes: Uint8Array): boolean {
    const existing = this.find(path)
    // The check comes before the file is created: a refused write leaves no empty file.
    this.#entries.requireRoom(existing, bytes.length, path)
    this.#entries.replaceContent(this.#file(path), bytes)
    return existing === null
  }

  append(path: string, bytes: Uint8Array): void {
    const existing = this.find(path)
    this.#entries.requireRoom(existing, (existing?.size ?? 0) + bytes.length, path)
    this.#entries.appendContent(this.#file(path), bytes)
  }

  list(path: string): Entry[] {
    const entry = this.get(path)
    if (entry.type !== 'directory') fail('ENOTDIR', path)
    return this.#entries.children(entry.id)
  }

  makeFolder(path: string, recursive: boolean): void {
    const names = namesOf(path)
    const existing = this.find(path)
    if (existing) {
      if (!recursive || existing.type !== 'directory') fail('EEXIST', path)
      return
    }
    if (recursive && names.length > 1) this.makeFolder(pathOf(names.slice(0, -1)), true)
    this.#create(path, 'directory')
  }

  makeLink(target: string, path: string): void {
    if (this.find(path, false)) fail('EEXIST', path)
    namesOf(target)
    this.#create(path, 'symlink', target)
  }

  remove(path: string, { recursive = false, force = false } = {}): void {
    const entry = this.find(path, false)
    if (!entry) {
      if (force) return
      fail('ENOENT', path)
    }
    this.#requireOwn(this.#place(path, false), path)
    if (!recursive && entry.type === 'directory' && this.#entries.children(entry.id).length > 0)
      fail('ENOTEMPTY', path)
    this.#entries.remove(entry)
  }

  copy(from: string, to: string, recursive: boolean): void {
    const entry = this.get(from)
    if (entry.type !== 'directory') return void this.write(to, this.read(from))
    if (!recursive) fail('EISDIR', from)
    const [source, target] = [this.realPath(from), pathOf(this.#place(to, true).names)]
    if (`${target}/`.startsWith(`${source}/`)) fail('EINVAL', to)
    this.makeFolder(to, true)
    for (const child of this.#entries.children(entry.id)) {
      const [inner, outer] = [`${source}/${child.name}`, `${target}/${child.name}`]
      if (child.type === 'symlink') this.makeLink(child.target, outer)
      else this.copy(inner, outer, true)
    }
  }

  move(from: string, to: string): void {
    const source = this.#place(from, false)
    const entry = source.entry ?? fail('ENOENT', from)
    const target = this.#place(to, false)
    this.#requireOwn(source, from)
    this.#requireOwn(target, to)
    if (target.entry?.id === entry.id) return
    if (`${pathOf(target.names)}/`.startsWith(`${pathOf(source.names)}/`)) fail('EINVAL', to)
    this.#checkMoved(entry, target.names)
    if (target.entry) {
      const folder = target.entry.type === 'directory'
      if (folder !== (entry.type === 'directory')) fail(folder ? 'EISDIR' : 'ENOTDIR', to)
      this.remove(pathOf(target.names))
    }
    this.#entries.move(entry, target.folder.id, target.names.at(-1) ?? '')
  }

  setMode(path: string, mode: number): void {
    this.#entries.setMode(this.get(path), mode)
  }

  setModified(path: string, milliseconds: number): void {
    this.#entries.setModified(this.get(path), milliseconds)
  }

  #file(path: string): Entry {
    const entry = this.find(path)
    if (entry?.type === 'directory') fail('EISDIR', path)
    return entry ?? this.#create(path, 'file')
  }

  /** A link to nothing is created at its target, as `open` does. */
  #create(path: string, type: Entry['type'], target = ''): Entry {
    const place = this.#place(path, type === 'file')
    this.#requireOwn(place, path)
    checkNewPath(place.names)
    return this.#entries.create(place.folder.id, place.names.at(-1) ?? '', type, path, target)
  }

  /** Each entry of a tree has a path that may be new: what reads a tree takes a step down for each of its names. */
  #checkMoved(entry: Entry, names: readonly string[]): void {
    checkNewPath(names)
    if (entry.type !== 'directory') return
    for (const child of this.#entries.children(entry.id)) this.#checkMoved(child, [...names, child.name])
  }

  /** Refuses changes of the root itself, and of the folders in it. */
  #requireOwn({ names }: Place, path: string): void {
    if (names.length < 2) fail('EACCES', path)
  }

  /** Walks from the root. Links lead to places in the same tree only, since there is no other. */
  #place(path: string, follow: boolean): Place {
    const waiting = namesOf(path).reverse()
    const chain = [this.#entries.root()]
    const names: string[] = []
    let links = 0
    for (;;) {
      const name = waiting.pop()
      const folder = chain.at(-1) as Entry
      if (name === undefined) return { folder: chain.at(-2) ?? folder, names, entry: folder }
      if (folder.type !== 'directory') fail('ENOTDIR', path)
      if (name === '..') {
        if (chain.length > 1) chain.pop()
        names.pop()
        continue
      }
      const entry = this.#entries.child(folder.id, name)
      const last = waiting.length === 0
      if (entry?.type === 'symlink' && !(last && !follow)) {
        if (++links > MOST_LINKS) fail('ELOOP', path)
        if (entry.target.startsWith('/')) {
          chain.length = 1
          names.length = 0
        }
        waiting.push(
          ...entry.target
            .split('/')
            .filter((part) => part !== '' && part !== '.')
            .reverse(),
        )
        continue
      }
      names.push(name)
      if (!entry) return last ? { folder, names, entry: null } : fail('ENOENT', path)
      chain.push(entry)
    }
  }
}

function fail(code: FileError['code'], path: string): never {
  throw new FileError(code, path)
}
