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
  /** Whether its window is closed: it does not exist for its owner any more. Earlier releases stored that. */
  closed: boolean
  /** The last commit before `head`: one that follows may have a newer head. */
  since: number
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
    if (this.#exists) this.#upgrade()
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
    const select = 'SELECT number, id, open, due, closed, since FROM responses ORDER BY number'
    return this.#storage.sql
      .exec<Omit<PoolRow, 'open' | 'closed'> & { open: number; closed: number }>(select)
      .toArray()
      .map((row) => ({ ...row, open: row.open === 1, closed: row.closed === 1 }))
  }

  /**
   * The number of the next response. It is higher than that of any row, also of one without a response: a start may fail, or
   * stop in a release before this layout, after it has stored a part.
   */
  get nextNumber(): number {
    if (!this.#exists) return 0
    const keys = ['SELECT max(number) AS number FROM responses']
    // The number is what a name begins with.
    if (this.#tables.has('state')) keys.push('SELECT max(CAST(name AS INTEGER)) FROM state')
    if (this.#tables.has('input_parts')) keys.push(`SELECT max(part) / ${KEYS_PER_RESPONSE} FROM input_parts`)
    if (this.#tables.has('event_segments'))
      keys.push(`SELECT max(position) / ${KEYS_PER_RESPONSE} FROM event_segments`)
    const select = `SELECT max(number) AS number FROM (${keys.join(' UNION ALL ')})`
    return (this.#storage.sql.exec<{ number: number | null }>(select).one().number ?? -1) + 1
  }

  /** @param organizationId that of the object, stored with its first response. */
  insert(
    { number, id, open, due }: PoolRow,
    head: string | null,
    since: number,
    organizationId: string,
  ): void {
    this.#create(organizationId)
    const insert =
      'INSERT INTO responses (number, id, open, due, closed, head, since) VALUES (?, ?, ?, ?, 0, ?, ?)'
    this.#storage.sql.exec(insert, number, id, open ? 1 : 0, due, head, since)
  }

  update({ number, open, due }: Pick<PoolRow, 'number' | 'open' | 'due'>): void {
    const update = 'UPDATE responses SET open = ?, due = ? WHERE number = ?'
    this.#storage.sql.exec(update, open ? 1 : 0, due, number)
  }

  /** The state of a response as JSON; null if its row does not have it. */
  head(number: number): string | null {
    const select = 'SELECT head FROM responses WHERE number = ?'
    return this.#storage.sql.exec<{ head: string | null }>(select, number).toArray()[0]?.head ?? null
  }

  /** @param since number of the last commit. */
  updateWithHead(
    { number, open, due }: Pick<PoolRow, 'number' | 'open' | 'due'>,
    head: string | null,
    since: number,
  ): void {
    const update = 'UPDATE responses SET open = ?, due = ?, head = ?, since = ? WHERE number = ?'
    this.#storage.sql.exec(update, open ? 1 : 0, due, head, since, number)
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
        'CREATE TABLE responses (number INTEGER PRIMARY KEY, id TEXT NOT NULL, open INTEGER NOT NULL, due INTEGER, closed INTEGER NOT NULL, head TEXT, since INTEGER NOT NULL DEFAULT 0)',
      )
      sql.exec('INSERT INTO pool VALUES (?)', organizationId)
    })
    this.#exists = true
  }

  /** Adds the columns that the release before did not have. */
  #upgrade(): void {
    const { sql } = this.#storage
    const columns = sql.exec('PRAGMA table_info(responses)').toArray()
    if (columns.some(({ name }) => name === 'head')) return
    this.#storage.transactionSync(() => {
      sql.exec('ALTER TABLE responses ADD COLUMN head TEXT')
      sql.exec('ALTER TABLE responses ADD COLUMN since INTEGER NOT NULL DEFAULT 0')
    })
  }
}
