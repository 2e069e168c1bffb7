import type { LedgerAccount } from '../account/account.ts'

/** What a shard is answered that asks for credits. */
export interface SentEscrow {
  /** Of the transfer, from 1 for each shard. */
  number: number
  /** Micro-credits; 0 when nothing was moved under that number, nor ever will be. */
  amount: number
}

/** Another shard of the organization's ledger, as the home shard knows it. */
export interface KnownShard {
  shard: number
  /** Number and amount of the last transfer to it. */
  sent: number
  amount: number
  /** Number of the last transfer back. */
  taken: number
}

/**
 * The home shard's side of transfers. A number is answered once and for all: credits leave with a numbered record, and a
 * number that nothing was sent for is used up too. So a question that is repeated, or arrives after its asker has given
 * up, moves nothing that nobody hears of. While a transfer is on its way its credits belong to no shard, so that the
 * shards never hold more together than the balance.
 */
export class HomeEscrow {
  readonly #sql: SqlStorage
  readonly #account: LedgerAccount

  constructor(sql: SqlStorage, account: LedgerAccount) {
    this.#sql = sql
    this.#account = account
    sql.exec(`CREATE TABLE IF NOT EXISTS shards (
      shard INTEGER PRIMARY KEY, sent INTEGER NOT NULL, amount INTEGER NOT NULL, taken INTEGER NOT NULL)`)
  }

  /** Notes that there is such a shard: it is told of epochs, asked for its balance, and called upon for credits. */
  register({ shard, sent, amount, taken }: KnownShard): void {
    this.#sql.exec('INSERT OR IGNORE INTO shards VALUES (?, ?, ?, ?)', shard, sent, amount, taken)
  }

  shards(): KnownShard[] {
    return this.#sql
      .exec('SELECT shard, sent, amount, taken FROM shards ORDER BY shard')
      .toArray()
      .map((row) => ({
        shard: Number(row.shard),
        sent: Number(row.sent),
        amount: Number(row.amount),
        taken: Number(row.taken),
      }))
  }

  /**
   * Moves credits to a shard: what it lacks, and more where there is plenty, so that it need not ask for every call.
   * @param number of the transfer: the one after the last that the shard knows. @param least below which they are of no
   * use to it. @param all what it lacks in all; 0 asks only what became of the number.
   */
  send(shard: number, number: number, least: number, all: number): SentEscrow {
    const { sent, amount: last } = this.#known(shard)
    if (number <= sent) return { number: sent, amount: number === sent ? last : 0 }
    const amount = all === 0 ? 0 : this.#spare(least, all)
    const note = () =>
      this.#sql.exec('UPDATE shards SET sent = ?, amount = ? WHERE shard = ?', number, amount, shard)
    if (amount === 0) note()
    else this.#account.transfer(`${shard}:${number}:sent`, -amount, note)
    return { number, amount }
  }

  /** Takes credits back that a shard has given up. Once for each number, however often it is told. */
  take(shard: number, number: number, amount: number): void {
    if (number <= this.#known(shard).taken) return
    this.#account.transfer(`${shard}:${number}:taken`, amount, () =>
      this.#sql.exec('UPDATE shards SET taken = ? WHERE shard = ?', number, shard),
    )
  }

  #known(shard: number): KnownShard {
    this.register({ shard, sent: 0, amount: 0, taken: 0 })
    return this.shards().find((each) => each.shard === shard) as KnownShard
  }

  #spare(least: number, all: number): number {
    const { available } = this.#account.balance()
    if (available <= 0 || available < least) return 0
    const share = Math.floor(available / (2 * (this.shards().length + 1)))
    return Math.min(available, Math.max(all, share))
  }
}
