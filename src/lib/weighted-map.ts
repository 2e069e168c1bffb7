/** Limits of a `WeightedMap`. */
interface Limits {
  /** Most entries. */
  entries: number
  /** Most weight of all entries together, such as estimated bytes. An entry that is heavier by itself is not kept. */
  weight: number
}

/**
 * A map that evicts the entries written longest ago until it is within its limits. For caches at module scope whose values
 * differ in size: an isolate has 128 MB.
 */
export class WeightedMap<Key, Value> {
  readonly #entries = new Map<Key, { value: Value; weight: number }>()
  readonly #limits: Limits
  #weight = 0

  constructor(limits: Limits) {
    this.#limits = limits
  }

  get(key: Key): Value | undefined {
    return this.#entries.get(key)?.value
  }

  /** Writes an entry as the newest one, also if the key exists. */
  set(key: Key, value: Value, weight: number): void {
    this.#evict(key)
    if (weight > this.#limits.weight) return
    this.#entries.set(key, { value, weight })
    this.#weight += weight
    for (const oldest of this.#entries.keys()) {
      if (this.#entries.size <= this.#limits.entries && this.#weight <= this.#limits.weight) return
      this.#evict(oldest)
    }
  }

  #evict(key: Key): void {
    this.#weight -= this.#entries.get(key)?.weight ?? 0
    this.#entries.delete(key)
  }
}
