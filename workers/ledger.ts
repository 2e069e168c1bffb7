import { DurableObject } from 'cloudflare:workers'
import { configurationOf, createDatabase, redisOf } from '../src/deps.ts'
import type { Bindings } from '../src/env.ts'
import { AccountTables } from '../src/ledger/account/account-tables.ts'
import type { AuditedChange } from '../src/ledger/audit-record.ts'
import type { CallColumns, CommitBatch } from '../src/ledger/commits/commit.ts'
import type { CallProgress, CreditGrant } from '../src/ledger/contract.ts'
import { CatalogueSubscribers } from '../src/ledger/epochs/catalogue-announcements.ts'
import type { LearnedEpochs } from '../src/ledger/epochs/known-epochs.ts'
import { callLedger, type LedgerObject, parseLedgerName } from '../src/ledger/ledger-object.ts'
import { escrowOf, homeOf, LedgerShard, type LedgerShardDeps } from '../src/ledger/ledger-shard.ts'
import { Flusher } from '../src/ledger/records/flusher.ts'
import { writeRejectedCounts } from '../src/ledger/rejected-calls/rejected-calls.store.ts'
import { RejectedCalls, type RejectedCount } from '../src/ledger/rejected-calls/rejected-calls.ts'
import { stateCounts } from '../src/ledger/rejected-calls/state-counts.ts'
import { earliest, systemClock } from '../src/lib/clock.ts'
import { logFailuresOf } from '../src/lib/logged-methods.ts'
import { settleAll } from '../src/lib/settle-all.ts'

interface CountedCalls {
  counts: RejectedCalls
  flusher: Flusher<RejectedCount[]>
  /** Records final totals in the deployment's chain. */
  finalFlusher: Flusher<RejectedCount[]>
}

/**
 * The Durable Object behind a shard of an organization's ledger (named `organization:shard`) and, under the names of
 * `rejectedCallsName`, behind the counts of keyless calls. It has the storage, the alarm and the RPC methods.
 */
export class Ledger extends DurableObject<Bindings> implements LedgerObject {
  readonly #deps: LedgerShardDeps
  #shard: LedgerShard | undefined
  #beginning: Promise<LedgerShard> | undefined
  #subscribers: CatalogueSubscribers | undefined
  #rejected: CountedCalls | undefined
  /** Mirror of the stored alarm, because each time it is set costs a row. */
  #alarmAt: number | null = null

