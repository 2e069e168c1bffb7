import { joinBytes } from '../../lib/byte-edits.ts'
import { freeBytes } from '../../lib/bytes/free-bytes.ts'
import { pageOfItems } from '../items/item-list.ts'
import type { ItemPage, ItemPageRequest, StoredItem } from '../model/stored-items.ts'
import type { ContextItem } from '../model/types.ts'
import { KEYS_PER_RESPONSE, type Slice } from '../storage/slice.ts'

/** An item without its JSON; `length` is the number of its bytes here, null when the content store has it. */
type ItemHead = Omit<StoredItem, 'body'> & { length: number | null }
/** An item with a view of its JSON in the row. */
type Entry = [head: ItemHead, body: Uint8Array | null]

/** Bytes of the items that share a row: few rows for many small items, and little memory for each row that is read. */
const PART_BYTES = 256 * 1024

/** Bytes of the items that are stored with the head of their response, in an object of many. */
const MOST_ENCLOSED_BYTES = 8 * 1024

/** The items of a small input, their JSON as one text. */
interface SmallInput {
  heads: ItemHead[]
  bodies: string
}

const decoder = new TextDecoder('utf-8', { fatal: false, ignoreBOM: true })

/**
 * The input of a response in the storage of its object, in the order of the request. It may have 50 MB: it is stored as
 * bytes, and read part by part.
 */
export class InputStore {
  readonly #slice: Slice
  /** Number of stored rows. */
  #parts = 0
  #pendingHeads: ItemHead[] = []
  #pendingBodies: Uint8Array[] = []
  #pendingBytes = 0
  /** The first part, if it is stored with the head: it has no row. */
  #small: SmallInput | null

  /** @param small what `flush` has returned. */
  constructor(slice: Slice, small: SmallInput | null = null) {
    this.#slice = slice
    this.#small = small
    this.#parts = small ? 1 : 0
    if (!slice.tables.has('input_parts')) return
    const { sql, firstKey } = slice
    const count = 'SELECT count(*) AS parts FROM input_parts WHERE part >= ? AND part < ?'
    this.#parts += sql.exec<{ parts: number }>(count, firstKey, firstKey + KEYS_PER_RESPONSE).one().parts
  }

