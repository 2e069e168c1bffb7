import type { LedgerAccount } from './account.ts'

/** What a shard is answered that asks for credits. */
export interface SentEscrow {
  /** Of the transfer, from 1 for each shard. */
  number: number
  /** Micro-credits; 0 when nothing was moved. */
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
 * The home shard's side of transfers. Credits leave it with a numbered record, and a shard that asks again under the
 * same number is answered the same: whoever dies in between, they are counted once. While a transfer is on its way its
 * credits belong to nobody, so that the shards never hold more together than the balance.
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
   * @param number of the transfer: the one after the last that the shard has. @param least below which they are of no
   * use to it. @param all what it lacks in all.
   */
  send(shard: number, number: number, least: number, all: number): SentEscrow {
    this.register({ shard, sent: 0, amount: 0, taken: 0 })
    const known = this.shards()
    const { sent, amount: last } = known.find((each) => each.shard === shard) as KnownShard
    if (number <= sent) return { number: sent, amount: number === sent ? last : 0 }
    const { available } = this.#account.balance()
    if (available <= 0 || available < least) return { number: number - 1, amount: 0 }
    const share = Math.floor(available / (2 * (known.length + 1)))
    const amount = Math.min(available, Math.max(all, share))
    this.#account.transfer(`${shard}:${number}:sent`, -amount, () =>
      this.#sql.exec('UPDATE shards SET sent = ?, amount = ? WHERE shard = ?', number, amount, shard),
    )
    return { number, amount }
  }

  /** Takes credits back that a shard has given up. Once for each number, however often it is told. */
  take(shard: number, number: number, amount: number): void {
    this.register({ shard, sent: 0, amount: 0, taken: 0 })
    const known = this.shards().find((each) => each.shard === shard) as KnownShard
    if (number <= known.taken) return
    this.#account.transfer(`${shard}:${number}:taken`, amount, () =>
      this.#sql.exec('UPDATE shards SET taken = ? WHERE shard = ?', number, shard),
    )
  }
}
