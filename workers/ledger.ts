import { DurableObject } from 'cloudflare:workers'
import { configurationOf, createDatabase, redisOf } from '../src/deps.ts'
import type { Bindings } from '../src/env.ts'
import type { AuditedChange } from '../src/governance/audit-record.ts'
import { loadAccount } from '../src/governance/ledger/account/account.store.ts'
import { LedgerAccount } from '../src/governance/ledger/account/account.ts'
import { AccountTables } from '../src/governance/ledger/account/account-tables.ts'
import {
  type CallColumns,
  type CommitBatch,
  emptyClosings,
  type InvalidEntry,
} from '../src/governance/ledger/commits/commit.ts'
import type { Admission, CallProgress, CreditGrant } from '../src/governance/ledger/contract.ts'
import {
  CatalogueRegistration,
  CatalogueSubscribers,
} from '../src/governance/ledger/epochs/catalogue-announcements.ts'
import type { LearnedEpochs } from '../src/governance/ledger/epochs/known-epochs.ts'
import { epochsAt } from '../src/governance/ledger/epochs/known-epochs.ts'
import {
  askLedger,
  DEPLOYMENT_LEDGER,
  type LedgerObject,
  ledgerName,
  parseLedgerName,
} from '../src/governance/ledger/ledger-object.ts'
import type { ChainIdentity, ChainLink } from '../src/governance/ledger/records/chain.ts'
import { writeLinks } from '../src/governance/ledger/records/flush.store.ts'
import { Flusher } from '../src/governance/ledger/records/flusher.ts'
import { writeInOrder } from '../src/governance/ledger/records/write-in-order.ts'
import { writeRejectedCounts } from '../src/governance/ledger/rejected-calls/rejected-calls.store.ts'
import { RejectedCalls } from '../src/governance/ledger/rejected-calls/rejected-calls.ts'
import { flushedTogether, OtherShards } from '../src/governance/ledger/shards/other-shards.ts'
import { type HomeShard, ShardEscrow } from '../src/governance/ledger/shards/shard-escrow.ts'
import { HOME_SHARD } from '../src/governance/ledger/shards/shards.ts'
import { coverShortage, decideAgain, type Shortage } from '../src/governance/ledger/shards/shortage.ts'
import { escrowState, knownShards } from '../src/governance/ledger/shards/transfers.ts'
import { WindowBalance } from '../src/governance/ledger/shards/window-balance.ts'
import { systemClock } from '../src/lib/clock.ts'
import { withinTime } from '../src/lib/time-limit.ts'

/** How long the first call of an account waits for Postgres, which may have to wake up. */
const BEGIN_LIMIT_MS = 5_000

interface Books {
  account: LedgerAccount
  flusher: Flusher<readonly ChainLink[]>
  registration: CatalogueRegistration
  windowBalance: WindowBalance
  /** Of the home shard: what it has to do with the others. */
  others: OtherShards | null
  /** Of every other shard: what it has from the home shard. */
  escrow: ShardEscrow | null
}

/**
 * The Durable Object behind an organization's ledger (named `organization:shard`) and, under the names of
 * `rejectedCallsName`, behind the counts of keyless calls. A shell: what is here is storage, alarm and name.
 */
export class Ledger extends DurableObject<Bindings> implements LedgerObject {
  readonly #configuration
  readonly #database
  #books: Books | undefined
  #beginning: Promise<Books> | undefined
  #subscribers: CatalogueSubscribers | undefined
  #rejected:
    | { counts: RejectedCalls; flusher: Flusher<ReturnType<RejectedCalls['take']> & object> }
    | undefined
  /** Mirror of the stored alarm, because each time it is set costs a row. */
  #alarmAt: number | null = null

