import type { LedgerAccount } from '../account/account.ts'

/** The answer to a shard that draws credits. */
export interface SentEscrow {
  /** Number of the transfer, from 1 for each shard. */
  number: number
  /** Micro-credits; 0 when nothing was moved under that number, nor ever will be. */
  amount: number
}

/** Another shard of the organization's ledger: the home shard's record of it. */
export type KnownShard = {
  shard: number
  /** Number and amount of the last transfer to it. */
  sent: number
  amount: number
  /** Number of the last transfer back. */
  taken: number
}

/**
 * The home shard's side of transfers. The answer to a number never changes: credits leave with a numbered record, and a number
 * without credits is used up too. So a request that is repeated, or arrives after its sender has stopped waiting, loses no
 * credits. While a transfer is in transit its credits belong to no shard, so that the shards together never hold more than the
 * balance.
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

  /** Adds a shard that is not registered yet: it gets epochs, is part of the balance, and its unused credits can be called in. */
  register(shard: number, { sent, amount, taken } = { sent: 0, amount: 0, taken: 0 }): void {
    this.#sql.exec('INSERT OR IGNORE INTO shards VALUES (?, ?, ?, ?)', shard, sent, amount, taken)
  }

  shards(): KnownShard[] {
    const query = 'SELECT shard, sent, amount, taken FROM shards ORDER BY shard'
    return this.#sql.exec<KnownShard>(query).toArray()
  }

  /**
   * Moves credits to a shard: what it lacks, and more where there is plenty, so that not every call has to wait for them.
   * @param number of the transfer: the one after the last that the shard received. @param least the shard has no use for
   * less. @param all what it lacks for all its calls; 0 requests only the answer to the number.
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

  /** Takes credits back that a shard has returned. Once for each number, however often it is called. */
  take(shard: number, number: number, amount: number): void {
    if (number <= this.#known(shard).taken) return
    this.#account.transfer(`${shard}:${number}:taken`, amount, () =>
      this.#sql.exec('UPDATE shards SET taken = ? WHERE shard = ?', number, shard),
    )
  }

  #known(shard: number): KnownShard {
    this.register(shard)
    return this.shards().find((each) => each.shard === shard) as KnownShard
  }

  #spare(least: number, all: number): number {
    const { available } = this.#account.balance()
    if (available <= 0 || available < least) return 0
    const share = Math.floor(available / (2 * (this.shards().length + 1)))
    return Math.min(available, Math.max(all, share))
  }
}
