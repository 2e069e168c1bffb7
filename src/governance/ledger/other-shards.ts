import type { LedgerAccount } from './account.ts'
import { askLedger, type LedgerObject, ledgerName } from './client.ts'
import { HomeEscrow } from './home-escrow.ts'
import type { CreditBalance, Flushed } from './ledger.ts'

/** What the home shard has to do with the other shards of its organization: it answers for all of them. */
export class OtherShards {
  readonly escrow: HomeEscrow
  readonly #account: LedgerAccount
  readonly #namespace: DurableObjectNamespace
  readonly #organizationId: string
  #callingIn: Promise<unknown> | undefined

  constructor(
    sql: SqlStorage,
    account: LedgerAccount,
    namespace: DurableObjectNamespace,
    organizationId: string,
  ) {
    this.escrow = new HomeEscrow(sql, account)
    this.#account = account
    this.#namespace = namespace
    this.#organizationId = organizationId
  }

  register(shard: number): void {
    this.escrow.register({ shard, sent: 0, amount: 0, taken: 0 })
  }

  /** Asks every other shard. @throws when one of them does not answer. */
  async tell<Answer>(use: (shard: LedgerObject) => Promise<Answer>): Promise<void> {
    await Promise.all(this.escrow.shards().map(({ shard }) => this.#ask(shard, use)))
  }

  /**
   * Calls credits in that other shards do not need, where the home shard has too few.
   * @param asking the shard that lacks them, which is not asked; null for the home shard itself.
   * @param least what is lacking. @returns whether there is enough now. It never rejects: a shard that does not answer keeps its own.
   */
  async callIn(asking: number | null, least: number): Promise<boolean> {
    const isEnough = () => this.#account.balance().available >= Math.max(1, asking === null ? 0 : least)
    if (asking !== null && isEnough()) return true
    const others = this.escrow.shards().filter(({ shard }) => shard !== asking)
    if (others.length === 0) return false
    const before = this.#account.balance().available
    this.#callingIn ??= Promise.allSettled(
      others.map(({ shard }) => this.#ask(shard, (object) => object.giveBack())),
    ).finally(() => {
      this.#callingIn = undefined
    })
    await this.#callingIn
    return asking === null ? this.#account.balance().available > before : isEnough()
  }

  /** Of all shards together, with what is on its way between two of them. */
  async balance(): Promise<CreditBalance> {
    const totals = { ...this.#account.balance() }
    const shards = this.escrow.shards()
    const parts = await Promise.all(
      shards.map(({ shard }) => this.#ask(shard, (object) => object.shardBalance())),
    )
    const now = new Map(this.escrow.shards().map((known) => [known.shard, known]))
    for (const [index, { shard, sent, amount }] of shards.entries()) {
      const part = parts[index]
      if (!part) continue
      const sentOnly = part.received < sent ? amount : 0
      const returnedOnly = part.returned > (now.get(shard)?.taken ?? 0) ? part.returning : 0
      totals.balance += part.balance + sentOnly + returnedOnly
      totals.reserved += part.reserved
    }
    return { ...totals, available: totals.balance - totals.reserved }
  }

  /** Writes what is pending at the others to Postgres. @returns what is left behind there. */
  async flush(): Promise<Flushed> {
    const parts = await Promise.all(
      this.escrow.shards().map(({ shard }) => this.#ask(shard, (object) => object.flush())),
    )
    const since = parts.flatMap((part) => part.since ?? []).sort()[0]
    const pending = parts.reduce((sum, part) => sum + part.pending, 0)
    return since === undefined ? { pending } : { pending, since }
  }

  #ask<Answer>(shard: number, use: (object: LedgerObject) => Promise<Answer>): Promise<Answer> {
    return askLedger(this.#namespace, ledgerName(this.#organizationId, shard), use)
  }
}
