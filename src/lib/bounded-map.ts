/**
 * A map that evicts the entry written longest ago when it is full. For caches at module scope: an isolate lives for hours
 * and serves any number of callers.
 */
export class BoundedMap<Key, Value> {
  readonly #entries = new Map<Key, Value>()
  readonly #capacity: number

  /** @param capacity most entries kept, at least 1. */
  constructor(capacity: number) {
    this.#capacity = Math.max(1, capacity)
  }

  get size(): number {
    return this.#entries.size
  }

  get(key: Key): Value | undefined {
    return this.#entries.get(key)
  }

  /** Writes an entry as the newest one, also if the key exists. */
  set(key: Key, value: Value): void {
    this.#entries.delete(key)
    this.#entries.set(key, value)
    if (this.#entries.size <= this.#capacity) return
    for (const oldest of this.#entries.keys()) {
      this.#entries.delete(oldest)
      return
    }
  }

  delete(key: Key): void {
    this.#entries.delete(key)
  }

  clear(): void {
    this.#entries.clear()
  }
}
