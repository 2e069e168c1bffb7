import type { RecordCollection } from '../../node/record-store.ts'
import { RedisError } from '../../node/redis/reply.ts'

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

/** A key as it is recorded, in a form that survives JSON: type, content, expiry. */
export type KeyRecord = [kind: Kind, content: string | [string, string][], expiresAt: number | null]

/** All keys with their values and expiry times. A key that has expired is gone for every method. */
export class Keyspace {
  readonly #entries = new Map<string, Entry>()
  readonly #clock: () => number
  readonly #records: RecordCollection<KeyRecord>

  /** @param clock milliseconds since 1970. @param records the keys to begin with; every change is recorded there. */
  constructor(clock: () => number, records: RecordCollection<KeyRecord>) {
    this.#clock = clock
    this.#records = records
    for (const [key, [kind, content, expiresAt]] of records.entries()) {
      this.#entries.set(key, {
        kind,
        value: typeof content === 'string' ? content : new Map(content),
        expiresAt,
      })
    }
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
    this.#store(key, { kind, value, expiresAt })
  }

  /** @returns whether there was such a key */
  delete(key: string): boolean {
    return this.#live(key) !== undefined && this.#remove(key)
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
    this.#store(key, { ...entry, expiresAt })
    return true
  }

  keys(): string[] {
    return [...this.#entries.keys()].filter((key) => this.#live(key) !== undefined)
  }

  clear(): void {
    for (const key of this.#entries.keys()) this.#remove(key)
  }

  #live(key: string): Entry | undefined {
    const entry = this.#entries.get(key)
    if (entry === undefined || entry.expiresAt === null || entry.expiresAt > this.now()) return entry
    this.#remove(key)
    return undefined
  }

  #store(key: string, entry: Entry): void {
    const { kind, value, expiresAt } = entry
    this.#entries.set(key, entry)
    this.#records.set(key, [kind, typeof value === 'string' ? value : [...value], expiresAt])
  }

  #remove(key: string): boolean {
    this.#records.delete(key)
    return this.#entries.delete(key)
  }
}
