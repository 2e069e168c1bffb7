import type { Clock } from '../../../lib/clock.ts'
import { errorText, logEvent } from '../../../lib/log.ts'
import type { LedgerAccount } from '../account/account.ts'
import type { CreditBalance } from '../contract.ts'
import type { SentEscrow } from './home-escrow.ts'

/** How long a shard keeps credits that it does not need, and looks again. */
const KEPT_MS = 60_000
/** How long to wait before a transfer is asked for again whose answer has not come. */
const TRY_AGAIN_MS = 2_000

/** How a shard reaches the home shard. */
export interface HomeShard {
  sendEscrow(shard: number, number: number, least: number, all: number): Promise<SentEscrow>
  takeEscrow(shard: number, number: number, amount: number): Promise<void>
}

/** Numbers of the last transfers, and what of them is not known to have arrived. */
export interface EscrowState {
  received: number
  /** A draw under the next number is not answered: credits may be on their way here. */
  asked: boolean
  returned: number
  /** Micro-credits that were given up and are not known to be taken. */
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
  readonly #changed: () => void
  #state: EscrowState
  #drawing: { least: number; done: Promise<boolean> } | undefined
  #returning: Promise<void> | undefined
  /** When a surplus is given back, a debt covered, and a transfer without an answer asked for again. */
  #tendAt: number
  #coverAt: number
  #repeatAt: number
  /** Settled in all when it was looked last, so that a busy shard keeps what it spends in a while. */
  #spentBefore = 0

