import { freeBytes } from '../../lib/bytes/free-bytes.ts'
import { pageOfItems } from '../items/item-list.ts'
import type { ItemPage, ItemPageRequest, StoredItem } from '../items/items.store.ts'
import type { ContextItem } from '../types.ts'

/** An item without its content; `length` is the number of its bytes here, null when it lies elsewhere. */
type ItemHead = Omit<StoredItem, 'body'> & { length: number | null }

/** Bytes of items that are kept in one row: few rows for many small items, and what is read at a time for large ones. */
const PART_BYTES = 256 * 1024

const decoder = new TextDecoder('utf-8', { fatal: false, ignoreBOM: true })

/**
 * The input of a response in the storage of its object, in the order of the request. It may be 50 MB: it is kept as
 * bytes, and what is read of it is read part by part.
 */
export class InputStore {
  readonly #sql: SqlStorage
  #tableExists: boolean
  #parts: number
  /** What is not written yet. */
  #heads: ItemHead[] = []
  #bodies: Uint8Array[] = []
  #bytes = 0

  constructor(sql: SqlStorage) {
    this.#sql = sql
    const found = sql.exec("SELECT 1 FROM sqlite_master WHERE name = 'input_parts'")
    this.#tableExists = found.toArray().length > 0
    this.#parts = this.#tableExists
      ? sql.exec<{ parts: number }>('SELECT count(*) AS parts FROM input_parts').one().parts
      : 0
  }

  /** Keeps one more item, once `flush` was called. @param bytes the item as JSON; null when it lies elsewhere. */
  add(item: Omit<StoredItem, 'body'>, bytes: Uint8Array | null): void {
    const { id, type, role, callId, contentKey } = item
    this.#heads.push({ id, type, role, callId, contentKey, length: bytes?.length ?? null })
    if (bytes) this.#bodies.push(bytes)
    this.#bytes += bytes?.length ?? 0
    if (this.#bytes >= PART_BYTES) this.flush()
  }

  flush(): void {
    if (this.#heads.length === 0) return
    this.#createTable()
    const bodies = new Uint8Array(this.#bytes)
    let end = 0
    for (const body of this.#bodies) {
      bodies.set(body, end)
      end += body.length
    }
    const heads = JSON.stringify(this.#heads)
    this.#sql.exec('INSERT INTO input_parts VALUES (?, ?, ?)', this.#parts++, heads, bodies.buffer)
    freeBytes(bodies)
    this.#heads = []
    this.#bodies = []
    this.#bytes = 0
  }

  /** The items as they are told to a model. @param read gives what lies elsewhere. */
  async *contextItems(read: (item: StoredItem) => Promise<Uint8Array>): AsyncGenerator<ContextItem> {
    for (const { heads, bodies } of this.#stored()) {
      for (const [{ id, type, role, callId, contentKey }, body] of withBodies(heads, bodies)) {
        const bytes = body ?? (await read({ id, type, role, callId, contentKey, body: null }))
        yield { id, type, role, callId, bytes }
      }
    }
  }

  /** The items as Postgres has them; each is read when it is asked for. */
  *items(): Generator<StoredItem> {
    for (const { heads, bodies } of this.#stored()) {
      for (const [head, body] of withBodies(heads, bodies)) yield storedItem(head, body)
      freeBytes(new Uint8Array(bodies))
    }
  }

  ids(): string[] {
    return this.#headsOfParts().flatMap((heads) => heads.map(({ id }) => id))
  }

  /** A page of the items, cut as Postgres cuts it. */
  page(request: ItemPageRequest): ItemPage | 'unknown_item' {
    const places = this.#headsOfParts().flatMap((heads, part) =>
      heads.map((head, place) => ({ ...head, part, place })),
    )
    const page = pageOfItems(places, request)
    if (page === 'unknown_item') return page
    const parts = new Map<number, StoredItem[]>()
    const items = page.items.flatMap(({ part, place }) => {
      const read = parts.get(part) ?? this.#partItems(part)
      parts.set(part, read)
      return read[place] ?? []
    })
    return { items, hasMore: page.hasMore }
  }

  /** All storage of the object is deleted. */
  forget(): void {
    this.#tableExists = false
    this.#parts = 0
  }

  #partItems(part: number): StoredItem[] {
    const { heads, bodies } = this.#part(part)
    return [...withBodies(heads, bodies)].map(([head, body]) => storedItem(head, body))
  }

  *#stored(): Generator<{ heads: ItemHead[]; bodies: ArrayBuffer }> {
    for (let part = 0; part < this.#parts; part++) yield this.#part(part)
  }

  #part(part: number): { heads: ItemHead[]; bodies: ArrayBuffer } {
    const row = this.#sql
      .exec<{ heads: string; bodies: ArrayBuffer }>(
        'SELECT heads, bodies FROM input_parts WHERE part = ?',
        part,
      )
      .one()
    return { heads: JSON.parse(row.heads), bodies: row.bodies }
  }

  #headsOfParts(): ItemHead[][] {
    if (!this.#tableExists) return []
    const rows = this.#sql.exec<{ heads: string }>('SELECT heads FROM input_parts ORDER BY part')
    return [...rows].map(({ heads }) => JSON.parse(heads) as ItemHead[])
  }

  /** With the first item: an object that is only asked leaves nothing behind. */
  #createTable(): void {
    if (this.#tableExists) return
    this.#sql.exec(
      'CREATE TABLE input_parts (part INTEGER PRIMARY KEY, heads TEXT NOT NULL, bodies BLOB NOT NULL)',
    )
    this.#tableExists = true
  }
}

function* withBodies(
  heads: readonly ItemHead[],
  bodies: ArrayBuffer,
): Generator<[head: ItemHead, body: Uint8Array | null]> {
  let end = 0
  for (const head of heads) {
    const from = end
    end += head.length ?? 0
    yield [head, head.length === null ? null : new Uint8Array(bodies, from, head.length)]
  }
}

const storedItem = ({ length: _, ...head }: ItemHead, body: Uint8Array | null): StoredItem => ({
  ...head,
  body: body && decoder.decode(body),
})
