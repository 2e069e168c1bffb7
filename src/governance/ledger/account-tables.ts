import type { CallOpening } from '../audit-record.ts'
import type { ChainIdentity, ChainLink } from './chain.ts'
import type { CallProgress } from './ledger.ts'

/** The part of a Durable Object's storage that the ledger uses; both are synchronous. */
export type LedgerStorage = Pick<DurableObjectStorage, 'sql' | 'transactionSync'>

/** Where an account stood at one record. */
export interface AccountState {
  sequence: number
  hash: string
  balance: number
}

/** A grant that was made. */
export interface MadeGrant {
  id: string
  amount: number
}

export interface OpenRow {
  opening: CallOpening
  reserve: number
  /** What was last reported, before that the estimate the call was opened with, if any: the first report takes its place. */
  progress: CallProgress | null
}

const SETTLED_CALLS_ARE_CLOSED = `
  CREATE TRIGGER IF NOT EXISTS settled_calls_are_closed AFTER INSERT ON outbox
  BEGIN DELETE FROM open_calls WHERE call_id = NEW.id; END;`

/**
 * The SQLite tables of one account, and nothing but their statements. Rows written are what an object costs, hence:
 * `open_calls` is WITHOUT ROWID (a text key would otherwise be a row and an index entry), nothing has an index, and
 * each outbox row carries the balance after it, so that settling a call writes no third row. A call stops being open
 * with the record that settles it, in one statement.
 */
export class AccountTables {
  readonly #sql: SqlStorage

  constructor(storage: LedgerStorage) {
    this.#sql = storage.sql
  }

