import { createHash, randomBytes } from 'node:crypto'
import {
  closeSync,
  fstatSync,
  openSync,
  readdirSync,
  readSync,
  renameSync,
  rmSync,
  type WriteStream,
} from 'node:fs'
import { type FileHandle, open } from 'node:fs/promises'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { makePrivateFolder } from '../private-folder.ts'

/** A writer's metadata of an object, as it came over the wire. */
export interface ObjectFields {
  key: string
  httpFields: Record<string, unknown>
  customFields: Array<{ k: string; v: string }>
}

/** An object that is stored whole. */
export interface StoredObject extends ObjectFields {
  version: string
  /** Bytes of the content. */
  size: number
  /** MD5 of the content in hex, as R2 makes it. */
  etag: string
  /** Milliseconds since the epoch. */
  uploaded: number
}

/** An object that is open for reading. */
export interface OpenedObject {
  object: StoredObject
  /** A part of its content, in bytes. @throws ContentError with status 404 for an object that was deleted meanwhile */
  read(offset: number, length: number): Readable | Promise<Readable>
  close(): Promise<void>
}

/** Where objects are: a folder or a bucket. */
export interface ContentObjects {
  /** Metadata of an object. */
  head(key: string): Promise<StoredObject | undefined>
  /**
   * Stores an object in place of the one of the same key; readers see it when it is complete.
   * @param size bytes that the content has to have. @throws LengthError, and what the content throws
   */
  put(fields: ObjectFields, content: AsyncIterable<Buffer>, size: number): Promise<StoredObject>
  /** Opens an object for reading; the caller closes it. */
  open(key: string): Promise<OpenedObject | null>
  /** Deletes objects; those that are not there count as deleted. */
  delete(keys: readonly string[]): Promise<void>
  /**
   * Objects whose key begins with a prefix, in the order of the keys' bytes.
   * @param after leaves out this key and all before it. @param limit the most objects that are returned.
   */
  list(
    prefix: string,
    after: string | undefined,
    limit: number,
  ): Promise<{ objects: StoredObject[]; more: boolean }>
}

/** Thrown by `put` when the content does not have the declared length. */
export class LengthError extends Error {}

const LENGTH_BYTES = 4

/**
 * Objects in a folder, each a file of its own: the content, then its metadata as JSON, then the length of that JSON.
 * The metadata comes last because it includes the digest. It is in the same file so that one rename publishes the whole
 * object: after a crash, the file is the old object or the new one. The index is in memory and read from the files at
 * the start.
 */
export class ObjectFiles implements ContentObjects {
  readonly #folder: string
  readonly #index = new Map<string, StoredObject>()
  /** Keys of the index in the order of their bytes; null until they are listed. */
  #sorted: Buffer[] | null = null

  /**
   * @param folder created if it is missing; only one process at a time may have it open. Files with other names are ignored
   * @param isReader for a process that reads beside that one; it sees the objects that are there now, and needs the folder
   * @throws StartError for a folder that other users may use
   */
  constructor(folder: string, isReader = false) {
    this.#folder = folder
    if (!isReader) makePrivateFolder(folder)
    for (const name of readdirSync(folder)) {
      if (name.endsWith('.part') && !isReader) rmSync(join(folder, name))
      const object = name.endsWith('.object') ? readTrailer(join(folder, name)) : null
      // A file under another name was put there by hand, or its key was torn.
      if (object !== null && fileName(object.key) === name) this.#index.set(object.key, object)
    }
  }

  async head(key: string): Promise<StoredObject | undefined> {
    return this.#index.get(key)
  }

