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

  constructor(slice: Slice) {
    this.#slice = slice
    if (!slice.tables.has('input_parts')) return
    const { sql, firstKey } = slice
    const count = 'SELECT count(*) AS parts FROM input_parts WHERE part >= ? AND part < ?'
    this.#parts = sql.exec<{ parts: number }>(count, firstKey, firstKey + KEYS_PER_RESPONSE).one().parts
  }

  /** Appends an item, which `flush` stores. @param bytes its JSON; null when the content store has it. */
  add({ id, type, role, callId, contentKey }: Omit<StoredItem, 'body'>, bytes: Uint8Array | null): void {
    this.#pendingHeads.push({ id, type, role, callId, contentKey, length: bytes?.length ?? null })
    if (bytes) this.#pendingBodies.push(bytes)
    this.#pendingBytes += bytes?.length ?? 0
    if (this.#pendingBytes >= PART_BYTES) this.flush()
  }

  flush(): void {
    if (this.#pendingHeads.length === 0) return
    const { sql, tables, firstKey } = this.#slice
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
    this.#pendingHeads = []
    this.#pendingBodies = []
    this.#pendingBytes = 0
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
  }

  #entries(part: number): Entry[] {
    const { sql, firstKey } = this.#slice
    const { heads, bodies } = sql
      .exec<{ heads: string; bodies: ArrayBuffer }>(
        'SELECT heads, bodies FROM input_parts WHERE part = ?',
        firstKey + part,
      )
      .one()
    let end = 0
    return (JSON.parse(heads) as ItemHead[]).map((head) => {
      const from = end
      end += head.length ?? 0
      return [head, head.length === null ? null : new Uint8Array(bodies, from, head.length)]
    })
  }

  /** The heads of all items, with their row and their index in it. */
  #heads(): Array<ItemHead & { part: number; index: number }> {
    if (this.#parts === 0) return []
    const { sql, firstKey } = this.#slice
    const select = 'SELECT heads FROM input_parts WHERE part >= ? AND part < ? ORDER BY part'
    const rows = sql.exec<{ heads: string }>(select, firstKey, firstKey + this.#parts).toArray()
    return rows.flatMap(({ heads }, part) =>
      (JSON.parse(heads) as ItemHead[]).map((head, index) => ({ ...head, part, index })),
    )
  }
}

const storedItem = ({ length: _, ...head }: ItemHead, body: Uint8Array | null): StoredItem => ({
  ...head,
  body: body && decoder.decode(body),
})
