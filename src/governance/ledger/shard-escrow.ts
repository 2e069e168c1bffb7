import type { Clock } from '../../lib/clock.ts'
import { errorText, logEvent } from '../../lib/log.ts'
import type { LedgerAccount } from './account.ts'
import type { SentEscrow } from './home-escrow.ts'
import type { CreditBalance } from './ledger.ts'

/** How long a shard keeps credits that it does not need, and looks again. */
const KEPT_MS = 60_000
/** How long to wait after a transfer back that failed. */
const TRY_AGAIN_MS = 2_000

/** How a shard reaches the home shard. */
export interface HomeShard {
  sendEscrow(shard: number, number: number, least: number, all: number): Promise<SentEscrow>
  takeEscrow(shard: number, number: number, amount: number): Promise<void>
}

/** Numbers of the last transfers, and what was given up and is not known to be taken. */
export interface EscrowState {
  received: number
  returned: number
  /** Micro-credits; 0 when nothing is on its way. */
  returning: number
}

/** What the home shard asks for to sum up the balance. */
export interface ShardBalance extends CreditBalance, EscrowState {}

/** The side of transfers of every shard but the home shard: what it has came from there, and goes back there. */
export class ShardEscrow {
  readonly #sql: SqlStorage
  readonly #account: LedgerAccount
  readonly #shard: number
  readonly #home: HomeShard
  readonly #clock: Clock
  #state: EscrowState
  #drawing: Promise<boolean> | undefined
  #returning: Promise<void> | undefined
  #tendAt: number
  /** A draw was not answered, perhaps before a restart: what was sent for it is asked for again. */
  #isAnswerDue = true
  /** Settled in all when it was looked last, so that a busy shard keeps what it spends in a while. */
  #spentBefore = 0

  constructor(sql: SqlStorage, account: LedgerAccount, shard: number, home: HomeShard, clock: Clock) {
    this.#sql = sql
    this.#account = account
    this.#shard = shard
    this.#home = home
    this.#clock = clock
    ShardEscrow.begin(sql, { received: 0, returned: 0, returning: 0 })
    const row = sql.exec('SELECT received, returned, on_its_way FROM escrow').one()
    this.#state = {
      received: Number(row.received),
      returned: Number(row.returned),
      returning: Number(row.on_its_way),
    }
    this.#tendAt = clock() + TRY_AGAIN_MS
  }

  /** Writes the state it begins with, if there is none. */
  static begin(sql: SqlStorage, { received, returned, returning }: EscrowState): void {
    sql.exec(`CREATE TABLE IF NOT EXISTS escrow (
      id INTEGER PRIMARY KEY CHECK (id = 1), received INTEGER NOT NULL, returned INTEGER NOT NULL,
      on_its_way INTEGER NOT NULL)`)
    sql.exec('INSERT OR IGNORE INTO escrow VALUES (1, ?, ?, ?)', received, returned, returning)
  }

  balance(): ShardBalance {
    return { ...this.#account.balance(), ...this.#state }
  }

  /**
   * Asks the home shard for credits, once for all that ask at the same time.
   * @param least below which they are of no use. @param all what is lacking in all.
   * @returns whether some came. It never rejects: without an answer there are none.
   */
  draw(least: number, all: number): Promise<boolean> {
    this.#drawing ??= this.#draw(least, all).finally(() => {
      this.#drawing = undefined
    })
    return this.#drawing
  }

  async #draw(least: number, all: number): Promise<boolean> {
    try {
      const next = this.#state.received + 1
      const { number, amount } = await this.#home.sendEscrow(this.#shard, next, least, all)
      this.#isAnswerDue = false
      if (number < next) return false
      if (number > next || amount === 0) {
        // The home shard knows of transfers that went with a storage of this one.
        this.#save({ received: number })
        return false
      }
      this.#transfer(`${number}:received`, amount, { received: number })
      return true
    } catch (error) {
      this.#isAnswerDue = true
      this.#tendAt = Math.min(this.#tendAt, this.#clock() + TRY_AGAIN_MS)
      logEvent('warn', 'ledger.draw_failed', { shard: this.#shard, error: errorText(error) })
      return false
    }
  }

  /** Gives back what is not reserved, but for `keep`; what was given up before is told again first. */
  giveBack(keep = 0): Promise<void> {
    this.#returning ??= this.#giveBack(keep).finally(() => {
      this.#returning = undefined
    })
    return this.#returning
  }

  async #giveBack(keep: number): Promise<void> {
    await this.#finish()
    const amount = this.#account.balance().available - keep
    if (amount <= 0) return
    const number = this.#state.returned + 1
    this.#transfer(`${number}:returned`, -amount, { returned: number, returning: amount })
    await this.#finish()
  }

  async #finish(): Promise<void> {
    const { returned, returning } = this.#state
    if (returning === 0) return
    await this.#home.takeEscrow(this.#shard, returned, returning)
    this.#save({ returning: 0 })
  }

  /** When to look at it again, in milliseconds since the epoch; null when there is nothing to give back. */
  dueAt(): number | null {
    const hasSurplus = this.#account.balance().available > 0 || this.#state.returning > 0
    return hasSurplus || this.#isAnswerDue ? this.#tendAt : null
  }

  /** Gives back what the calls of the last while did not need. It never rejects. */
  async tend(): Promise<void> {
    const now = this.#clock()
    if (now < this.#tendAt) return
    // Nothing new is asked for: the home shard only repeats what it sent under the next number.
    if (this.#isAnswerDue) await this.draw(Number.MAX_SAFE_INTEGER, 0)
    const { spent } = this.#account
    const keep = 2 * (spent - this.#spentBefore)
    this.#spentBefore = spent
    this.#tendAt = now + KEPT_MS
    try {
      await this.giveBack(keep)
    } catch (error) {
      this.#tendAt = now + TRY_AGAIN_MS
      logEvent('warn', 'ledger.return_failed', { shard: this.#shard, error: errorText(error) })
    }
  }

  #transfer(name: string, amount: number, change: Partial<EscrowState>): void {
    const state = { ...this.#state, ...change }
    this.#account.transfer(`${this.#shard}:${name}`, amount, () => this.#write(state))
    this.#state = state
  }

  #save(change: Partial<EscrowState>): void {
    const state = { ...this.#state, ...change }
    this.#write(state)
    this.#state = state
  }

  #write({ received, returned, returning }: EscrowState): void {
    const values = [received, returned, returning]
    this.#sql.exec('UPDATE escrow SET received = ?, returned = ?, on_its_way = ?', ...values)
  }
}
