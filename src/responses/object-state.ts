import type { Admission, Owner } from './types.ts'

/** Where a response stands in its object. */
export type Phase =
  /** It is being admitted, or was taken back: nobody knows of it. */
  | 'admitting'
  /** It generates. */
  | 'running'
  /** What it became is stored; its last event is not told yet. */
  | 'ending'
  | 'ended'

/** What the object of a response knows of it besides its events. */
export interface ResponseHead {
  phase: Phase
  responseId: string
  owner: Owner
  keyId: string
  model: string
  store: boolean
  conversationId: string | null
  previousResponseId: string | null
  policyVersion: string
  /** Milliseconds since the epoch. */
  createdAt: number
  endedAt: number | null
  /** Postgres may hold a row of it. */
  begun: boolean
  /** Postgres has not got what it became. */
  owed: boolean
}

/** @param now milliseconds since the epoch. */
export const newHead = (admission: Admission, owner: Owner, now: number): ResponseHead => ({
  phase: 'admitting',
  responseId: admission.responseId,
  owner,
  keyId: admission.principal.keyId,
  model: '',
  store: false,
  conversationId: null,
  previousResponseId: null,
  policyVersion: '',
  createdAt: now,
  endedAt: null,
  begun: false,
  owed: false,
})

/** A row may have 2 MB on the platform, and text takes up to three bytes for a character. */
const PART_CHARACTERS = 500_000

/**
 * Named JSON values in the storage of a Durable Object, of any size. Synchronous: what one call writes is there for the
 * next, and durable before anything that follows it leaves the object.
 */
export class ObjectState {
  readonly #sql: SqlStorage

  constructor(sql: SqlStorage) {
    this.#sql = sql
    sql.exec(
      'CREATE TABLE IF NOT EXISTS state (name TEXT, part INTEGER, value TEXT NOT NULL, PRIMARY KEY (name, part)) WITHOUT ROWID',
    )
  }

  /** @returns null for a name that was never put. */
  get<Value>(name: string): Value | null {
    const parts = this.#sql.exec<{ value: string }>(
      'SELECT value FROM state WHERE name = ? ORDER BY part',
      name,
    )
    const text = parts
      .toArray()
      .map(({ value }) => value)
      .join('')
    return text === '' ? null : (JSON.parse(text) as Value)
  }

  put(name: string, value: unknown): void {
    const text = JSON.stringify(value)
    const parts = Math.ceil(text.length / PART_CHARACTERS)
    for (let part = 0; part < parts; part++) {
      const from = part * PART_CHARACTERS
      this.#sql.exec(
        'INSERT OR REPLACE INTO state VALUES (?, ?, ?)',
        name,
        part,
        text.slice(from, from + PART_CHARACTERS),
      )
    }
    this.#sql.exec('DELETE FROM state WHERE name = ? AND part >= ?', name, parts)
  }
}
