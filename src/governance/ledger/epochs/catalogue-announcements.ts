import type { Clock } from '../../../lib/clock.ts'
import { errorText, logEvent } from '../../../lib/log.ts'
import type { KnownEpochs } from './known-epochs.ts'

/** How long a ledger relies on being told, counted from when it asked to be. */
const RELIED_ON_MS = 60_000
/** How long it is told, counted from when it was heard: longer, so that nobody relies on it in vain. */
const TOLD_MS = 75_000
/** Registrations are renewed when this is left of them. */
const RENEWED_MS = 30_000
/** How long to wait after a registration that failed. */
const TRY_AGAIN_MS = 1_000

/**
 * Which ledgers have to be told of a change of the catalogue, and the newest epoch that was announced; in the storage
 * of the deployment's ledger object. So ledgers know the catalogue's epoch without asking anybody for each call.
 */
export class CatalogueSubscribers {
  readonly #sql: SqlStorage
  readonly #clock: Clock

  constructor(sql: SqlStorage, clock: Clock) {
    this.#sql = sql
    this.#clock = clock
    sql.exec(`
      CREATE TABLE IF NOT EXISTS catalogue_subscribers (name TEXT PRIMARY KEY, until INTEGER NOT NULL) WITHOUT ROWID;
      CREATE TABLE IF NOT EXISTS catalogue_announced (id INTEGER PRIMARY KEY CHECK (id = 1), epoch INTEGER NOT NULL);
    `)
  }

  /** @param name of a ledger's object. @returns the newest epoch that was announced; null when none was. */
  register(name: string): number | null {
    const until = this.#clock() + TOLD_MS
    this.#sql.exec('INSERT OR REPLACE INTO catalogue_subscribers (name, until) VALUES (?, ?)', name, until)
    const [row] = this.#sql.exec('SELECT epoch FROM catalogue_announced').toArray()
    return row ? Number(row.epoch) : null
  }

  /** @returns the names of those that have to be told before the announcement is over. */
  announce(epoch: number): string[] {
    this.#sql.exec(
      `INSERT INTO catalogue_announced (id, epoch) VALUES (1, ?)
       ON CONFLICT (id) DO UPDATE SET epoch = max(epoch, excluded.epoch)`,
      epoch,
    )
    this.#sql.exec('DELETE FROM catalogue_subscribers WHERE until <= ?', this.#clock())
    return this.#sql
      .exec('SELECT name FROM catalogue_subscribers')
      .toArray()
      .map((row) => String(row.name))
  }
}

/** The other side: keeps one ledger registered while it admits calls that use the catalogue. Nobody waits for it. */
export class CatalogueRegistration {
  readonly #register: () => Promise<number | null>
  readonly #clock: Clock
  #nextAt = 0

  /** @param register asks the deployment's ledger; resolves with the newest epoch that was announced. */
  constructor(register: () => Promise<number | null>, clock: Clock) {
    this.#register = register
    this.#clock = clock
  }

  /** @returns the work that was begun, null when there is nothing to do yet. It never rejects. */
  renewIfDue(epochs: KnownEpochs): Promise<void> | null {
    const now = this.#clock()
    if (now < this.#nextAt) return null
    this.#nextAt = now + TRY_AGAIN_MS
    return this.#renew(epochs, now)
  }

  async #renew(epochs: KnownEpochs, askedAt: number): Promise<void> {
    try {
      const announced = await this.#register()
      epochs.registered(askedAt + RELIED_ON_MS, announced)
      this.#nextAt = askedAt + RENEWED_MS
    } catch (error) {
      logEvent('warn', 'ledger.registration_failed', { error: errorText(error) })
    }
  }
}
