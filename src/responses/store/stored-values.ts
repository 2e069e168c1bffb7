import type { Slice } from '../storage/slice.ts'

/** The platform allows 2 MB in a row, and a character takes up to three bytes. */
const PART_CHARACTERS = 500_000

/**
 * Named JSON values of any size in the storage of a Durable Object. Writes are synchronous, and durable before anything
 * that follows them leaves the object.
 */
export class StoredValues {
  readonly #slice: Slice
  /** Number of parts of each value that this instance has stored, by name. */
  readonly #parts = new Map<string, number>()
  /** The most parts of a value that this instance has not put: none in a slice that was empty. */
  #otherParts = Number.POSITIVE_INFINITY

  constructor(slice: Slice) {
    this.#slice = slice
  }

  /** @returns null for a name that was not put. */
  get<Value>(name: string): Value | null {
    if (!this.#slice.tables.has('state')) return null
    const parts = this.#slice.sql.exec<{ value: string }>(
      'SELECT value FROM state WHERE name = ? ORDER BY part',
      this.#slice.prefix + name,
    )
    const text = parts
      .toArray()
      .map(({ value }) => value)
      .join('')
    return text === '' ? null : (JSON.parse(text) as Value)
  }

  put(name: string, value: unknown): void {
    const { sql, tables, prefix } = this.#slice
    tables.create('state')
    const key = prefix + name
    const text = JSON.stringify(value)
    let part = 0
    for (let from = 0, end = 0; from < text.length; from = end, part++) {
      end = endOfPart(text, from)
      sql.exec('INSERT OR REPLACE INTO state VALUES (?, ?, ?)', key, part, text.slice(from, end))
    }
    if ((this.#parts.get(name) ?? this.#otherParts) > part) {
      sql.exec('DELETE FROM state WHERE name = ? AND part >= ?', key, part)
    }
    this.#parts.set(name, part)
  }

  /** To be called when nothing is stored: before the first value, and when all of them are deleted. */
  reset(): void {
    this.#parts.clear()
    this.#otherParts = 0
  }
}

/** Keeps surrogate pairs together: SQLite stores UTF-8, which cannot encode half of a pair. */
function endOfPart(text: string, from: number): number {
  const end = from + PART_CHARACTERS
  const last = text.charCodeAt(end - 1)
  return last >= 0xd800 && last <= 0xdbff ? end - 1 : end
}