  /** Appends an item, which `flush` stores. @param bytes its JSON; null when the content store has it. */
  add({ id, type, role, callId, contentKey }: Omit<StoredItem, 'body'>, bytes: Uint8Array | null): void {
    this.#pendingHeads.push({ id, type, role, callId, contentKey, length: bytes?.length ?? null })
    if (bytes) this.#pendingBodies.push(bytes)
    this.#pendingBytes += bytes?.length ?? 0
    if (this.#pendingBytes >= PART_BYTES) this.flush()
  }

  /**
   * Stores the pending items.
   * @param mayEnclose whether few of them may be returned instead, for the caller to store with the head.
   */
  flush(mayEnclose = false): SmallInput | null {
    if (this.#pendingHeads.length === 0) return null
    if (mayEnclose && this.#parts === 0) this.#small = this.#enclosable()
    if (this.#small && this.#parts === 0) {
      this.#parts = 1
      this.#clearPending()
      return this.#small
    }
    const { sql, tables, firstKey } = this.#slice
    // Rows of a response follow its own.
    this.#slice.open()
    tables.create('input_parts')
    const bodies = new Uint8Array(this.#pendingBytes)
    let end = 0
    for (const body of this.#pendingBodies) {
      bodies.set(body, end)
      end += body.length
    }
    const heads = JSON.stringify(this.#pendingHeads)
    sql.exec('INSERT INTO input_parts VALUES (?, ?, ?)', firstKey + this.#parts++, heads, bodies.buffer)
    freeBytes(bodies)
    this.#clearPending()
    return null
  }

  /** The items for a model. @param read returns the JSON of an item in the content store. */
  async *contextItems(read: (item: StoredItem) => Promise<Uint8Array>): AsyncGenerator<ContextItem> {
    for (let part = 0; part < this.#parts; part++) {
      for (const [{ length: _, ...head }, body] of this.#entries(part)) {
        yield { ...head, bytes: body ?? (await read({ ...head, body: null })) }
      }
    }
  }

  /** The items for Postgres, read part by part. */
  *items(): Generator<StoredItem> {
    for (let part = 0; part < this.#parts; part++) {
      const entries = this.#entries(part)
      for (const [head, body] of entries) yield storedItem(head, body)
      // The bodies are views of one buffer.
      for (const [, body] of entries) if (body) freeBytes(body)
    }
  }

  ids(): string[] {
    return this.#heads().map(({ id }) => id)
  }

  /** A page of the items, limited as a page from Postgres. */
  page(request: ItemPageRequest): ItemPage | 'unknown_item' {
    const page = pageOfItems(this.#heads(), request)
    if (page === 'unknown_item') return page
    const parts = new Map<number, Entry[]>()
    const items = page.items.flatMap(({ part, index }) => {
      const entries = parts.get(part) ?? this.#entries(part)
      parts.set(part, entries)
      const entry = entries[index]
      return entry ? [storedItem(...entry)] : []
    })
    return { items, hasMore: page.hasMore }
  }

  /** To be called when all rows are deleted. */
  reset(): void {
    this.#parts = 0
    this.#small = null
  }

  /** The pending items, if they are few, and text that is the same when it is encoded again. */
  #enclosable(): SmallInput | null {
    if (!this.#slice.live || this.#pendingBytes > MOST_ENCLOSED_BYTES) return null
    const bytes = joinBytes(this.#pendingBodies)
    const bodies = decoder.decode(bytes)
    return Buffer.from(bodies).equals(bytes) ? { heads: this.#pendingHeads, bodies } : null
  }

  #clearPending(): void {
    this.#pendingHeads = []
    this.#pendingBodies = []
    this.#pendingBytes = 0
  }

  #part(part: number): { heads: ItemHead[]; bodies: ArrayBuffer } {
    // A copy of its own: what reads the items may free their bytes.
    if (part === 0 && this.#small)
      return { heads: this.#small.heads, bodies: encoder.encode(this.#small.bodies).buffer as ArrayBuffer }
    const select = 'SELECT heads, bodies FROM input_parts WHERE part = ?'
    const { sql, firstKey } = this.#slice
    const row = sql.exec<{ heads: string; bodies: ArrayBuffer }>(select, firstKey + part).one()
    return { heads: JSON.parse(row.heads), bodies: row.bodies }
  }

  #entries(part: number): Entry[] {
    const { heads, bodies } = this.#part(part)
    let end = 0
    return heads.map((head) => {
      const from = end
      end += head.length ?? 0
      return [head, head.length === null ? null : new Uint8Array(bodies, from, head.length)]
    })
  }

  /** The heads of each row. @param from part of the first row. */
  #storedHeads(from: number): ItemHead[][] {
    if (this.#parts === from) return []
    const { sql, firstKey } = this.#slice
    const select = 'SELECT heads FROM input_parts WHERE part >= ? AND part < ? ORDER BY part'
    const rows = sql.exec<{ heads: string }>(select, firstKey + from, firstKey + this.#parts).toArray()
    return rows.map(({ heads }) => JSON.parse(heads))
  }

  /** The heads of all items, with their row and their index in it. */
  #heads(): Array<ItemHead & { part: number; index: number }> {
    const small = this.#small ? [this.#small.heads] : []
    return [...small, ...this.#storedHeads(small.length)].flatMap((heads, part) =>
      heads.map((head, index) => ({ ...head, part, index })),
    )
  }
}

const encoder = new TextEncoder()

const storedItem = ({ length: _, ...head }: ItemHead, body: Uint8Array | null): StoredItem => ({
  ...head,
  body: body && decoder.decode(body),
})
