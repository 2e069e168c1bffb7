import type { StoredEpochs } from '../epochs/known-epochs.ts'
import type { ChainIdentity, ChainLink } from '../records/chain.ts'
import { openingText } from '../records/record-body.ts'
import type { OpenCall } from './open-calls.ts'

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

/** One row of the log: what one commit did. Lists are lines of text, whose fields are separated by tabs. */
export interface CommitRow extends AccountState {
  /** From 1, without gaps. */
  number: number
  /** Milliseconds since the epoch. */
  at: number
  /** Hash of the record before the first of this commit. */
  previousHash: string
  /** Calls of each user that were counted in the windows, as JSON. */
  counted: string
  /** Calls that were opened: id, reserve, deadline, estimate, opening. */
  opened: string
  /** Leases that were renewed: id, deadline, progress or nothing. */
  renewed: string
  /** Of the records that were appended, in order of their sequence, of which `sequence` is the last. */
  ids: string
  hashes: string
  bodies: string
}

/** What the row of the account says beside the log. */
export interface AccountRow extends AccountState {
  flushed: number
  /** The first commit that `open_calls` does not take into account. */
  replayFrom: number
  epochs: StoredEpochs
}

const COMMITS = `
  CREATE TABLE IF NOT EXISTS commits (
    number INTEGER PRIMARY KEY, at INTEGER NOT NULL, sequence INTEGER NOT NULL, hash TEXT NOT NULL,
    balance INTEGER NOT NULL, previous_hash TEXT NOT NULL, counted TEXT NOT NULL, opened TEXT NOT NULL,
    renewed TEXT NOT NULL, ids TEXT NOT NULL, hashes TEXT NOT NULL, bodies TEXT NOT NULL);`

/** Columns of `account` that came with the log of commits. */
const ADDED_COLUMNS = [
  'replay_from INTEGER NOT NULL DEFAULT 0',
  'epoch INTEGER NOT NULL DEFAULT 0',
  'epoch_confirmed_at INTEGER NOT NULL DEFAULT 0',
  'catalogue_epoch INTEGER NOT NULL DEFAULT 0',
  'catalogue_confirmed_at INTEGER NOT NULL DEFAULT 0',
]

/**
 * The SQLite tables of one account, and nothing but their statements. Rows written are what an object costs, hence a
 * log: one row for each commit, however much it did. `open_calls` holds only the calls that were opened so long ago
 * that their commit is to be deleted.
 */
export class AccountTables {
  readonly #sql: SqlStorage
  readonly #storage: LedgerStorage

  constructor(storage: LedgerStorage) {
    this.#storage = storage
    this.#sql = storage.sql
  }