  async put(fields: ObjectFields, content: AsyncIterable<Buffer>, size: number): Promise<StoredObject> {
    const part = join(this.#folder, `${randomBytes(12).toString('hex')}.part`)
    try {
      const file = await open(part, 'w', 0o600)
      const object = await writeObject(file.createWriteStream(), fields, content, size)
      renameSync(part, this.#path(fields.key))
      if (!this.#index.has(object.key)) this.#sorted = null
      this.#index.set(object.key, object)
      return object
    } catch (error) {
      rmSync(part, { force: true })
      throw error
    }
  }

  /** A later put or delete does not disturb the reading. */
  async open(key: string): Promise<OpenedObject | null> {
    const object = this.#index.get(key)
    if (object === undefined) return null
    const file = await openIfThere(this.#path(key))
    if (file === null) return null
    const read = (offset: number, length: number): Readable =>
      file.createReadStream({ start: offset, end: offset + length - 1, autoClose: false })
    return { object, read, close: () => file.close() }
  }

  async delete(keys: readonly string[]): Promise<void> {
    for (const key of keys) {
      if (!this.#index.delete(key)) continue
      this.#sorted = null
      rmSync(this.#path(key), { force: true })
    }
  }

  async list(prefix: string, after: string | undefined, limit: number) {
    this.#sorted ??= [...this.#index.keys()].map((key) => Buffer.from(key)).sort(Buffer.compare)
    const objects: StoredObject[] = []
    for (let at = firstFrom(this.#sorted, prefix, after); at < this.#sorted.length; at += 1) {
      const key = String(this.#sorted[at])
      if (!key.startsWith(prefix)) break
      if (objects.length === limit) return { objects, more: true }
      const object = this.#index.get(key)
      if (object !== undefined) objects.push(object)
    }
    return { objects, more: false }
  }

  #path(key: string): string {
    return join(this.#folder, fileName(key))
  }
}

/** Keys have slashes and up to 1024 bytes, which no file name takes. */
const fileName = (key: string): string => `${createHash('sha256').update(key).digest('hex')}.object`

/** @returns where the keys that have the prefix and come after `after` begin */
function firstFrom(sorted: readonly Buffer[], prefix: string, after: string | undefined): number {
  const [first, last] = [Buffer.from(prefix), after === undefined ? null : Buffer.from(after)]
  let [from, to] = [0, sorted.length]
  while (from < to) {
    const middle = (from + to) >> 1
    const key = sorted[middle] ?? first
    const isBefore = Buffer.compare(key, first) < 0 || (last !== null && Buffer.compare(key, last) <= 0)
    if (isBefore) from = middle + 1
    else to = middle
  }
  return from
}

/** @returns null for a file that was deleted */
async function openIfThere(path: string): Promise<FileHandle | null> {
  try {
    return await open(path)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null
    throw error
  }
}

async function writeObject(
  output: WriteStream | ReturnType<FileHandle['createWriteStream']>,
  fields: ObjectFields,
  content: AsyncIterable<Buffer>,
  size: number,
): Promise<StoredObject> {
  const digest = createHash('md5')
  let object: StoredObject | undefined
  async function* file() {
    let length = 0
    for await (const piece of content) {
      length += piece.length
      digest.update(piece)
      yield piece
    }
    if (length !== size) throw new LengthError(`the content has ${length} bytes and not ${size}`)
    const version = randomBytes(16).toString('hex')
    object = { ...fields, version, size, etag: digest.digest('hex'), uploaded: Date.now() }
    yield trailerOf(object)
  }
  await pipeline(Readable.from(file()), output)
  if (object === undefined) throw new Error('the object was not written')
  return object
}

function trailerOf(object: StoredObject): Buffer {
  const text = Buffer.from(JSON.stringify(object))
  const length = Buffer.alloc(LENGTH_BYTES)
  length.writeUInt32BE(text.length)
  return Buffer.concat([text, length])
}

/** @returns null for a file that is not as `put` leaves it, as after a power cut, or that was deleted */
function readTrailer(path: string): StoredObject | null {
  let file: number | undefined
  try {
    file = openSync(path, 'r')
    const end = fstatSync(file).size - LENGTH_BYTES
    const length = readAt(file, end, LENGTH_BYTES).readUInt32BE()
    const object = JSON.parse(readAt(file, end - length, length).toString()) as StoredObject
    return object.size === end - length ? object : null
  } catch (error) {
    if (file === undefined && (error as NodeJS.ErrnoException).code !== 'ENOENT') throw error
    return null
  } finally {
    if (file !== undefined) closeSync(file)
  }
}

function readAt(file: number, position: number, length: number): Buffer {
  const bytes = Buffer.alloc(length)
  if (position < 0 || readSync(file, bytes, 0, length, position) !== length) throw new RangeError('too short')
  return bytes
}
