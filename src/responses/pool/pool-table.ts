import { hasTable } from '../../lib/has-table.ts'
import { KEYS_PER_RESPONSE } from '../storage/slice.ts'
import type { Tables } from '../storage/tables.ts'

/** A response as the table of its object has it. */
export interface PoolRow {
  number: number
  id: string
  /** Whether it has to be continued after a restart of the object. */
  open: boolean
  /** Time of its alarm, in milliseconds since the epoch; null while it is open. */
  due: number | null
  /** Whether its window is closed: it does not exist for its owner any more. */
  closed: boolean
}

/** The responses of an object and their organization. The tables are created with the first response. */
export class PoolTable {
  readonly #storage: DurableObjectStorage
  readonly #tables: Tables
  #exists: boolean

  constructor(storage: DurableObjectStorage, tables: Tables) {
    this.#storage = storage
    this.#tables = tables
    this.#exists = hasTable(storage.sql, 'pool')
  }

  /** Whether anything is stored in the object. */
  get exists(): boolean {
    return this.#exists
  }

  /** Null for an object without responses. */
  get organizationId(): string | null {
    if (!this.#exists) return null
    const select = 'SELECT organization FROM pool'
    return this.#storage.sql.exec<{ organization: string }>(select).one().organization
  }

  rows(): PoolRow[] {
    if (!this.#exists) return []
    const select = 'SELECT number, id, open, due, closed FROM responses ORDER BY number'
    return this.#storage.sql
      .exec<{ number: number; id: string; open: number; due: number | null; closed: number }>(select)
      .toArray()
      .map((row) => ({ ...row, open: row.open === 1, closed: row.closed === 1 }))
  }

  /** @param organizationId that of the object, stored with its first response. */
  insert({ number, id, open, due, closed }: PoolRow, organizationId: string): void {
    this.#create(organizationId)
    const insert = 'INSERT INTO responses VALUES (?, ?, ?, ?, ?)'
    this.#storage.sql.exec(insert, number, id, open ? 1 : 0, due, closed ? 1 : 0)
  }

  update({ number, open, due, closed }: Omit<PoolRow, 'id'>): void {
    const update = 'UPDATE responses SET open = ?, due = ?, closed = ? WHERE number = ?'
    this.#storage.sql.exec(update, open ? 1 : 0, due, closed ? 1 : 0, number)
  }

  /** Deletes everything that a response has stored. @param firstKey, prefix of its slice. */
  delete(number: number, firstKey: number, prefix: string): void {
    const { sql } = this.#storage
    const keys = [firstKey, firstKey + KEYS_PER_RESPONSE]
    this.#storage.transactionSync(() => {
      if (this.#tables.has('event_segments'))
        sql.exec('DELETE FROM event_segments WHERE position >= ? AND position < ?', ...keys)
      if (this.#tables.has('input_parts'))
        sql.exec('DELETE FROM input_parts WHERE part >= ? AND part < ?', ...keys)
      // The last character of Unicode is in no name.
      if (this.#tables.has('state'))
        sql.exec('DELETE FROM state WHERE name >= ? AND name < ?', prefix, `${prefix}\u{10ffff}`)
      sql.exec('DELETE FROM responses WHERE number = ?', number)
    })
  }

  /** Deletes the whole storage of the object. */
  deleteAll(): Promise<void> {
    this.#exists = false
    this.#tables.forget()
    return this.#storage.deleteAll()
  }

  #create(organizationId: string): void {
    if (this.#exists) return
    const { sql } = this.#storage
    this.#storage.transactionSync(() => {
      sql.exec('CREATE TABLE pool (organization TEXT NOT NULL)')
      sql.exec(
        'CREATE TABLE responses (number INTEGER PRIMARY KEY, id TEXT NOT NULL, open INTEGER NOT NULL, due INTEGER, closed INTEGER NOT NULL)',
      )
      sql.exec('INSERT INTO pool VALUES (?)', organizationId)
    })
    this.#exists = true
  }
}
