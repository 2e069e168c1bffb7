import { hasTable } from '../../lib/has-table.ts'
import type { KnownEpoch, StoredEpochs } from '../epochs/known-epochs.ts'
import type { ChainIdentity, ChainLink } from '../records/chain.ts'
import { openingText } from '../records/record-body.ts'
import { CommitSearch } from './commit-search.ts'
import type { OpenCall } from './open-calls.ts'

/** The part of a Durable Object's storage that the ledger uses; all of it is synchronous. */
export type LedgerStorage = Pick<DurableObjectStorage, 'sql' | 'transactionSync'>

/** Chain head and balance (micro-credits) after one record. */
export type AccountState = {
  sequence: number
  hash: string
  balance: number
}

/** A grant of credits that the balance holds already. */
export interface MadeGrant {
  id: string
  amount: number
}

/** A row of the log: the changes of one commit. Lists are lines of text, whose fields are separated by tabs. */
export type CommitRow = AccountState & {
  /** Number of the commit: from 1, without gaps. */
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
  /** Ids of the appended records, in order; `sequence` is that of the last. */
  ids: string
  hashes: string
  bodies: string
}

/** The row of the account. */
type AccountRow = AccountState & {
  /** Sequence of the last record that Postgres has. */
  flushed: number
  /** The first commit that `open_calls` does not include. */
  replayFrom: number
  epochs: StoredEpochs
}

type ReplayedRow = Pick<CommitRow, 'number' | 'at' | 'counted' | 'opened' | 'renewed' | 'ids'>
type RecordsRow = Pick<CommitRow, 'number' | 'at' | 'sequence' | 'previousHash' | 'ids' | 'hashes' | 'bodies'>

/** A row of `open_calls`. */
type StoredCall = Pick<OpenCall, 'id' | 'reserve' | 'deadline' | 'opening' | 'progress'>

const COMMITS = `
  CREATE TABLE IF NOT EXISTS commits (
    number INTEGER PRIMARY KEY, at INTEGER NOT NULL, sequence INTEGER NOT NULL, hash TEXT NOT NULL,
    balance INTEGER NOT NULL, previous_hash TEXT NOT NULL, counted TEXT NOT NULL, opened TEXT NOT NULL,
    renewed TEXT NOT NULL, ids TEXT NOT NULL, hashes TEXT NOT NULL, bodies TEXT NOT NULL);`

const COMMIT_COLUMNS =
  'number, at, sequence, hash, balance, previous_hash, counted, opened, renewed, ids, hashes, bodies'
const COMMIT_VALUES = '?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?'

/** Columns of `account` that came with the log of commits. */
const ADDED_COLUMNS = [
  'replay_from INTEGER NOT NULL DEFAULT 0',
  'epoch INTEGER NOT NULL DEFAULT 0',
  'epoch_confirmed_at INTEGER NOT NULL DEFAULT 0',
  'catalogue_epoch INTEGER NOT NULL DEFAULT 0',
  'catalogue_confirmed_at INTEGER NOT NULL DEFAULT 0',
]

/**
 * The statements over the SQLite tables of one account. Cloudflare bills rows written, and deleted rows like others:
 * hence a log with one row for each commit. A new commit takes the row of the oldest commit that is not needed any
 * more. `open_calls` holds only the calls that were opened so long ago that a restart does not read their commit.
 */
export class AccountTables {
  readonly search: CommitSearch
  readonly #sql: SqlStorage
  readonly #storage: LedgerStorage

