import { hasTable } from '../../lib/has-table.ts'

/** The columns of every table that a response stores values in. */
const COLUMNS = {
  state: 'name TEXT, part INTEGER, value TEXT NOT NULL, PRIMARY KEY (name, part)',
  input_parts: 'part INTEGER PRIMARY KEY, heads TEXT NOT NULL, bodies BLOB NOT NULL',
  event_segments:
    'position INTEGER PRIMARY KEY, last_sequence INTEGER NOT NULL, closes INTEGER NOT NULL, body BLOB NOT NULL',
} as const

/** Keys that are no integers: a second index would write a second row. */
const WITHOUT_ROWID: ReadonlySet<string> = new Set(['state'])

type ResponseTable = keyof typeof COLUMNS

/**
 * The tables of an object, each created with its first row: an object that is only queried must store nothing. All responses
 * of an object share the instance, which looks each table up once.
 */
export class Tables {
  readonly #sql: SqlStorage
  readonly #existing = new Map<ResponseTable, boolean>()

  constructor(sql: SqlStorage) {
    this.#sql = sql
  }

  has(name: ResponseTable): boolean {
    const known = this.#existing.get(name)
    if (known !== undefined) return known
    const exists = hasTable(this.#sql, name)
    this.#existing.set(name, exists)
    return exists
  }

  /** Creates the table if it does not exist. In a transaction, `forget` has to follow a failure. */
  create(name: ResponseTable): void {
    if (this.has(name)) return
    const without = WITHOUT_ROWID.has(name) ? ' WITHOUT ROWID' : ''
    this.#sql.exec(`CREATE TABLE IF NOT EXISTS ${name} (${COLUMNS[name]})${without}`)
    this.#existing.set(name, true)
  }

  /** To be called when all storage of the object is deleted, or a transaction with a `create` was rolled back. */
  forget(): void {
    this.#existing.clear()
  }
}
