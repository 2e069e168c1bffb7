import { type Clock, earliest } from '../../lib/clock.ts'
import { errorText, logEvent } from '../../lib/log.ts'
import type { LedgerAccount } from '../account/account.ts'
import type { CreditBalance } from '../contract.ts'
import { callLedger, type LedgerObject, ledgerName } from '../ledger-object.ts'
import type { SentEscrow } from './home-escrow.ts'

/** Time for which a shard keeps credits that it does not need, before it checks again. */
const KEPT_MS = 60_000
/** Wait before a transfer that was not answered is sent again. */
const TRY_AGAIN_MS = 2_000

/** Numbers of the last transfers, and which of them may not have arrived. */
export interface EscrowState {
  received: number
  /** A draw under the next number is not answered: credits may be on their way here. */
  asked: boolean
  returned: number
  /** Micro-credits that were returned, and that the home shard has not confirmed. */
  returning: number
}

/** A shard's part of the balance, which the home shard sums up. */
export interface ShardBalance extends CreditBalance, EscrowState {}

/** Identity of this shard, and its connection to the home shard. */
interface ShardPlace {
  namespace: DurableObjectNamespace
  organizationId: string
  shard: number
}

/** The side of transfers of every shard but the home shard: its credits come from the home shard and return to it. */
export class ShardEscrow {
  readonly #sql: SqlStorage
  readonly #account: LedgerAccount
  readonly #place: ShardPlace
  readonly #clock: Clock
  readonly #arrangeAlarm: () => void
  #state: EscrowState
  #drawing: { least: number; done: Promise<boolean> } | undefined
  #returning: Promise<void> | undefined
  /** When a surplus is returned, a debt covered, and an unanswered transfer sent again. */
  #surplusAt: number
  #coverAt: number
  #repeatAt: number
  /** `account.spent` when a surplus was last looked for. */
  #spentBefore = 0

  /** @param arrangeAlarm called in the same turn as every write, so that no write is without an alarm. */
  constructor(
    sql: SqlStorage,
    account: LedgerAccount,
    place: ShardPlace,
    clock: Clock,
    arrangeAlarm: () => void,
  ) {
    this.#sql = sql
    this.#account = account
    this.#place = place
    this.#clock = clock
    this.#arrangeAlarm = arrangeAlarm
    ShardEscrow.begin(sql, { received: 0, asked: false, returned: 0, returning: 0 })
    const row = sql
      .exec<Record<keyof EscrowState, number>>(
        'SELECT received, asked, returned, on_its_way AS "returning" FROM escrow',
      )
      .one()
    this.#state = { ...row, asked: row.asked !== 0 }
    const now = clock()
    this.#coverAt = now
    this.#surplusAt = now + TRY_AGAIN_MS
    this.#repeatAt = now + TRY_AGAIN_MS
  }

  /** Writes the initial state, unless there is one. */
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
   * Draws credits from the home shard, one draw at a time. Concurrent calls share its answer, as far as it
   * applies to them.
   * @param least the call has no use for less. @param all the credits that all waiting calls lack.
   * @returns whether some came. It never rejects: without an answer there are none.
   */
  async draw(least: number, all: number): Promise<boolean> {
    for (let other = this.#drawing; other !== undefined; other = this.#drawing) {
      if (await other.done) return true
      if (other.least <= least) return false
    }
    return this.#begin(least, all)
  }

