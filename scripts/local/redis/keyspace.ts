import { RedisError, WRONG_TYPE } from './reply.ts'

/** The container of each data type. */
export interface Containers {
  string: string
  hash: Map<string, string>
  set: Set<string>
  zset: Map<string, number>
  list: string[]
}

/** A data type, by the name that TYPE reports. */
export type Kind = keyof Containers

/** A stored value; `expiresAt` is in milliseconds since 1970. */
interface Entry {
  kind: Kind
  value: Containers[Kind]
  expiresAt: number | undefined
}

const EMPTY_CONTAINER: { [K in Kind]: () => Containers[K] } = {
  string: () => '',
  hash: () => new Map(),
  set: () => new Set(),
  zset: () => new Map(),
  list: () => [],
}

/** A key as it is written to a snapshot: key, type, content, expiry. */
export type SnapshotEntry = [key: string, kind: Kind, content: unknown, expiresAt: number | null]

/**
 * All keys with their values and expiry times. A key that has expired is gone for every method, and a container
 * that has become empty is dropped by `settle`: Redis has no empty containers.
 */
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
    if (entry.kind !== kind) throw new RedisError(WRONG_TYPE)
    return entry.value as Containers[K]
  }

  /** The container at a key, made if there is none. Give it content or call `settle`. */
  obtain<K extends Exclude<Kind, 'string'>>(key: string, kind: K): Containers[K] {
    const present = this.get(key, kind)
    if (present !== undefined) return present
    const made = EMPTY_CONTAINER[kind]()
    this.#entries.set(key, { kind, value: made, expiresAt: undefined })
    return made
  }

  /** Replaces whatever is at the key; its expiry is lost unless `keepExpiry`. */
  put<K extends Kind>(key: string, kind: K, value: Containers[K], keepExpiry = false): void {
    const expiresAt = keepExpiry ? this.#live(key)?.expiresAt : undefined
    this.#entries.set(key, { kind, value, expiresAt })
  }

  /** Drops the key if its container is empty. */
  settle(key: string): void {
    const entry = this.#live(key)
    if (entry === undefined || entry.kind === 'string') return
    const { value } = entry
    const size = Array.isArray(value) ? value.length : (value as Map<string, unknown>).size
    if (size === 0) this.#entries.delete(key)
  }

  /** @returns whether there was such a key */
  delete(key: string): boolean {
    return this.#live(key) !== undefined && this.#entries.delete(key)
  }

  kindOf(key: string): Kind | undefined {
    return this.#live(key)?.kind
  }

  has(key: string): boolean {
    return this.#live(key) !== undefined
  }

  /** When the key expires: a time, `null` for never, nothing if there is no such key. */
  expiryOf(key: string): number | null | undefined {
    const entry = this.#live(key)
    return entry === undefined ? undefined : (entry.expiresAt ?? null)
  }

  /** Sets when an existing key expires; `null` for never. A time that has passed deletes it. */
  setExpiry(key: string, expiresAt: number | null): void {
    const entry = this.#live(key)
    if (entry === undefined) return
    if (expiresAt !== null && expiresAt <= this.now()) this.#entries.delete(key)
    else entry.expiresAt = expiresAt ?? undefined
  }

  /** Moves a value with its expiry; what was at the target is lost. */
  rename(from: string, to: string): void {
    const entry = this.#live(from)
    if (entry === undefined) return
    this.#entries.delete(from)
    this.#entries.set(to, entry)
  }

  keys(): string[] {
    return [...this.#entries.keys()].filter((key) => this.#live(key) !== undefined)
  }

  clear(): void {
    this.#entries.clear()
  }

  /** All live keys in a form that survives JSON. */
  snapshot(): SnapshotEntry[] {
    return this.keys().map((key) => {
      const { kind, value, expiresAt } = this.#entries.get(key) as Entry
      return [key, kind, typeof value === 'string' ? value : [...value], expiresAt ?? null]
    })
  }

  /** Replaces everything with a snapshot. */
  restore(entries: SnapshotEntry[]): void {
    this.#entries.clear()
    for (const [key, kind, content, expiresAt] of entries) {
      const value = kind === 'string' || kind === 'list' ? content : fillContainer(kind, content as unknown[])
      this.#entries.set(key, { kind, value: value as Containers[Kind], expiresAt: expiresAt ?? undefined })
    }
  }

  #live(key: string): Entry | undefined {
    const entry = this.#entries.get(key)
    if (entry?.expiresAt !== undefined && entry.expiresAt <= this.now()) {
      this.#entries.delete(key)
      return undefined
    }
    return entry
  }
}

function fillContainer(kind: 'hash' | 'set' | 'zset', content: unknown[]): Containers[Kind] {
  if (kind === 'set') return new Set(content as string[])
  return new Map(content as [string, never][])
}
