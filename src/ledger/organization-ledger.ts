import { AccountTables } from './account/account-tables.ts'
import type { Flushed } from './contract.ts'
import { parseLedgerName } from './ledger-object.ts'
import { LedgerShard, type LedgerShardDeps } from './ledger-shard.ts'

/** The part of a ledger's object that holds a shard of an organization's account. An empty storage has none yet. */
export class OrganizationLedger {
  readonly #deps: LedgerShardDeps
  readonly #name: string | undefined
  #shard: LedgerShard | undefined
  #beginning: Promise<LedgerShard> | undefined

  /** Loads the shard if this storage has one. @param name of the object, undefined where it was found by its id. */
  constructor(deps: LedgerShardDeps, name: string | undefined) {
    this.#deps = deps
    this.#name = name
    const identity = new AccountTables(deps.storage).identity()
    if (identity) this.#shard = new LedgerShard(deps, identity)
  }

  /** The shard if it was begun; nothing is begun for the question. */
  get begun(): LedgerShard | undefined {
    return this.#shard
  }

  /** Begins an account in an empty storage. The next call tries again if Postgres is away. @throws what `LedgerShard.begin` throws. */
  async shard(): Promise<LedgerShard> {
    return this.#shard ?? (await this.#begin())
  }

  /** Uses the shard, and sets the alarm by what that left, in the same turn. */
  async use<Result>(use: (shard: LedgerShard) => Result): Promise<Awaited<Result>> {
    const shard = this.#shard ?? (await this.#begin())
    const result = use(shard)
    this.#deps.arrangeAlarm()
    return await result
  }

  async flush(): Promise<Flushed> {
    return (await this.shard()).flush()
  }

  /** When `runDue` has something to do, in milliseconds since the epoch; null when nothing is pending. */
  dueAt(): number | null {
    return this.#shard?.dueAt() ?? null
  }

  async runDue(): Promise<void> {
    await this.#shard?.runDue()
  }

  #begin(): Promise<LedgerShard> {
    const begin = async () => {
      this.#shard = await LedgerShard.begin(this.#deps, parseLedgerName(this.#name))
      return this.#shard
    }
    this.#beginning ??= begin().finally(() => {
      this.#beginning = undefined
    })
    return this.#beginning
  }
}
