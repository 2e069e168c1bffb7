import { hasTable } from '../../lib/has-table.ts'

/** The platform allows 2 MB in a row, and a character takes up to three bytes. */
const PART_CHARACTERS = 500_000

/**
 * Named JSON values of any size in the storage of a Durable Object. Writes are synchronous, and durable before anything
 * that follows them leaves the object.
 */
export class StoredValues {
  readonly #sql: SqlStorage
  #tableExists: boolean
  /** Number of parts of each value that this instance has stored, by name. */
  readonly #parts = new Map<string, number>()
  /** The most parts of a value that this instance has not put: none in a table that it has created. */
  #otherParts = Number.POSITIVE_INFINITY

  constructor(sql: SqlStorage) {
    this.#sql = sql
    this.#tableExists = hasTable(sql, 'state')
  }

  /** @returns null for a name that was not put. */
  get<Value>(name: string): Value | null {
    if (!this.#tableExists) return null
    const parts = this.#sql.exec<{ value: string }>(
      'SELECT value FROM state WHERE name = ? ORDER BY part',
      name,
    )
    const text = parts
      .toArray()
      .map(({ value }) => value)
      .join('')
    return text === '' ? null : (JSON.parse(text) as Value)
  }

  put(name: string, value: unknown): void {
    this.#createTable()
    const text = JSON.stringify(value)
    let part = 0
    for (let from = 0, end = 0; from < text.length; from = end, part++) {
      end = endOfPart(text, from)
      this.#sql.exec('INSERT OR REPLACE INTO state VALUES (?, ?, ?)', name, part, text.slice(from, end))
    }
    if ((this.#parts.get(name) ?? this.#otherParts) > part) {
      this.#sql.exec('DELETE FROM state WHERE name = ? AND part >= ?', name, part)
    }
    this.#parts.set(name, part)
  }

  /** To be called when all storage of the object is deleted. */
  reset(): void {
    this.#tableExists = false
    this.#parts.clear()
  }

  /** Called with the first value: an object that is only queried must store nothing. */
  #createTable(): void {
    if (this.#tableExists) return
    this.#sql.exec(
      'CREATE TABLE IF NOT EXISTS state (name TEXT, part INTEGER, value TEXT NOT NULL, PRIMARY KEY (name, part)) WITHOUT ROWID',
    )
    this.#tableExists = true
    this.#otherParts = 0
  }
}

/** Keeps surrogate pairs together: SQLite stores UTF-8, which cannot encode half of a pair. */
function endOfPart(text: string, from: number): number {
  const end = from + PART_CHARACTERS
  const last = text.charCodeAt(end - 1)
  return last >= 0xd800 && last <= 0xdbff ? end - 1 : end
}
