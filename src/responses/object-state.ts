import type { OpenedCall } from '../gateway/opened-call.ts'
import type { Usage } from '../governance/credits.ts'
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
  /** What its calls were charged for that are settled. */
  usage: Usage | null
  /** The call that is under way; `after` is the number of the last event before it. */
  openCall: { opened: OpenedCall; after: number } | null
  /** A call whose maker died, with what it is charged for; null once the ledger knows. */
  interruptedCall: { opened: OpenedCall; usage: Usage } | null
  /** Postgres will never take its items: it is written without them. */
  refused?: boolean
}

/** Whose a response becomes. */
export const ownerOf = ({ principal }: Pick<Admission, 'principal'>): Owner => ({
  organizationId: principal.organizationId,
  userId: principal.userId,
})

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
  usage: null,
  openCall: null,
  interruptedCall: null,
})

/** A row may have 2 MB on the platform, and text takes up to three bytes for a character. */
const PART_CHARACTERS = 500_000

/**
 * Named JSON values in the storage of a Durable Object, of any size. Synchronous: what one call writes is there for the
 * next, and durable before anything that follows it leaves the object.
 */
export class ObjectState {
  readonly #sql: SqlStorage
  #tableExists: boolean

  constructor(sql: SqlStorage) {
    this.#sql = sql
    this.#tableExists = sql.exec("SELECT 1 FROM sqlite_master WHERE name = 'state'").toArray().length > 0
  }

  /** @returns null for a name that was never put. */
  get<Value>(name: string): Value | null {
    if (!this.#tableExists) return null
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
    this.#createTable()
    const text = JSON.stringify(value)
    let part = 0
    for (let from = 0, end = 0; from < text.length; from = end, part++) {
      end = endOfPart(text, from)
      this.#sql.exec('INSERT OR REPLACE INTO state VALUES (?, ?, ?)', name, part, text.slice(from, end))
    }
    this.#sql.exec('DELETE FROM state WHERE name = ? AND part >= ?', name, part)
  }

  /** All storage of the object was deleted. */
  forget(): void {
    this.#tableExists = false
  }

  /** With the first value: an object that is only asked leaves nothing behind. */
  #createTable(): void {
    if (this.#tableExists) return
    this.#sql.exec(
      'CREATE TABLE IF NOT EXISTS state (name TEXT, part INTEGER, value TEXT NOT NULL, PRIMARY KEY (name, part)) WITHOUT ROWID',
    )
    this.#tableExists = true
  }
}

/** A pair of surrogates stays together: SQLite holds UTF-8, in which half of one is nothing. */
function endOfPart(text: string, from: number): number {
  const end = from + PART_CHARACTERS
  const last = text.charCodeAt(end - 1)
  return last >= 0xd800 && last <= 0xdbff ? end - 1 : end
}
