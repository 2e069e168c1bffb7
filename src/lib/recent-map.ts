/**
 * A map of what was used a short time ago: an entry that is not read or written for one to two periods is dropped, as are
 * the older half of the entries when it is full. For values that must not stay in memory.
 */
export class RecentMap<Key, Value> {
  readonly #milliseconds: number
  readonly #capacity: number
  #young = new Map<Key, Value>()
  #old = new Map<Key, Value>()
  #youngSince = Number.NEGATIVE_INFINITY

  /** @param milliseconds the period. @param capacity most entries that one period adds, at least 1. */
  constructor(milliseconds: number, capacity: number) {
    this.#milliseconds = milliseconds
    this.#capacity = Math.max(1, capacity)
  }

  /** @param now milliseconds since the epoch. */
  get(key: Key, now: number): Value | undefined {
    this.#dropOld(now)
    const known = this.#young.get(key)
    if (known !== undefined) return known
    const old = this.#old.get(key)
    if (old !== undefined) this.set(key, old, now)
    return old
  }

  /** @param now milliseconds since the epoch. */
  set(key: Key, value: Value, now: number): void {
    this.#dropOld(now)
    if (this.#young.size >= this.#capacity) this.#turn(now)
    this.#young.set(key, value)
  }

  delete(key: Key): void {
    this.#young.delete(key)
    this.#old.delete(key)
  }

  #dropOld(now: number): void {
    const age = now - this.#youngSince
    if (age >= 0 && age < this.#milliseconds) return
    this.#turn(now)
    // Nothing was used for a whole period, or the clock was set back.
    if (age < 0 || age >= 2 * this.#milliseconds) this.#old = new Map()
  }

  #turn(now: number): void {
    this.#old = this.#young
    this.#young = new Map()
    this.#youngSince = now
  }
}