  /** @param refuses the least amount that an empty answer also refuses. */
  #begin(least: number, all: number, refuses = least): Promise<boolean> {
    const done = this.#draw(least, all).finally(() => {
      this.#drawing = undefined
    })
    this.#drawing = { least: refuses, done }
    return done
  }

  async #draw(least: number, all: number): Promise<boolean> {
    const send = (number: number) =>
      this.#callHome((home) => home.sendEscrow(this.#place.shard, number, least, all))
    try {
      this.#repeatAt = this.#clock() + TRY_AGAIN_MS
      if (!this.#state.asked) this.#save({ asked: true })
      const next = this.#state.received + 1
      const answer = await send(next)
      if (answer.number === next) return this.#accept(answer)
      // The home shard has higher numbers, of transfers to a storage that this shard has lost: continue after them.
      this.#save({ received: answer.number })
      return this.#accept(await send(answer.number + 1))
    } catch (error) {
      logEvent('warn', 'ledger.draw_failed', { shard: this.#place.shard, error: errorText(error) })
      return false
    }
  }

  #accept({ number, amount }: SentEscrow): boolean {
    const change = { received: number, asked: false }
    if (amount === 0) this.#save(change)
    else this.#transfer(`${number}:received`, amount, change)
    return amount > 0
  }

  /** Returns what is not reserved, except `keep`, after an earlier return has been confirmed. */
  async giveBack(keep = 0): Promise<void> {
    while (this.#returning !== undefined) await this.#returning.catch(() => {})
    this.#returning = this.#giveBack(keep).finally(() => {
      this.#returning = undefined
    })
    return this.#returning
  }

  async #giveBack(keep: number): Promise<void> {
    await this.#confirmReturn()
    const amount = this.#account.balance().available - keep
    if (amount <= 0) return
    const number = this.#state.returned + 1
    this.#repeatAt = this.#clock() + TRY_AGAIN_MS
    this.#transfer(`${number}:returned`, -amount, { returned: number, returning: amount })
    await this.#confirmReturn()
  }

  /** Sends the last return to the home shard until it is confirmed. */
  async #confirmReturn(): Promise<void> {
    const { returned, returning } = this.#state
    if (returning === 0) return
    await this.#callHome((home) => home.takeEscrow(this.#place.shard, returned, returning))
    this.#save({ returning: 0 })
  }

  /** When `runDue` has something to do, in milliseconds since the epoch; null when nothing is left to do. */
  dueAt(): number | null {
    const { available } = this.#account.balance()
    return earliest([
      this.#isUnanswered() ? this.#repeatAt : null,
      available < 0 ? this.#coverAt : null,
      available > 0 ? this.#surplusAt : null,
    ])
  }

  /** Repeats transfers that were not answered, covers a debt, and returns a surplus. It never rejects. */
  async runDue(): Promise<void> {
    const now = this.#clock()
    if (this.#isUnanswered() && now >= this.#repeatAt) await this.#repeat(now)
    if (this.#account.balance().available < 0 && now >= this.#coverAt) await this.#cover(now)
    if (now >= this.#surplusAt) await this.#returnSurplus(now)
  }

  #isUnanswered(): boolean {
    return this.#state.asked || this.#state.returning > 0
  }

  async #repeat(now: number): Promise<void> {
    this.#repeatAt = now + TRY_AGAIN_MS
    // This message draws nothing new, so that an empty answer refuses no other draw.
    const isAlone = this.#drawing === undefined
    if (this.#state.asked && isAlone) await this.#begin(0, 0, Number.POSITIVE_INFINITY)
    if (this.#state.returning > 0) await this.#tryToGiveBack(Number.MAX_SAFE_INTEGER)
  }

  /**
   * Covers a call that cost more than was reserved for it: the home shard takes over the debt, so that other shards cannot spend
   * the credits.
   */
  async #cover(now: number): Promise<void> {
    this.#coverAt = now + KEPT_MS
    await this.draw(1, -this.#account.balance().available)
    if (this.#account.balance().available >= 0) this.#coverAt = now
  }

  /** Keeps twice what was spent since the last time, so that a busy shard does not draw again at once. */
  async #returnSurplus(now: number): Promise<void> {
    const { spent } = this.#account
    const keep = 2 * (spent - this.#spentBefore)
    this.#spentBefore = spent
    this.#surplusAt = now + KEPT_MS
    if (this.#account.balance().available > keep) await this.#tryToGiveBack(keep)
  }

  async #tryToGiveBack(keep: number): Promise<void> {
    try {
      await this.giveBack(keep)
    } catch (error) {
      logEvent('warn', 'ledger.return_failed', { shard: this.#place.shard, error: errorText(error) })
    }
  }

  #callHome<Answer>(use: (home: LedgerObject) => Promise<Answer>): Promise<Answer> {
    return callLedger(this.#place.namespace, ledgerName(this.#place.organizationId), use)
  }

  #transfer(name: string, amount: number, change: Partial<EscrowState>): void {
    this.#save(change, (write) => this.#account.transfer(`${this.#place.shard}:${name}`, amount, write))
  }

  /** @param store runs the write, with what is stored in one transaction with it. */
  #save(change: Partial<EscrowState>, store: (write: () => void) => void = (write) => write()): void {
    const state = { ...this.#state, ...change }
    const { received, asked, returned, returning } = state
    const values = [received, Number(asked), returned, returning]
    store(() =>
      this.#sql.exec('UPDATE escrow SET received = ?, asked = ?, returned = ?, on_its_way = ?', ...values),
    )
    this.#state = state
    this.#arrangeAlarm()
  }
}