  /** @param changed called in the same turn as every write, so that no write is without an alarm. */
  constructor(
    sql: SqlStorage,
    { account, shard, home }: { account: LedgerAccount; shard: number; home: HomeShard },
    clock: Clock,
    changed: () => void,
  ) {
    this.#sql = sql
    this.#account = account
    this.#shard = shard
    this.#home = home
    this.#clock = clock
    this.#changed = changed
    ShardEscrow.begin(sql, { received: 0, asked: false, returned: 0, returning: 0 })
    const row = sql.exec('SELECT received, asked, returned, on_its_way FROM escrow').one()
    this.#state = {
      received: Number(row.received),
      asked: Number(row.asked) !== 0,
      returned: Number(row.returned),
      returning: Number(row.on_its_way),
    }
    const now = clock()
    this.#coverAt = now
    this.#tendAt = now + TRY_AGAIN_MS
    this.#repeatAt = now + TRY_AGAIN_MS
  }

  /** Writes the state it begins with, if there is none. */
  static begin(sql: SqlStorage, { received, asked, returned, returning }: EscrowState): void {
    sql.exec(`CREATE TABLE IF NOT EXISTS escrow (
      id INTEGER PRIMARY KEY CHECK (id = 1), received INTEGER NOT NULL, asked INTEGER NOT NULL,
      returned INTEGER NOT NULL, on_its_way INTEGER NOT NULL)`)
    const values = [received, Number(asked), returned, returning]
    sql.exec('INSERT OR IGNORE INTO escrow VALUES (1, ?, ?, ?, ?)', ...values)
  }

  balance(): ShardBalance {
    return { ...this.#account.balance(), ...this.#state }
  }

  /**
   * Asks the home shard for credits, one draw at a time: those that ask meanwhile share its answer as far as it holds
   * for them.
   * @param least below which they are of no use. @param all what is lacking in all.
   * @returns whether some came. It never rejects: without an answer there are none.
   */
  async draw(least: number, all: number): Promise<boolean> {
    for (let other = this.#drawing; other !== undefined; other = this.#drawing) {
      if (await other.done) return true
      if (other.least <= least) return false
    }
    return this.#begin(least, all)
  }

  /** @param refuses the least that a refusal of it holds for. */
  #begin(least: number, all: number, refuses = least): Promise<boolean> {
    const done = this.#draw(least, all).finally(() => {
      this.#drawing = undefined
    })
    this.#drawing = { least: refuses, done }
    return done
  }

  async #draw(least: number, all: number): Promise<boolean> {
    try {
      this.#repeatAt = this.#clock() + TRY_AGAIN_MS
      if (!this.#state.asked) this.#save({ asked: true })
      const next = this.#state.received + 1
      const answer = await this.#home.sendEscrow(this.#shard, next, least, all)
      if (answer.number === next) return this.#accept(answer)
      // The home shard knows of transfers that went with a storage of this one: on from there.
      this.#save({ received: answer.number })
      return this.#accept(await this.#home.sendEscrow(this.#shard, answer.number + 1, least, all))
    } catch (error) {
      logEvent('warn', 'ledger.draw_failed', { shard: this.#shard, error: errorText(error) })
      return false
    }
  }

  #accept({ number, amount }: SentEscrow): boolean {
    const change = { received: number, asked: false }
    if (amount === 0) this.#save(change)
    else this.#transfer(`${number}:received`, amount, change)
    return amount > 0
  }

  /** Gives back what is not reserved, but for `keep`; what was given up before is told again first. */
  async giveBack(keep = 0): Promise<void> {
    while (this.#returning !== undefined) await this.#returning.catch(() => {})
    this.#returning = this.#giveBack(keep).finally(() => {
      this.#returning = undefined
    })
    return this.#returning
  }

  async #giveBack(keep: number): Promise<void> {
    await this.#finish()
    const amount = this.#account.balance().available - keep
    if (amount <= 0) return
    const number = this.#state.returned + 1
    this.#repeatAt = this.#clock() + TRY_AGAIN_MS
    this.#transfer(`${number}:returned`, -amount, { returned: number, returning: amount })
    await this.#finish()
  }

  async #finish(): Promise<void> {
    const { returned, returning } = this.#state
    if (returning === 0) return
    await this.#home.takeEscrow(this.#shard, returned, returning)
    this.#save({ returning: 0 })
  }

  /** When to look at it again, in milliseconds since the epoch; null when nothing is left to do. */
  dueAt(): number | null {
    const { available } = this.#account.balance()
    const times = [
      ...(this.#isUnanswered() ? [this.#repeatAt] : []),
      ...(available < 0 ? [this.#coverAt] : []),
      ...(available > 0 ? [this.#tendAt] : []),
    ]
    return times.length === 0 ? null : Math.min(...times)
  }

  /** Asks again for what was not answered, covers a debt, and gives back what is not needed. It never rejects. */
  async tend(): Promise<void> {
    const now = this.#clock()
    if (this.#isUnanswered() && now >= this.#repeatAt) await this.#repeat(now)
    if (this.#account.balance().available < 0 && now >= this.#coverAt) await this.#cover(now)
    if (now >= this.#tendAt) await this.#returnSurplus(now)
  }

  #isUnanswered(): boolean {
    return this.#state.asked || this.#state.returning > 0
  }

  async #repeat(now: number): Promise<void> {
    this.#repeatAt = now + TRY_AGAIN_MS
    // It asks for nothing new, so its answer says nothing of what there is.
    const isAlone = this.#drawing === undefined
    if (this.#state.asked && isAlone) await this.#begin(0, 0, Number.POSITIVE_INFINITY)
    if (this.#state.returning > 0) await this.#tryToGiveBack(Number.MAX_SAFE_INTEGER)
  }

  /** A call cost more than was held for it: what others may not spend any more has to come from the home shard. */
  async #cover(now: number): Promise<void> {
    this.#coverAt = now + KEPT_MS
    await this.draw(1, -this.#account.balance().available)
    if (this.#account.balance().available >= 0) this.#coverAt = now
  }

  async #returnSurplus(now: number): Promise<void> {
    const { spent } = this.#account
    const keep = 2 * (spent - this.#spentBefore)
    this.#spentBefore = spent
    this.#tendAt = now + KEPT_MS
    if (this.#account.balance().available > keep) await this.#tryToGiveBack(keep)
  }

  async #tryToGiveBack(keep: number): Promise<void> {
    try {
      await this.giveBack(keep)
    } catch (error) {
      logEvent('warn', 'ledger.return_failed', { shard: this.#shard, error: errorText(error) })
    }
  }

  #transfer(name: string, amount: number, change: Partial<EscrowState>): void {
    const state = { ...this.#state, ...change }
    this.#account.transfer(`${this.#shard}:${name}`, amount, () => this.#write(state))
    this.#state = state
    this.#changed()
  }

  #save(change: Partial<EscrowState>): void {
    const state = { ...this.#state, ...change }
    this.#write(state)
    this.#state = state
    this.#changed()
  }

  #write({ received, asked, returned, returning }: EscrowState): void {
    const values = [received, Number(asked), returned, returning]
    this.#sql.exec('UPDATE escrow SET received = ?, asked = ?, returned = ?, on_its_way = ?', ...values)
  }
}
