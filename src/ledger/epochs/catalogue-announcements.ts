import type { Clock } from '../../lib/clock.ts'
import { hasTable } from '../../lib/has-table.ts'
import { errorText, logEvent } from '../../lib/log.ts'
import { settleAll } from '../../lib/settle-all.ts'
import { callLedger, DEPLOYMENT_LEDGER } from '../ledger-object.ts'
import type { KnownEpochs } from './known-epochs.ts'

/** Time for which a ledger relies on its registration, from its sending. */
const RELIED_ON_MS = 60_000
/**
 * Time for which announcements are sent to a ledger, from the arrival of its registration. Longer than the ledger relies on it.
 */
const REGISTERED_MS = 75_000
/** A registration is renewed after this time. */
const RENEWED_MS = 30_000
/** Wait after a registration that failed. */
const TRY_AGAIN_MS = 1_000

/**
 * The part of the deployment's object that announces changes of the catalogue: the registered ledgers, and the newest epoch
 * that was announced. Registered ledgers have the catalogue's epoch without a request for each call. The tables are made
 * with the first use.
 */
export class CatalogueAnnouncements {
  readonly #sql: SqlStorage
  readonly #namespace: DurableObjectNamespace
  readonly #clock: Clock
  #hasTables = false

  constructor(sql: SqlStorage, namespace: DurableObjectNamespace, clock: Clock) {
    this.#sql = sql
    this.#namespace = namespace
    this.#clock = clock
  }

  #createTables(): void {
    if (this.#hasTables) return
    this.#hasTables = true
    this.#sql.exec(`
      CREATE TABLE IF NOT EXISTS catalogue_subscribers (name TEXT PRIMARY KEY, until INTEGER NOT NULL) WITHOUT ROWID;
      CREATE TABLE IF NOT EXISTS catalogue_announced (id INTEGER PRIMARY KEY CHECK (id = 1), epoch INTEGER NOT NULL);
    `)
  }

  /** The newest epoch that was announced by this object; 0 when none was. */
  announced(): number {
    if (!hasTable(this.#sql, 'catalogue_announced')) return 0
    const [row] = this.#sql.exec<{ epoch: number }>('SELECT epoch FROM catalogue_announced').toArray()
    return row?.epoch ?? 0
  }

  /** @param name of a ledger's object. @returns the newest epoch that was announced; null when none was. */
  register(name: string): number | null {
    this.#createTables()
    const until = this.#clock() + REGISTERED_MS
    this.#sql.exec('INSERT OR REPLACE INTO catalogue_subscribers (name, until) VALUES (?, ?)', name, until)
    const [row] = this.#sql.exec<{ epoch: number }>('SELECT epoch FROM catalogue_announced').toArray()
    return row?.epoch ?? null
  }

  /** @throws when a registered ledger could not get the epoch; the others have it then. */
  async announce(epoch: number): Promise<void> {
    const learned = { organization: null, catalogue: epoch }
    const calls = this.#store(epoch).map((name) =>
      callLedger(this.#namespace, name, (ledger) => ledger.learnEpochs(learned)),
    )
    await settleAll(calls)
  }

  /** @returns the names of the ledgers that have to get the epoch before the announcement has ended. */
  #store(epoch: number): string[] {
    this.#createTables()
    this.#sql.exec(
      `INSERT INTO catalogue_announced (id, epoch) VALUES (1, ?)
       ON CONFLICT (id) DO UPDATE SET epoch = max(epoch, excluded.epoch)`,
      epoch,
    )
    this.#sql.exec('DELETE FROM catalogue_subscribers WHERE until <= ?', this.#clock())
    const rows = this.#sql.exec<{ name: string }>('SELECT name FROM catalogue_subscribers').toArray()
    return rows.map(({ name }) => name)
  }
}

/** Keeps one ledger registered while it admits calls that use the catalogue. No call waits for it. */
export class CatalogueRegistration {
  readonly #namespace: DurableObjectNamespace
  readonly #name: string
  readonly #clock: Clock
  #nextAt = 0

  /** @param name of the ledger's object. */
  constructor(namespace: DurableObjectNamespace, name: string, clock: Clock) {
    this.#namespace = namespace
    this.#name = name
    this.#clock = clock
  }

  renewIfDue(epochs: KnownEpochs): void {
    const now = this.#clock()
    if (now < this.#nextAt) return
    this.#nextAt = now + TRY_AGAIN_MS
    void this.#renew(epochs, now)
  }

  async #renew(epochs: KnownEpochs, now: number): Promise<void> {
    try {
      const announced = await callLedger(this.#namespace, DEPLOYMENT_LEDGER, (ledger) =>
        ledger.registerForCatalogue(this.#name),
      )
      epochs.registered(now + RELIED_ON_MS, announced)
      this.#nextAt = now + RENEWED_MS
    } catch (error) {
      logEvent('warn', 'ledger.registration_failed', { error: errorText(error) })
    }
  }
}
