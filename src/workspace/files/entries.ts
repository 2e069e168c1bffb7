import { WORKSPACE_LIMITS } from '../limits.ts'
import { FileError } from './file-error.ts'

type EntryType = 'file' | 'directory' | 'symlink'

/** A row of the tree. The content of a file is in rows of its own, since a row holds at most 2 MB. */
export type Entry = {
  id: number
  parent: number
  name: string
  type: EntryType
  mode: number
  /** Milliseconds. */
  modified: number
  size: number
  /** Target of a symbolic link. */
  target: string
}

/** Small enough that an append, which rewrites the last chunk, stays cheap. */
const CHUNK = 64 * 1024
const ROOT = 1

const SCHEMA = [
  `CREATE TABLE IF NOT EXISTS entries (id INTEGER PRIMARY KEY, parent INTEGER NOT NULL, name TEXT NOT NULL, type TEXT NOT NULL,
    mode INTEGER NOT NULL, modified INTEGER NOT NULL, size INTEGER NOT NULL DEFAULT 0, target TEXT NOT NULL DEFAULT '')`,
  'CREATE UNIQUE INDEX IF NOT EXISTS entries_of_folder ON entries (parent, name)',
  `CREATE TABLE IF NOT EXISTS chunks (entry INTEGER NOT NULL, number INTEGER NOT NULL, bytes BLOB NOT NULL,
    PRIMARY KEY (entry, number)) WITHOUT ROWID`,
]
const COLUMNS = 'id, parent, name, type, mode, modified, size, target'

/** The stored tree of a workspace, with its quotas. Works on ids, not paths. */
export class Entries {
  readonly #sql: SqlStorage
  readonly #now: () => number
  #count: number
  #bytes: number

  /** Creates the tables. @param now milliseconds. */
  constructor(sql: SqlStorage, now: () => number) {
    this.#sql = sql
    this.#now = now
    for (const statement of SCHEMA) sql.exec(statement)
    sql.exec(
      `INSERT OR IGNORE INTO entries (id, parent, name, type, mode, modified) VALUES (?, 0, '', 'directory', ?, ?)`,
      ROOT,
      0o755,
      now(),
    )
    const used = sql.exec('SELECT count(*) AS count, coalesce(sum(size), 0) AS bytes FROM entries').one()
    this.#count = Number(used.count)
    this.#bytes = Number(used.bytes)
  }

  root(): Entry {
    return this.byId(ROOT)
  }

  byId(id: number): Entry {
    return this.#sql.exec<Entry>(`SELECT ${COLUMNS} FROM entries WHERE id = ?`, id).one()
  }

  child(parent: number, name: string): Entry | null {
    const rows = this.#sql
      .exec<Entry>(`SELECT ${COLUMNS} FROM entries WHERE parent = ? AND name = ?`, parent, name)
      .toArray()
    return rows[0] ?? null
  }

  children(parent: number): Entry[] {
    return this.#sql
      .exec<Entry>(`SELECT ${COLUMNS} FROM entries WHERE parent = ? ORDER BY name`, parent)
      .toArray()
  }

  /** @throws FileError ENOSPC. @param path for the message. */
  create(parent: number, name: string, type: EntryType, path: string, target = ''): Entry {
    if (this.#count >= WORKSPACE_LIMITS.entries) throw new FileError('ENOSPC', path)
    const mode = type === 'file' ? 0o644 : type === 'directory' ? 0o755 : 0o777
    const created = this.#sql
      .exec<Entry>(
        `INSERT INTO entries (parent, name, type, mode, modified, target) VALUES (?, ?, ?, ?, ?, ?) RETURNING ${COLUMNS}`,
        parent,
        name,
        type,
        mode,
        this.#now(),
        target,
      )
      .one()
    this.#count++
    return created
  }

  content(entry: Entry): Uint8Array {
    const bytes = new Uint8Array(entry.size)
    let at = 0
    const rows = this.#sql.exec<{ bytes: ArrayBuffer }>(
      'SELECT bytes FROM chunks WHERE entry = ? ORDER BY number',
      entry.id,
    )
    for (const row of rows) {
      bytes.set(new Uint8Array(row.bytes), at)
      at += row.bytes.byteLength
    }
    return bytes
  }

  /** Checks the size that a file is going to have; null for a new file. @throws FileError EFBIG or EDQUOT */
  requireRoom(entry: Entry | null, size: number, path: string): void {
    if (size > WORKSPACE_LIMITS.fileBytes) throw new FileError('EFBIG', path)
    if (this.#bytes - (entry?.size ?? 0) + size > WORKSPACE_LIMITS.bytes) throw new FileError('EDQUOT', path)
  }

  replaceContent(entry: Entry, bytes: Uint8Array): void {
    this.#sql.exec('DELETE FROM chunks WHERE entry = ?', entry.id)
    this.#writeChunks(entry.id, 0, bytes)
    this.#setSize(entry, bytes.length)
  }

  appendContent(entry: Entry, bytes: Uint8Array): void {
    const size = entry.size + bytes.length
    const whole = Math.floor(entry.size / CHUNK)
    const last = this.#sql
      .exec<{ bytes: ArrayBuffer }>(
        'SELECT bytes FROM chunks WHERE entry = ? AND number = ?',
        entry.id,
        whole,
      )
      .toArray()[0]
    const begun = new Uint8Array(last?.bytes ?? new ArrayBuffer(0))
    const joined = new Uint8Array(begun.length + bytes.length)
    joined.set(begun)
    joined.set(bytes, begun.length)
    this.#writeChunks(entry.id, whole, joined)
    this.#setSize(entry, size)
  }

  #writeChunks(id: number, first: number, bytes: Uint8Array): void {
    for (let at = 0, number = first; at < bytes.length; at += CHUNK, number++) {
      const chunk = bytes.slice(at, at + CHUNK)
      this.#sql.exec(
        'INSERT OR REPLACE INTO chunks (entry, number, bytes) VALUES (?, ?, ?)',
        id,
        number,
        chunk,
      )
    }
  }

  #setSize(entry: Entry, size: number): void {
    this.#sql.exec('UPDATE entries SET size = ?, modified = ? WHERE id = ?', size, this.#now(), entry.id)
    this.#bytes += size - entry.size
  }

  /** Removes an entry, and what is in it. */
  remove(entry: Entry): void {
    for (const child of entry.type === 'directory' ? this.children(entry.id) : []) this.remove(child)
    this.#sql.exec('DELETE FROM chunks WHERE entry = ?', entry.id)
    this.#sql.exec('DELETE FROM entries WHERE id = ?', entry.id)
    this.#count--
    this.#bytes -= entry.size
  }

  move(entry: Entry, parent: number, name: string): void {
    this.#sql.exec('UPDATE entries SET parent = ?, name = ? WHERE id = ?', parent, name, entry.id)
  }

  setMode(entry: Entry, mode: number): void {
    this.#sql.exec('UPDATE entries SET mode = ? WHERE id = ?', mode & 0o7777, entry.id)
  }

  setModified(entry: Entry, modified: number): void {
    this.#sql.exec('UPDATE entries SET modified = ? WHERE id = ?', modified, entry.id)
  }
}
