import { RedisError } from './reply.ts'

/** The container of each data type. */
export interface Containers {
  string: string
  hash: Map<string, string>
}

/** A data type, by the name that TYPE reports. */
export type Kind = keyof Containers

/** A stored value; `expiresAt` is in milliseconds since 1970, null for never. */
interface Entry {
  kind: Kind
  value: Containers[Kind]
  expiresAt: number | null
}

/** A key as it is written to a snapshot: key, type, content, expiry. */
export type SnapshotEntry = [
  key: string,
  kind: Kind,
  content: string | [string, string][],
  expiresAt: number | null,
]

/** All keys with their values and expiry times. A key that has expired is gone for every method. */
export class Keyspace {
  readonly #entries = new Map<string, Entry>()
  readonly #clock: () => number
  /** Counts writes, so that an unchanged keyspace is not saved again. */
  changes = 0

  /** @param clock milliseconds since 1970 */
  constructor(clock: () => number) {
    this.#clock = clock
  }

  /** The time by the keyspace's clock, in milliseconds since 1970. */
  now(): number {
    return this.#clock()
  }

  /** @throws RedisError (WRONGTYPE) if the key holds another type */
  get<K extends Kind>(key: string, kind: K): Containers[K] | undefined {
    const entry = this.#live(key)
    if (entry === undefined) return undefined
    if (entry.kind !== kind)
      throw new RedisError('WRONGTYPE Operation against a key holding the wrong kind of value')
    return entry.value as Containers[K]
  }

  /** Replaces whatever is at the key; its expiry is lost unless `keepExpiry`. */
  put<K extends Kind>(key: string, kind: K, value: Containers[K], keepExpiry = false): void {
    const expiresAt = (keepExpiry && this.#live(key)?.expiresAt) || null
    this.#entries.set(key, { kind, value, expiresAt })
    this.changes++
  }

  /** @returns whether there was such a key */
  delete(key: string): boolean {
    this.changes++
    return this.#live(key) !== undefined && this.#entries.delete(key)
  }

  kindOf(key: string): Kind | undefined {
    return this.#live(key)?.kind
  }

  /** When the key expires: a time, `null` for never, nothing if there is no such key. */
  expiryOf(key: string): number | null | undefined {
    return this.#live(key)?.expiresAt
  }

  /** Sets when an existing key expires. A time that has passed deletes it. @returns whether there is such a key */
  setExpiry(key: string, expiresAt: number): boolean {
    const entry = this.#live(key)
    if (entry === undefined) return false
    entry.expiresAt = expiresAt
    this.changes++
    return true
  }

  keys(): string[] {
    return [...this.#entries.keys()].filter((key) => this.#live(key) !== undefined)
  }

  clear(): void {
    this.#entries.clear()
    this.changes++
  }

  /** All live keys in a form that survives JSON. */
  snapshot(): SnapshotEntry[] {
    return this.keys().map((key) => {
      const { kind, value, expiresAt } = this.#entries.get(key) as Entry
      return [key, kind, typeof value === 'string' ? value : [...value], expiresAt]
    })
  }

  /** Adds the keys of a snapshot. */
  restore(entries: SnapshotEntry[]): void {
    for (const [key, kind, content, expiresAt] of entries) {
      const value = typeof content === 'string' ? content : new Map(content)
      this.#entries.set(key, { kind, value, expiresAt })
    }
  }

  #live(key: string): Entry | undefined {
    const entry = this.#entries.get(key)
    if (entry === undefined || entry.expiresAt === null || entry.expiresAt > this.now()) return entry
    this.#entries.delete(key)
    return undefined
  }
}