  constructor(context: DurableObjectState, environment: Bindings) {
    super(context, environment)
    this.#configuration = configurationOf(environment)
    this.#database = createDatabase(this.#configuration)
    const identity = new AccountTables(context.storage).identity()
    if (identity) this.#books = this.#openBooks(identity)
    if (RejectedCalls.existIn(context.storage.sql)) this.#countRejected()
    context.blockConcurrencyWhile(async () => {
      this.#alarmAt = await context.storage.getAlarm()
    })
  }

  async commit(batch: CommitBatch) {
    const books = this.#books ?? (await this.#begin())
    const { account, registration } = books
    if (batch.calls.catalogueEpochs.some((epoch) => epoch !== 0)) registration.renewIfDue(account.epochs)
    const answer = account.commit(batch)
    this.#arrangeAlarm()
    const report = batch.calls.shards.some((shards) => shards > 1) ? this.#balanceWindows(books) : null
    if (answer.refused.length === 0) return answer
    const decide = (calls: CallColumns) => {
      const again = account.commit({ calls, closings: emptyClosings(), learned: null })
      this.#arrangeAlarm()
      return again
    }
    const covered = await coverShortage(shortageOf(books, decide), batch, answer)
    if (report === null || !covered.refused.some(([, verdict]) => isOrganizationLimit(verdict)))
      return covered
    await report
    const known = decideAgain(decide, batch.calls, covered, 'limited')
    return coverShortage(shortageOf(books, decide), batch, known)
  }

