import type { BufferEncoding, FileContent, FsStat, IFileSystem } from 'just-bash/browser'
import type { Entry } from '../files/entries.ts'
import { FileError } from '../files/file-error.ts'
import type { FileStore } from '../files/file-store.ts'
import { resolvePath } from '../files/paths.ts'

/** Operations between two turns of the event loop, so that timers fire and other requests are answered. */
const OPERATIONS_OF_A_TURN = 32
/**
 * Bytes between two turns of the event loop, read or to be written by a command, which computes on them without a
 * pause.
 */
const BYTES_OF_A_TURN = 1024 * 1024

/**
 * The interpreter looks for this folder before each command that it runs, since there is none. A command computes on what it
 * gets through a pipe, which no file operation shows: each one begins after a pause, so that only one can be late.
 */
const COMMANDS_FOLDER = '/usr/bin'

/** Failed writes whose messages are kept. */
const MOST_REPORTED = 10

/** A file of Linux that commands expect, which is empty and takes everything. */
const NULL_DEVICE = '/dev/null'

/**
 * The files of a workspace in the form that just-bash takes. This file system is the only await of its interpreter that leaves
 * the microtask queue: the pauses here are what lets a time limit end a script.
 */
export class ShellFileSystem implements IFileSystem {
  readonly #store: FileStore
  readonly #signal: AbortSignal
  #operations = 0
  #bytes = 0
  #failedWrites: string[] = []

  /** @param signal ends every operation after the script has ended. */
  constructor(store: FileStore, signal: AbortSignal) {
    this.#store = store
    this.#signal = signal
  }

  async readFile(
    path: string,
    options?: { encoding?: BufferEncoding | null } | BufferEncoding,
  ): Promise<string> {
    const encoding = (typeof options === 'string' ? options : options?.encoding) ?? 'utf8'
    return Buffer.from(await this.readFileBuffer(path)).toString(encoding)
  }

  readFileBuffer(path: string): Promise<Uint8Array> {
    return this.#run(() => {
      const content = path === NULL_DEVICE ? new Uint8Array() : this.#store.read(path)
      this.#bytes += content.length
      return content
    })
  }

  async writeFile(
    path: string,
    content: FileContent,
    options?: { encoding?: BufferEncoding } | BufferEncoding,
  ): Promise<void> {
    return this.#write(path, bytesOf(content, options), (bytes) => this.#store.write(path, bytes))
  }

  async appendFile(
    path: string,
    content: FileContent,
    options?: { encoding?: BufferEncoding } | BufferEncoding,
  ): Promise<void> {
    return this.#write(path, bytesOf(content, options), (bytes) => this.#store.append(path, bytes))
  }

  exists(path: string): Promise<boolean> {
    if (path === COMMANDS_FOLDER) this.#operations = OPERATIONS_OF_A_TURN
    return this.#run(() => path === NULL_DEVICE || isPresent(() => this.#store.find(path)))
  }

  stat(path: string): Promise<FsStat> {
    return this.#run(() => (path === NULL_DEVICE ? nullDevice() : statOf(this.#store.get(path))))
  }

  lstat(path: string): Promise<FsStat> {
    return this.#run(() => (path === NULL_DEVICE ? nullDevice() : statOf(this.#store.get(path, false))))
  }

  mkdir(path: string, options?: { recursive?: boolean }): Promise<void> {
    return this.#run(() => this.#store.makeFolder(path, options?.recursive === true))
  }

  readdir(path: string): Promise<string[]> {
    return this.#run(() => this.#store.list(path).map(({ name }) => name))
  }

  readdirWithFileTypes(path: string) {
    return this.#run(() => this.#store.list(path).map((entry) => ({ name: entry.name, ...typesOf(entry) })))
  }

  rm(path: string, options?: { recursive?: boolean; force?: boolean }): Promise<void> {
    return this.#run(() => this.#store.remove(path, options))
  }

  cp(from: string, to: string, options?: { recursive?: boolean }): Promise<void> {
    return this.#run(() => this.#store.copy(from, to, options?.recursive === true))
  }

  mv(from: string, to: string): Promise<void> {
    return this.#run(() => this.#store.move(from, to))
  }

  resolvePath(base: string, path: string): string {
    return resolvePath(base, path)
  }

  /** Globs read folders where this is empty. */
  getAllPaths(): string[] {
    return []
  }

  chmod(path: string, mode: number): Promise<void> {
    return this.#run(() => this.#store.setMode(path, mode))
  }

  symlink(target: string, path: string): Promise<void> {
    return this.#run(() => this.#store.makeLink(target, path))
  }

  /** A copy: the store has one name for each file. */
  link(existing: string, path: string): Promise<void> {
    return this.#run(() => {
      if (this.#store.find(path, false)) throw new FileError('EEXIST', path)
      this.#store.copy(existing, path, false)
    })
  }

  readlink(path: string): Promise<string> {
    return this.#run(() => {
      const { type, target } = this.#store.get(path, false)
      if (type !== 'symlink') throw new FileError('EINVAL', path)
      return target
    })
  }

  realpath(path: string): Promise<string> {
    return this.#run(() => this.#store.realPath(path))
  }

  utimes(path: string, _accessed: Date, modified: Date): Promise<void> {
    return this.#run(() => this.#store.setModified(path, modified.getTime() || 0))
  }

  /** Messages about writes that failed. */
  get failedWrites(): readonly string[] {
    return this.#failedWrites
  }

  /**
   * A write that fails is reported at the end of the script. Thrown from a redirection, it would end the whole script and
   * lose its output, since the interpreter expects no such error.
   */
  #write(path: string, bytes: Uint8Array, write: (bytes: Uint8Array) => unknown): Promise<void> {
    this.#bytes += bytes.length
    return this.#run(() => {
      if (path === NULL_DEVICE) return
      try {
        write(bytes)
      } catch (error) {
        if (!(error instanceof FileError)) throw error
        const message = `bash: ${error.message}`
        // A redirection writes twice: it empties the file first.
        const known = this.#failedWrites.includes(message)
        if (!known && this.#failedWrites.length < MOST_REPORTED) this.#failedWrites.push(message)
      }
    })
  }

  async #run<Result>(operation: () => Result): Promise<Result> {
    if (++this.#operations >= OPERATIONS_OF_A_TURN || this.#bytes >= BYTES_OF_A_TURN) {
      this.#operations = 0
      this.#bytes = 0
      await scheduler.wait(0)
    }
    this.#signal.throwIfAborted()
    return operation()
  }
}

/** Unlike other operations, `exists` does not fail for a path that is too long. */
function isPresent(find: () => unknown): boolean {
  try {
    return find() !== null
  } catch (error) {
    if (error instanceof FileError) return false
    throw error
  }
}

const bytesOf = (
  content: FileContent,
  options?: { encoding?: BufferEncoding } | BufferEncoding,
): Uint8Array =>
  typeof content === 'string'
    ? Buffer.from(content, (typeof options === 'string' ? options : options?.encoding) ?? 'utf8')
    : content

const typesOf = ({ type }: Entry) => ({
  isFile: type === 'file',
  isDirectory: type === 'directory',
  isSymbolicLink: type === 'symlink',
})

const statOf = (entry: Entry): FsStat => ({
  ...typesOf(entry),
  mode: entry.mode,
  size: entry.size,
  mtime: new Date(entry.modified),
  dev: 1,
  ino: entry.id,
})

const nullDevice = (): FsStat => ({
  isFile: true,
  isDirectory: false,
  isSymbolicLink: false,
  mode: 0o666,
  size: 0,
  mtime: new Date(0),
})