  create(): void {
    this.#sql.exec(`
      CREATE TABLE IF NOT EXISTS account (
        id INTEGER PRIMARY KEY CHECK (id = 1), organization_id TEXT NOT NULL, shard INTEGER NOT NULL,
        balance INTEGER NOT NULL, sequence INTEGER NOT NULL, hash TEXT NOT NULL, flushed INTEGER NOT NULL,
        ${ADDED_COLUMNS.join(', ')});
      CREATE TABLE IF NOT EXISTS open_calls (
        call_id TEXT PRIMARY KEY, reserve INTEGER NOT NULL, deadline INTEGER NOT NULL, opening TEXT NOT NULL,
        progress TEXT) WITHOUT ROWID;
      CREATE TABLE IF NOT EXISTS grants (id TEXT PRIMARY KEY, amount INTEGER) WITHOUT ROWID;
      ${COMMITS}
    `)
  }

  /**
   * Brings the tables of a version before up to date: grants had no amounts, and instead of the log there was a row
   * for each record (`outbox`) and one for each open call.
   */
  upgrade(): void {
    const hasColumn = (table: string, column: string) =>
      this.#sql
        .exec(`PRAGMA table_info(${table})`)
        .toArray()
        .some(({ name }) => name === column)
    if (!hasColumn('grants', 'amount')) this.#sql.exec('ALTER TABLE grants ADD COLUMN amount INTEGER')
    if (!hasColumn('outbox', 'sequence')) return
    this.#storage.transactionSync(() => {
      for (const column of ADDED_COLUMNS) this.#sql.exec(`ALTER TABLE account ADD COLUMN ${column}`)
      this.#sql.exec(`
        ${COMMITS}
        INSERT INTO commits SELECT sequence, appended_at, sequence, hash, balance, previous_hash, '', '', '', id, hash, body
          FROM outbox ORDER BY sequence;
        DROP TABLE outbox;
      `)
      this.#upgradeOpenCalls()
    })
  }

  #upgradeOpenCalls(): void {
    for (const { call_id: id, opening } of this.#sql
      .exec('SELECT call_id, opening FROM open_calls')
      .toArray()) {
      const text = openingText(JSON.parse(String(opening)))
      this.#sql.exec('UPDATE open_calls SET opening = ? WHERE call_id = ?', text, id)
    }
  }

  /** Whose account this storage holds, or null when it holds none yet. */
  identity(): ChainIdentity | null {
    const tables = this.#sql.exec("SELECT name FROM sqlite_master WHERE name = 'account'").toArray()
    if (tables.length === 0) return null
    const [row] = this.#sql.exec('SELECT organization_id, shard FROM account').toArray()
    return row ? { organizationId: String(row.organization_id), shard: Number(row.shard) } : null
  }

  /** Writes the state an account begins with. */
  begin(
    identity: ChainIdentity,
    state: AccountState,
    grants: readonly MadeGrant[],
    epochs: StoredEpochs,
  ): void {
    const { sequence, hash, balance } = state
    this.#sql.exec(
      `INSERT INTO account (id, organization_id, shard, balance, sequence, hash, flushed)
       VALUES (1, ?, ?, ?, ?, ?, ?)`,
      ...[identity.organizationId, identity.shard, balance, sequence, hash, sequence],
    )
    this.saveEpochs(epochs)
    for (const grant of grants) this.rememberGrant(grant)
  }

  account(): AccountRow {
    const row = this.#sql.exec('SELECT * FROM account').one()
    return {
      sequence: Number(row.sequence),
      hash: String(row.hash),
      balance: Number(row.balance),
      flushed: Number(row.flushed),
      replayFrom: Number(row.replay_from),
      epochs: {
        organization: { epoch: Number(row.epoch), confirmedAt: Number(row.epoch_confirmed_at) },
        catalogue: { epoch: Number(row.catalogue_epoch), confirmedAt: Number(row.catalogue_confirmed_at) },
      },
    }
  }

  saveEpochs({ organization, catalogue }: StoredEpochs): void {
    this.#sql.exec(
      `UPDATE account SET epoch = ?, epoch_confirmed_at = ?, catalogue_epoch = ?, catalogue_confirmed_at = ?`,
      ...[organization.epoch, organization.confirmedAt, catalogue.epoch, catalogue.confirmedAt],
    )
  }

  /** @param flushed the last sequence that Postgres has. */
  saveProgress(flushed: number, replayFrom: number, { organization, catalogue }: StoredEpochs): void {
    this.#sql.exec(
      `UPDATE account SET flushed = ?, replay_from = ?, epoch = ?, epoch_confirmed_at = ?, catalogue_epoch = ?,
         catalogue_confirmed_at = ?`,
      ...[flushed, replayFrom, organization.epoch, organization.confirmedAt],
      ...[catalogue.epoch, catalogue.confirmedAt],
    )
  }

  append(row: CommitRow): void {
    this.#sql.exec(
      'INSERT INTO commits VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)',
      ...[row.number, row.at, row.sequence, row.hash, row.balance, row.previousHash],
      ...[row.counted, row.opened, row.renewed, row.ids, row.hashes, row.bodies],
    )
  }

  /** The number and the state after it of the newest commit; null when there is none. */
  newest(): (AccountState & { number: number }) | null {
    const [row] = this.#sql
      .exec('SELECT number, sequence, hash, balance FROM commits ORDER BY number DESC LIMIT 1')
      .toArray()
    if (!row) return null
    const { number, sequence, hash, balance } = row
    return {
      number: Number(number),
      sequence: Number(sequence),
      hash: String(hash),
      balance: Number(balance),
    }
  }

  /** What the commits from a number on did to open calls and windows, in order. */
  *replay(
    from: number,
  ): Iterable<Pick<CommitRow, 'number' | 'at' | 'counted' | 'opened' | 'renewed' | 'ids'>> {
    const cursor = this.#sql.exec(
      'SELECT number, at, counted, opened, renewed, ids FROM commits WHERE number >= ? ORDER BY number',
      from,
    )
    for (const row of cursor) {
      const { number, at, counted, opened, renewed, ids } = row
      const texts = { counted: String(counted), opened: String(opened), renewed: String(renewed) }
      yield { number: Number(number), at: Number(at), ...texts, ids: String(ids) }
    }
  }

  /** The last commit whose records all stand at or before a sequence; 0 when there is none. Reads the whole log. */
  lastCommitUpTo(sequence: number): number {
    const row = this.#sql.exec(
      'SELECT coalesce(max(number), 0) AS n FROM commits WHERE sequence <= ?',
      sequence,
    )
    return Number(row.one().n)
  }

  /** The first commit from `from` on that is not older than `instant`; null when all are. Reads only those that are. */
  firstSince(instant: number, from: number): number | null {
    const [row] = this.#sql
      .exec('SELECT number FROM commits WHERE number >= ? AND at >= ? ORDER BY number LIMIT 1', from, instant)
      .toArray()
    return row ? Number(row.number) : null
  }

  /** Commits after a number with the records that they appended, in order. */
  *recordsAfter(number: number): Iterable<{ number: number; at: number; links: ChainLink[] }> {
    const cursor = this.#sql.exec(
      `SELECT number, at, sequence, previous_hash, ids, hashes, bodies FROM commits WHERE number > ? AND ids <> ''
       ORDER BY number`,
      number,
    )
    for (const row of cursor) {
      yield { number: Number(row.number), at: Number(row.at), links: linksOf(row) }
    }
  }

  deleteCommitsBefore(number: number): void {
    this.#sql.exec('DELETE FROM commits WHERE number < ?', number)
  }

  storeOpenCall({ id, reserve, deadline, opening, progress }: OpenCall): void {
    this.#sql.exec(
      'INSERT OR REPLACE INTO open_calls (call_id, reserve, deadline, opening, progress) VALUES (?, ?, ?, ?, ?)',
      ...[id, reserve, deadline, opening, progress],
    )
  }

  deleteOpenCall(id: string): void {
    this.#sql.exec('DELETE FROM open_calls WHERE call_id = ?', id)
  }

  storedOpenCalls(): Array<Pick<OpenCall, 'id' | 'reserve' | 'deadline' | 'opening' | 'progress'>> {
    const rows = this.#sql
      .exec('SELECT call_id, reserve, deadline, opening, progress FROM open_calls')
      .toArray()
    return rows.map((row) => ({
      id: String(row.call_id),
      reserve: Number(row.reserve),
      deadline: Number(row.deadline),
      opening: String(row.opening),
      progress: row.progress === null ? null : String(row.progress),
    }))
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

function linksOf(row: Record<string, SqlStorageValue>): ChainLink[] {
  const [ids, hashes, bodies] = [row.ids, row.hashes, row.bodies].map((lines) => String(lines).split('\n'))
  const first = Number(row.sequence) - (ids?.length ?? 0) + 1
  return (ids ?? []).map((id, index) => ({
    sequence: first + index,
    id,
    previousHash: index === 0 ? String(row.previous_hash) : (hashes?.[index - 1] ?? ''),
    hash: hashes?.[index] ?? '',
    body: bodies?.[index] ?? '',
  }))
}