  constructor(storage: LedgerStorage) {
    this.#storage = storage
    this.#sql = storage.sql
    this.search = new CommitSearch(storage.sql)
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
   * Upgrades the tables of the version before: grants had no amounts, and instead of the log there was a row for each
   * record (`outbox`) and one for each open call.
   */
  upgrade(): void {
    const grants = this.#sql.exec('PRAGMA table_info(grants)').toArray()
    if (!grants.some(({ name }) => name === 'amount')) {
      this.#sql.exec('ALTER TABLE grants ADD COLUMN amount INTEGER')
    }
    if (!hasTable(this.#sql, 'outbox')) return
    this.#storage.transactionSync(() => {
      for (const column of ADDED_COLUMNS) this.#sql.exec(`ALTER TABLE account ADD COLUMN ${column}`)
      this.#sql.exec(`
        ${COMMITS}
        INSERT INTO commits SELECT sequence, appended_at, sequence, hash, balance, previous_hash, '', '', '', id, hash, body
          FROM outbox ORDER BY sequence;
        DROP TABLE outbox;
      `)
      for (const call of this.storedOpenCalls()) {
        this.storeOpenCall({ ...call, opening: openingText(JSON.parse(call.opening)) })
      }
    })
  }

  /** The chain that this storage holds, or null when it holds none yet. */
  identity(): ChainIdentity | null {
    if (!hasTable(this.#sql, 'account')) return null
    return this.#first<ChainIdentity>('SELECT organization_id AS organizationId, shard FROM account')
  }

  /** Writes the initial state of an account. */
  begin(
    { organizationId, shard }: ChainIdentity,
    { sequence, hash, balance }: AccountState,
    grants: readonly MadeGrant[],
    epochs: StoredEpochs,
  ): void {
    this.#sql.exec(
      `INSERT INTO account (id, organization_id, shard, balance, sequence, hash, flushed)
       VALUES (1, ?, ?, ?, ?, ?, ?)`,
      organizationId,
      shard,
      balance,
      sequence,
      hash,
      sequence,
    )
    this.saveProgress(sequence, 0, epochs)
    for (const grant of grants) this.storeGrant(grant)
  }

  account(): AccountRow {
    const { epoch, confirmedAt, catalogueEpoch, catalogueConfirmedAt, ...account } = this.#sql
      .exec<
        Omit<AccountRow, 'epochs'> & KnownEpoch & { catalogueEpoch: number; catalogueConfirmedAt: number }
      >(
        `SELECT sequence, hash, balance, flushed, replay_from AS replayFrom, epoch, epoch_confirmed_at AS confirmedAt,
           catalogue_epoch AS catalogueEpoch, catalogue_confirmed_at AS catalogueConfirmedAt FROM account`,
      )
      .one()
    const catalogue = { epoch: catalogueEpoch, confirmedAt: catalogueConfirmedAt }
    return { ...account, epochs: { organization: { epoch, confirmedAt }, catalogue } }
  }

  /** @param flushed the last sequence that Postgres has. @param replayFrom the first commit that a restart replays. */
  saveProgress(flushed: number, replayFrom: number, { organization, catalogue }: StoredEpochs): void {
    this.#sql.exec(
      `UPDATE account SET flushed = ?, replay_from = ?, epoch = ?, epoch_confirmed_at = ?, catalogue_epoch = ?,
         catalogue_confirmed_at = ?`,
      flushed,
      replayFrom,
      organization.epoch,
      organization.confirmedAt,
      catalogue.epoch,
      catalogue.confirmedAt,
    )
  }

  /**
   * Stores a commit.
   * @param overwritten number of the commit whose row it takes; null adds a row.
   * @throws when there is no such row.
   */
  append(row: CommitRow, overwritten: number | null): void {
    const values = [
      row.number,
      row.at,
      row.sequence,
      row.hash,
      row.balance,
      row.previousHash,
      row.counted,
      row.opened,
      row.renewed,
      row.ids,
      row.hashes,
      row.bodies,
    ]
    const { rowsWritten } =
      overwritten === null
        ? this.#sql.exec(`INSERT INTO commits (${COMMIT_COLUMNS}) VALUES (${COMMIT_VALUES})`, ...values)
        : this.#sql.exec(
            `UPDATE commits SET (${COMMIT_COLUMNS}) = (${COMMIT_VALUES}) WHERE number = ?`,
            ...values,
            overwritten,
          )
    if (rowsWritten !== 1) throw new Error(`commit ${row.number} wrote ${rowsWritten} rows`)
  }

  /** Bytes of the database. */
  get size(): number {
    return this.#sql.databaseSize
  }

  /** Changes of open calls and windows by the commits from a number on, in order. */
  replay(from: number): Iterable<ReplayedRow> {
    const columns = 'number, at, counted, opened, renewed, ids'
    return this.#sql.exec<ReplayedRow>(
      `SELECT ${columns} FROM commits WHERE number >= ? ORDER BY number`,
      from,
    )
  }

  /** Commits after a number with the records that they appended, in order. */
  *recordsAfter(number: number): Iterable<{ number: number; at: number; links: ChainLink[] }> {
    const cursor = this.#sql.exec<RecordsRow>(
      `SELECT number, at, sequence, previous_hash AS previousHash, ids, hashes, bodies FROM commits
       WHERE number > ? AND ids <> '' ORDER BY number`,
      number,
    )
    for (const row of cursor) yield { number: row.number, at: row.at, links: linksOf(row) }
  }

  /** Commits after a number that opened calls or appended records, the newest first. */
  newestCommits(after: number): Iterable<{ number: number; opened: string; bodies: string }> {
    return this.#sql.exec<{ number: number; opened: string; bodies: string }>(
      `SELECT number, opened, bodies FROM commits WHERE number > ? AND (opened <> '' OR ids <> '') ORDER BY number DESC`,
      after,
    )
  }

  deleteCommitsBefore(number: number): void {
    this.#sql.exec('DELETE FROM commits WHERE number < ?', number)
  }

  storeOpenCall({ id, reserve, deadline, opening, progress }: StoredCall): void {
    this.#sql.exec(
      'INSERT OR REPLACE INTO open_calls (call_id, reserve, deadline, opening, progress) VALUES (?, ?, ?, ?, ?)',
      id,
      reserve,
      deadline,
      opening,
      progress,
    )
  }

  deleteOpenCall(id: string): void {
    this.#sql.exec('DELETE FROM open_calls WHERE call_id = ?', id)
  }

  storedOpenCalls(): StoredCall[] {
    return this.#sql
      .exec<StoredCall>('SELECT call_id AS id, reserve, deadline, opening, progress FROM open_calls')
      .toArray()
  }

  /** @returns null when there is no such grant; its amount is null when it was made before amounts were stored. */
  findGrant(id: string): { amount: number | null } | null {
    return this.#first('SELECT amount FROM grants WHERE id = ?', id)
  }

  storeGrant({ id, amount }: MadeGrant): void {
    this.#sql.exec('INSERT OR IGNORE INTO grants (id, amount) VALUES (?, ?)', id, amount)
  }

  #first<Row extends { [Column in keyof Row]: SqlStorageValue }>(
    query: string,
    ...bindings: SqlStorageValue[]
  ): Row | null {
    return this.#sql.exec<Row>(query, ...bindings).toArray()[0] ?? null
  }
}

function linksOf({ sequence, previousHash, ...lines }: RecordsRow): ChainLink[] {
  const [ids, hashes, bodies] = [lines.ids, lines.hashes, lines.bodies].map((text) => text.split('\n'))
  const first = sequence - (ids?.length ?? 0) + 1
  return (ids ?? []).map((id, index) => ({
    sequence: first + index,
    id,
    previousHash: index === 0 ? previousHash : (hashes?.[index - 1] ?? ''),
    hash: hashes?.[index] ?? '',
    body: bodies?.[index] ?? '',
  }))
}