  /** @returns what a call waits for that would be refused because nothing is known of the other shards' windows. */
  #balanceWindows({ account, windowBalance }: Books): Promise<void> | null {
    const knows = account.windows.knowsOthers(systemClock())
    const report = windowBalance.reportIfDue(account.windows)
    return knows ? null : report
  }

  async check(columns: CallColumns, learned: LearnedEpochs | null) {
    const books = this.#books ?? (await this.#begin())
    const admission = await this.#use(({ account }) => account.check(columns, learned))
    const report =
      columns.shards[0] === 1 || !isOrganizationLimit(admission) ? null : this.#balanceWindows(books)
    return report === null ? admission : report.then(() => books.account.check(columns, null))
  }

  async extend(callId: string, leaseMilliseconds: number, progress: CallProgress | null) {
    return this.#use(({ account }) => account.extend(callId, leaseMilliseconds, progress))
  }

  async recordChange(change: AuditedChange) {
    return this.#use(({ account }) => account.recordChange(change))
  }

  async grantCredits(grant: CreditGrant) {
    const { others } = this.#books ?? (await this.#begin())
    const granted = await this.#use(({ account }) => account.grantCredits(grant))
    if (!others || others.escrow.shards().length === 0) return granted
    // What was taken away must not be spent where it lies.
    await others.cover()
    return others.balance()
  }

  async balance() {
    return this.#use(({ account, others }) => others?.balance() ?? account.balance())
  }

  async learnEpochs(learned: LearnedEpochs) {
    await this.#use(({ account, others }) => {
      account.log.confirmEpochs(learned, systemClock())
      return learned.organization === null ? null : others?.tell((shard) => shard.learnEpochs(learned))
    })
  }

  async registerShard(shard: number) {
    return this.#use(({ account, others }) => {
      others?.escrow.register(shard)
      return account.epochs.organization(systemClock())
    })
  }

  async sendEscrow(shard: number, number: number, least: number, all: number) {
    const { others } = this.#books ?? (await this.#begin())
    if (!others) throw new Error('only the home shard sends credits')
    if (all > 0) await others.callIn(shard, least)
    return this.#use(() => others.send(shard, number, least, all))
  }

  async takeEscrow(shard: number, number: number, amount: number) {
    return this.#use(({ others }) => others?.escrow.take(shard, number, amount))
  }

  async shardBalance() {
    return this.#use(({ escrow }) => {
      if (!escrow) throw new Error('the home shard has no balance of a shard')
      return escrow.balance()
    })
  }

  async giveBack() {
    const { escrow } = this.#books ?? (await this.#begin())
    if (!escrow) throw new Error('the home shard gives nothing back')
    await escrow.giveBack()
    return escrow.balance().balance
  }

  async registerForCatalogue(name: string) {
    return this.#announcements().register(name)
  }

  async announceCatalogue(epoch: number) {
    const learned = { organization: null, catalogue: epoch }
    const told = this.#announcements()
      .announce(epoch)
      .map((name) => askLedger(this.env.LEDGER, name, (ledger) => ledger.learnEpochs(learned)))
    for (const outcome of await Promise.allSettled(told)) {
      if (outcome.status === 'rejected') throw outcome.reason
    }
  }

  async flush() {
    if (this.#rejected) return this.#rejected.flusher.run().finally(() => this.#arrangeAlarm())
    const { flusher, others } = this.#books ?? (await this.#begin())
    const [own, rest] = await Promise.all([flusher.run(), others?.flush()])
    this.#arrangeAlarm()
    return flushedTogether([own, ...(rest ?? [])])
  }

  async countRejected(ip: string, minute: number, surface: string, count = 1) {
    this.#countRejected().counts.count(ip, minute, surface, count)
    this.#arrangeAlarm()
  }

  /** Settles leases that ran out, then writes what waits to Postgres. Never throws: six failures would end it for good. */
  override async alarm() {
    this.#alarmAt = null
    this.#books?.account.settleExpired()
    const { escrow, others, flusher } = this.#books ?? {}
    await Promise.all([escrow?.tend(), others?.tend(), flusher?.run(), this.#rejected?.flusher.run()])
    // While Postgres is away nothing is deleted, but a restart must not have to read everything since.
    if (this.#books && this.#books.account.log.pending() > 0) this.#books.account.log.trim()
    this.#arrangeAlarm()
  }

  async #use<Result>(use: (books: Books) => Result): Promise<Result> {
    const books = this.#books ?? (await this.#begin())
    const result = use(books)
    this.#arrangeAlarm()
    return result
  }

  /** Begins the books of an empty storage from Postgres. The next call tries again if Postgres is away. */
  #begin(): Promise<Books> {
    this.#beginning ??= this.#readBeginning().finally(() => {
      this.#beginning = undefined
    })
    return this.#beginning
  }

  async #readBeginning(): Promise<Books> {
    const identity = parseLedgerName(this.ctx.id.name)
    const askedAt = systemClock()
    const loading = loadAccount(this.#database, identity)
    const beginning = await withinTime(loading, BEGIN_LIMIT_MS, 'reading the ledger from Postgres')
    const { state, grants, epochs, transfers, lastShard } = beginning
    const isHome = identity.shard === HOME_SHARD
    // From here on the home shard tells this one of epochs; what was read before may be old already.
    const organization = isHome ? null : await this.#registerAtHome(identity)
    const { storage } = this.ctx
    storage.transactionSync(() => {
      const tables = new AccountTables(storage)
      tables.create()
      tables.begin(identity, state, grants, epochsAt(epochs, askedAt))
      if (!isHome) ShardEscrow.begin(storage.sql, escrowState(identity.shard, transfers))
    })
    const books = this.#openBooks(identity)
    books.account.log.confirmEpochs({ organization, catalogue: null }, askedAt)
    for (const known of knownShards(transfers, lastShard)) books.others?.escrow.register(known.shard, known)
    this.#books = books
    return books
  }

  #registerAtHome({ organizationId, shard }: ChainIdentity): Promise<number | null> {
    return askLedger(this.env.LEDGER, ledgerName(organizationId), (home) => home.registerShard(shard))
  }

  #openBooks(identity: ChainIdentity): Books {
    const account = new LedgerAccount(this.ctx.storage, identity, systemClock)
    const write = async (links: readonly ChainLink[]) => {
      const askedAt = systemClock()
      account.log.confirmEpochs(await writeLinks(this.#database, identity, links), askedAt)
    }
    const written = (links: readonly ChainLink[]) => account.log.markFlushed(links.at(-1)?.sequence ?? 0)
    const source = {
      pending: () => account.log.pending(),
      pendingSince: () => account.log.pendingSince(),
      take: () => account.log.nextBatch(),
      write: (links: readonly ChainLink[]) => writeInOrder(links, write, written),
      written,
    }
    const name = ledgerName(identity.organizationId, identity.shard)
    const register = () =>
      askLedger(this.env.LEDGER, DEPLOYMENT_LEDGER, (ledger) => ledger.registerForCatalogue(name))
    const registration = new CatalogueRegistration(register, systemClock)
    const windowBalance = new WindowBalance(redisOf(this.env), identity.organizationId, systemClock)
    const flusher = this.#flusherOf(source)
    return { account, flusher, registration, windowBalance, ...this.#shardsOf(identity, account) }
  }

  #shardsOf(
    { organizationId, shard }: ChainIdentity,
    account: LedgerAccount,
  ): Pick<Books, 'others' | 'escrow'> {
    const { sql } = this.ctx.storage
    if (shard === HOME_SHARD) {
      const objects = { namespace: this.env.LEDGER, organizationId }
      return { others: new OtherShards(sql, account, objects, systemClock), escrow: null }
    }
    const ask = <Result>(use: (home: LedgerObject) => Promise<Result>) =>
      askLedger(this.env.LEDGER, ledgerName(organizationId), use)
    const home: HomeShard = {
      sendEscrow: (...parameters) => ask((ledger) => ledger.sendEscrow(...parameters)),
      takeEscrow: (...parameters) => ask((ledger) => ledger.takeEscrow(...parameters)),
    }
    const changed = () => this.#arrangeAlarm()
    return { others: null, escrow: new ShardEscrow(sql, { account, shard, home }, systemClock, changed) }
  }

  #announcements(): CatalogueSubscribers {
    this.#subscribers ??= new CatalogueSubscribers(this.ctx.storage.sql, systemClock)
    return this.#subscribers
  }

  #countRejected() {
    if (this.#rejected) return this.#rejected
    const send = (batch: Parameters<typeof writeRejectedCounts>[1]) =>
      writeRejectedCounts(this.#database, batch)
    const counts = new RejectedCalls(this.ctx.storage.sql, send, systemClock)
    this.#rejected = { counts, flusher: this.#flusherOf(counts) }
    return this.#rejected
  }

  #flusherOf<Batch>(source: ConstructorParameters<typeof Flusher<Batch>>[0]): Flusher<Batch> {
    return new Flusher(source, systemClock, this.#configuration.LEDGER_FLUSH_MS)
  }

  /** One alarm serves leases and flushes: it is set to whichever comes first, and never again to a later time. */
  #arrangeAlarm(): void {
    const times = [
      this.#books?.account.nextDeadline,
      this.#books?.flusher.dueAt(),
      this.#books?.escrow?.dueAt(),
      this.#books?.others?.dueAt(),
      this.#rejected?.flusher.dueAt(),
    ].filter((time) => typeof time === 'number')
    if (times.length === 0) return
    const next = Math.min(...times)
    if (this.#alarmAt !== null && this.#alarmAt <= next) return
    this.#alarmAt = next
    void this.ctx.storage.setAlarm(next)
  }
}

const isOrganizationLimit = (verdict: Admission | InvalidEntry) =>
  verdict.kind === 'limited' && verdict.scope === 'organization'

/** What is done about calls that a shard has too few credits for. */
const shortageOf = ({ account, others, escrow }: Books, decide: Shortage['decide']): Shortage => ({
  available: () => account.balance().available,
  draw: async (least, all) => (await (escrow?.draw(least, all) ?? others?.callIn(null, least))) ?? false,
  decide,
  clock: systemClock,
})