  constructor(context: DurableObjectState, environment: Bindings) {
    super(context, environment)
    const configuration = configurationOf(environment)
    this.#deps = {
      storage: context.storage,
      database: createDatabase(configuration),
      redis: redisOf(environment),
      namespace: environment.LEDGER,
      clock: systemClock,
      flushMilliseconds: configuration.LEDGER_FLUSH_MS,
      arrangeAlarm: () => this.#arrangeAlarm(),
    }
    const identity = new AccountTables(context.storage).identity()
    if (identity) this.#shard = new LedgerShard(this.#deps, identity)
    if (RejectedCalls.existIn(context.storage.sql)) this.#countedCalls()
    context.blockConcurrencyWhile(async () => {
      this.#alarmAt = await context.storage.getAlarm()
    })
  }

  async commit(batch: CommitBatch) {
    const shard = this.#shard ?? (await this.#begin())
    return shard.commit(batch)
  }

  async check(call: CallColumns, learned: LearnedEpochs | null) {
    return this.#use((shard) => shard.check(call, learned))
  }

  async extend(callId: string, leaseMilliseconds: number, progress: CallProgress | null) {
    return this.#use(({ account }) => account.extend(callId, leaseMilliseconds, progress))
  }

  async recordChange(change: AuditedChange) {
    return this.#use(({ account }) => account.recordChange(change))
  }

  async grantCredits(grant: CreditGrant) {
    return this.#use((shard) => shard.grantCredits(grant))
  }

  async balance() {
    return this.#use(({ account, others }) => others?.balance() ?? account.balance())
  }

  async learnEpochs(learned: LearnedEpochs) {
    return this.#use((shard) => shard.learnEpochs(learned))
  }

  async registerShard(number: number) {
    return this.#use((shard) => {
      homeOf(shard).escrow.register(number)
      return shard.account.epochs.organization(systemClock())
    })
  }

  async sendEscrow(to: number, number: number, least: number, all: number) {
    return this.#use((shard) => shard.sendEscrow(to, number, least, all))
  }

  async takeEscrow(from: number, number: number, amount: number) {
    return this.#use((shard) => homeOf(shard).escrow.take(from, number, amount))
  }

  async shardBalance() {
    return this.#use((shard) => escrowOf(shard).balance())
  }

  async giveBack() {
    const escrow = escrowOf(this.#shard ?? (await this.#begin()))
    await escrow.giveBack()
    return escrow.balance().balance
  }

  async registerForCatalogue(name: string) {
    return this.#announcements().register(name)
  }

  async announceCatalogue(epoch: number) {
    const learned = { organization: null, catalogue: epoch }
    const names = this.#announcements().announce(epoch)
    await settleAll(
      names.map((name) => callLedger(this.env.LEDGER, name, (ledger) => ledger.learnEpochs(learned))),
    )
  }

  async flush() {
    const source = this.#rejected?.flusher ?? this.#shard ?? (await this.#begin())
    return source.flush().finally(() => this.#arrangeAlarm())
  }

  async chains() {
    return this.#shard?.chains() ?? []
  }

  async countRejected(ip: string, minute: number, surface: string, count: number) {
    this.#countedCalls().counts.count(ip, minute, surface, count)
    this.#arrangeAlarm()
  }

  /** Never throws: the platform stops an alarm that has failed six times. */
  override async alarm() {
    this.#alarmAt = null
    await Promise.all([this.#shard?.runDue(), this.#rejected?.flusher.flush()])
    await this.#rejected?.finalFlusher.flush()
    this.#arrangeAlarm()
  }

  async #use<Result>(use: (shard: LedgerShard) => Result): Promise<Awaited<Result>> {
    const shard = this.#shard ?? (await this.#begin())
    const result = use(shard)
    this.#arrangeAlarm()
    return await result
  }

  /** Begins an account in an empty storage. The next call tries again if Postgres is away. */
  #begin(): Promise<LedgerShard> {
    this.#beginning ??= LedgerShard.begin(this.#deps, parseLedgerName(this.ctx.id.name))
      .then((shard) => {
        this.#shard = shard
        return shard
      })
      .finally(() => {
        this.#beginning = undefined
      })
    return this.#beginning
  }

  #announcements(): CatalogueSubscribers {
    this.#subscribers ??= new CatalogueSubscribers(this.ctx.storage.sql, systemClock)
    return this.#subscribers
  }

  #countedCalls(): CountedCalls {
    if (this.#rejected) return this.#rejected
    const { database, flushMilliseconds, namespace } = this.#deps
    const counts = new RejectedCalls(this.ctx.storage.sql, {
      name: this.ctx.id.name ?? '',
      clock: systemClock,
      write: (batch) => writeRejectedCounts(database, batch),
      state: (batch) => stateCounts(namespace, batch, systemClock()),
    })
    const flusher = new Flusher(counts, systemClock, flushMilliseconds)
    this.#rejected = { counts, flusher, finalFlusher: new Flusher(counts.final, systemClock, 0) }
    return this.#rejected
  }

  /** One alarm serves everything that is due: it is set to the earliest time, and never again to a later one. */
  #arrangeAlarm(): void {
    const counted = this.#rejected
    const next = earliest([
      this.#shard?.dueAt(),
      counted?.flusher.dueAt(),
      counted?.finalFlusher.dueAt(),
      counted?.counts.nextFinalAt(),
    ])
    if (next === null || (this.#alarmAt !== null && this.#alarmAt <= next)) return
    this.#alarmAt = next
    void this.ctx.storage.setAlarm(next)
  }
}

logFailuresOf(Ledger, 'Ledger')
