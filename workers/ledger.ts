import { DurableObject } from 'cloudflare:workers'
import { configurationOf, createDatabase } from '../src/deps.ts'
import type { Bindings } from '../src/env.ts'
import type { AuditedChange } from '../src/governance/audit-record.ts'
import { LedgerAccount } from '../src/governance/ledger/account.ts'
import { AccountTables } from '../src/governance/ledger/account-tables.ts'
import type { CheckColumns } from '../src/governance/ledger/admission.ts'
import {
  CatalogueRegistration,
  CatalogueSubscribers,
} from '../src/governance/ledger/catalogue-announcements.ts'
import type { ChainIdentity, ChainLink } from '../src/governance/ledger/chain.ts'
import {
  askLedger,
  DEPLOYMENT_LEDGER,
  type LedgerObject,
  ledgerName,
  parseLedgerName,
} from '../src/governance/ledger/client.ts'
import type { CommitBatch, LearnedEpochs } from '../src/governance/ledger/commit.ts'
import { epochsAt } from '../src/governance/ledger/epoch-knowledge.ts'
import { Flusher } from '../src/governance/ledger/flusher.ts'
import type { CallProgress, CreditGrant } from '../src/governance/ledger/ledger.ts'
import { writeLinks } from '../src/governance/ledger/records.store.ts'
import { RejectedCalls } from '../src/governance/ledger/rejected-calls.ts'
import { loadAccount, writeRejectedCounts } from '../src/governance/ledger/store.ts'
import { writeInOrder } from '../src/governance/ledger/write-in-order.ts'
import { systemClock } from '../src/lib/clock.ts'
import { withinTime } from '../src/lib/time-limit.ts'

/** How long the first call of an account waits for Postgres, which may have to wake up. */
const BEGIN_LIMIT_MS = 5_000

interface Books {
  account: LedgerAccount
  flusher: Flusher<readonly ChainLink[]>
  registration: CatalogueRegistration
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
    return this.#use(({ account, registration }) => {
      const usesCatalogue = batch.calls.catalogueEpochs.some((epoch) => epoch !== 0)
      if (usesCatalogue) registration.renewIfDue(account.epochs)
      return account.commit(batch)
    })
  }

  async check(columns: CheckColumns, learned: LearnedEpochs | null) {
    return this.#use(({ account }) => account.check(columns, learned))
  }

  async extend(callId: string, leaseMilliseconds: number, progress: CallProgress | null) {
    return this.#use(({ account }) => account.extend(callId, leaseMilliseconds, progress))
  }

  async recordChange(change: AuditedChange) {
    return this.#use(({ account }) => account.recordChange(change))
  }

  async grantCredits(grant: CreditGrant) {
    return this.#use(({ account }) => account.grantCredits(grant))
  }

  async balance() {
    return this.#use(({ account }) => account.balance())
  }

  async learnEpochs(learned: LearnedEpochs) {
    return this.#use(({ account }) => account.confirmEpochs(learned, systemClock()))
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
    const flusher = this.#rejected?.flusher ?? (this.#books ?? (await this.#begin())).flusher
    const result = await flusher.run()
    this.#arrangeAlarm()
    return result
  }

  async countRejected(ip: string, minute: number, surface: string, count = 1) {
    this.#countRejected().counts.count(ip, minute, surface, count)
    this.#arrangeAlarm()
  }

  /** Settles leases that ran out, then writes what waits to Postgres. Never throws: six failures would end it for good. */
  override async alarm() {
    this.#alarmAt = null
    this.#books?.account.settleExpired()
    await Promise.all([this.#books?.flusher.run(), this.#rejected?.flusher.run()])
    // While Postgres is away nothing is deleted, but a restart must not have to read everything since.
    if (this.#books && this.#books.account.pending() > 0) this.#books.account.trim()
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
    const { state, grants, epochs } = await withinTime(
      loading,
      BEGIN_LIMIT_MS,
      'reading the ledger from Postgres',
    )
    this.ctx.storage.transactionSync(() => {
      const tables = new AccountTables(this.ctx.storage)
      tables.create()
      tables.begin(identity, state, grants, epochsAt(epochs, askedAt))
    })
    this.#books = this.#openBooks(identity)
    return this.#books
  }

  #openBooks(identity: ChainIdentity): Books {
    const account = new LedgerAccount(this.ctx.storage, identity, systemClock)
    const write = async (links: readonly ChainLink[]) => {
      const askedAt = systemClock()
      account.confirmEpochs(await writeLinks(this.#database, identity, links), askedAt)
    }
    const written = (links: readonly ChainLink[]) => account.markFlushed(links.at(-1)?.sequence ?? 0)
    const source = {
      pending: () => account.pending(),
      pendingSince: () => account.pendingSince(),
      take: () => account.nextBatch(),
      write: (links: readonly ChainLink[]) => writeInOrder(links, write, written),
      written,
    }
    const name = ledgerName(identity.organizationId, identity.shard)
    const register = () =>
      askLedger(this.env.LEDGER, DEPLOYMENT_LEDGER, (ledger) => ledger.registerForCatalogue(name))
    const registration = new CatalogueRegistration(register, systemClock)
    return { account, flusher: this.#flusherOf(source), registration }
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
      this.#rejected?.flusher.dueAt(),
    ].filter((time) => typeof time === 'number')
    if (times.length === 0) return
    const next = Math.min(...times)
    if (this.#alarmAt !== null && this.#alarmAt <= next) return
    this.#alarmAt = next
    void this.ctx.storage.setAlarm(next)
  }
}