  create(): void {
    this.#sql.exec(`
      CREATE TABLE IF NOT EXISTS account (
        id INTEGER PRIMARY KEY CHECK (id = 1), organization_id TEXT NOT NULL, shard INTEGER NOT NULL,
        balance INTEGER NOT NULL, sequence INTEGER NOT NULL, hash TEXT NOT NULL, flushed INTEGER NOT NULL);
      CREATE TABLE IF NOT EXISTS open_calls (
        call_id TEXT PRIMARY KEY, reserve INTEGER NOT NULL, deadline INTEGER NOT NULL, opening TEXT NOT NULL,
        progress TEXT) WITHOUT ROWID;
      CREATE TABLE IF NOT EXISTS outbox (
        sequence INTEGER PRIMARY KEY, id TEXT NOT NULL, appended_at INTEGER NOT NULL, balance INTEGER NOT NULL,
        previous_hash TEXT NOT NULL, hash TEXT NOT NULL, body TEXT NOT NULL);
      CREATE TABLE IF NOT EXISTS grants (id TEXT PRIMARY KEY, amount INTEGER) WITHOUT ROWID;
      ${SETTLED_CALLS_ARE_CLOSED}
    `)
  }

  /** Brings tables of before up to date: calls were closed by a statement of their own, grants kept without amounts. */
  upgrade(): void {
    this.#sql.exec(SETTLED_CALLS_ARE_CLOSED)
    const columns = this.#sql.exec('PRAGMA table_info(grants)').toArray()
    if (columns.some(({ name }) => name === 'amount')) return
    this.#sql.exec('ALTER TABLE grants ADD COLUMN amount INTEGER')
  }

  /** Whose account this storage holds, or null when it holds none yet. */
  identity(): ChainIdentity | null {
    const tables = this.#sql.exec("SELECT name FROM sqlite_master WHERE name = 'account'").toArray()
    if (tables.length === 0) return null
    const [row] = this.#sql.exec('SELECT organization_id, shard FROM account').toArray()
    return row ? { organizationId: String(row.organization_id), shard: Number(row.shard) } : null
  }

  /** Writes the state an account begins with. */
  begin(identity: ChainIdentity, state: AccountState, grants: readonly MadeGrant[]): void {
    this.#sql.exec(
      'INSERT INTO account VALUES (1, ?, ?, ?, ?, ?, ?)',
      ...[identity.organizationId, identity.shard, state.balance, state.sequence, state.hash, state.sequence],
    )
    for (const grant of grants) this.rememberGrant(grant)
  }

  /** The state after the newest record, and the last sequence that Postgres has. */
  state(): AccountState & { flushed: number } {
    const begun = this.#sql.exec('SELECT sequence, hash, balance, flushed FROM account').one()
    const [last] = this.#sql
      .exec('SELECT sequence, hash, balance FROM outbox ORDER BY sequence DESC LIMIT 1')
      .toArray()
    const newest = last ?? begun
    return {
      sequence: Number(newest.sequence),
      hash: String(newest.hash),
      balance: Number(newest.balance),
      flushed: Number(begun.flushed),
    }
  }

  openTotals(): { count: number; reserved: number; firstDeadline: number | null } {
    const row = this.#sql
      .exec(
        'SELECT count(*) AS n, coalesce(sum(reserve), 0) AS reserved, min(deadline) AS first FROM open_calls',
      )
      .one()
    return {
      count: Number(row.n),
      reserved: Number(row.reserved),
      firstDeadline: row.first === null ? null : Number(row.first),
    }
  }

  insertOpen({ opening, reserve, progress }: OpenRow, deadline: number): void {
    this.#sql.exec(
      'INSERT INTO open_calls (call_id, reserve, deadline, opening, progress) VALUES (?, ?, ?, ?, ?)',
      ...[opening.callId, reserve, deadline, JSON.stringify(opening), textOrNull(progress)],
    )
  }

  findOpen(callId: string): OpenRow | null {
    const [row] = this.#sql
      .exec('SELECT reserve, opening, progress FROM open_calls WHERE call_id = ?', callId)
      .toArray()
    if (!row) return null
    return {
      opening: JSON.parse(String(row.opening)),
      reserve: Number(row.reserve),
      progress: row.progress === null ? null : JSON.parse(String(row.progress)),
    }
  }

  /** @returns whether there was such a call. A null progress keeps the one reported before. */
  renewOpen(callId: string, deadline: number, progress: CallProgress | null): boolean {
    const cursor = this.#sql.exec(
      'UPDATE open_calls SET deadline = ?, progress = coalesce(?, progress) WHERE call_id = ?',
      ...[deadline, textOrNull(progress), callId],
    )
    return cursor.rowsWritten > 0
  }

  expiredCallIds(now: number): string[] {
    const rows = this.#sql.exec('SELECT call_id FROM open_calls WHERE deadline <= ? ORDER BY deadline', now)
    return rows.toArray().map((row) => String(row.call_id))
  }

  /** Closes the call that the record is of, if there is one. */
  appendLink(link: ChainLink, balance: number, now: number): void {
    this.#sql.exec(
      'INSERT INTO outbox VALUES (?, ?, ?, ?, ?, ?, ?)',
      ...[link.sequence, link.id, now, balance, link.previousHash, link.hash, link.body],
    )
  }

  /** Records after `sequence`, in order, until there are `most` or their bodies reach `bodyLimit` characters. */
  linksAfter(sequence: number, most: number, bodyLimit: number): ChainLink[] {
    const links: ChainLink[] = []
    let size = 0
    const cursor = this.#sql.exec(
      'SELECT sequence, id, previous_hash, hash, body FROM outbox WHERE sequence > ? ORDER BY sequence LIMIT ?',
      ...[sequence, most],
    )
    for (const row of cursor) {
      const body = String(row.body)
      size += body.length
      if (links.length > 0 && size > bodyLimit) break
      links.push({
        sequence: Number(row.sequence),
        id: String(row.id),
        previousHash: String(row.previous_hash),
        hash: String(row.hash),
        body,
      })
    }
    return links
  }

  /** When the first record after `sequence` was appended; null when there is none. */
  appendedAfter(sequence: number): number | null {
    const [row] = this.#sql
      .exec('SELECT appended_at FROM outbox WHERE sequence > ? ORDER BY sequence LIMIT 1', sequence)
      .toArray()
    return row ? Number(row.appended_at) : null
  }

  /** Ids of the newest records, oldest first. */
  newestIds(most: number): string[] {
    const rows = this.#sql.exec('SELECT id FROM outbox ORDER BY sequence DESC LIMIT ?', most).toArray()
    return rows.map((row) => String(row.id)).reverse()
  }

  markFlushed(sequence: number): void {
    this.#sql.exec('UPDATE account SET flushed = ?', sequence)
  }

  /** The first record that is not older than `instant`; null when all are. Reads only those that are, and one more. */
  firstSince(instant: number): number | null {
    const [row] = this.#sql
      .exec('SELECT sequence FROM outbox WHERE appended_at >= ? ORDER BY sequence LIMIT 1', instant)
      .toArray()
    return row ? Number(row.sequence) : null
  }

  deleteLinksBefore(sequence: number): void {
    this.#sql.exec('DELETE FROM outbox WHERE sequence < ?', sequence)
  }

  /** @returns null when there is no such grant; its amount is null when it was made before amounts were kept. */
  findGrant(id: string): { amount: number | null } | null {
    const [row] = this.#sql.exec('SELECT amount FROM grants WHERE id = ?', id).toArray()
    return row ? { amount: row.amount === null ? null : Number(row.amount) } : null
  }

  rememberGrant({ id, amount }: MadeGrant): void {
    this.#sql.exec('INSERT OR IGNORE INTO grants (id, amount) VALUES (?, ?)', id, amount)
  }
}

const textOrNull = (progress: CallProgress | null) => (progress === null ? null : JSON.stringify(progress))
