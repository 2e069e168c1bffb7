import { DurableObject } from 'cloudflare:workers'
import { configurationOf, createDatabase, redisOf } from '../src/deps.ts'
import type { Bindings } from '../src/env.ts'
import type { AuditedChange } from '../src/ledger/audit-record.ts'
import type { CallColumns, CommitBatch } from '../src/ledger/commits/commit.ts'
import type { CallProgress, CreditGrant } from '../src/ledger/contract.ts'
import { CatalogueAnnouncements } from '../src/ledger/epochs/catalogue-announcements.ts'
import type { LearnedEpochs } from '../src/ledger/epochs/known-epochs.ts'
import type { LedgerObject } from '../src/ledger/ledger-object.ts'
import { escrowOf, homeOf } from '../src/ledger/ledger-shard.ts'
import { OrganizationLedger } from '../src/ledger/organization-ledger.ts'
import type { Reflush } from '../src/ledger/records/chain-writer.ts'
import { RejectedCallsLedger } from '../src/ledger/rejected-calls/rejected-calls-ledger.ts'
import type { TailRequest } from '../src/ledger/tail/tail.ts'
import { earliest, systemClock } from '../src/lib/clock.ts'
import { logFailuresOf } from '../src/lib/logged-methods.ts'

/**
 * The Durable Object of three kinds: a shard of an organization's ledger (named `organization:shard`), the
 * announcements of the catalogue (in the object of the deployment), and the counts of keyless calls (named by
 * `rejectedCallsName`). Each kind has a class of its own in `src/ledger`; this one has their storage, alarm and RPC
 * methods.
 */
export class Ledger extends DurableObject<Bindings> implements LedgerObject {
  readonly #organization: OrganizationLedger
  readonly #announcements: CatalogueAnnouncements
  readonly #rejected: RejectedCallsLedger
  /** Copy of the stored alarm: setting an alarm costs a row, so it is set only when it changes. */
  #alarmAt: number | null = null
  #isRunning = false

  constructor(context: DurableObjectState, environment: Bindings) {
    super(context, environment)
    const configuration = configurationOf(environment)
    const { storage, id } = context
    const namespace = environment.LEDGER
    const deps = {
      storage,
      database: createDatabase(configuration),
      redis: redisOf(environment),
      namespace,
      clock: systemClock,
      flushMilliseconds: configuration.LEDGER_FLUSH_MS,
      arrangeAlarm: () => this.#arrangeAlarm(),
    }
    this.#organization = new OrganizationLedger(deps, id.name)
    this.#announcements = new CatalogueAnnouncements(storage.sql, namespace, systemClock)
    this.#rejected = new RejectedCallsLedger(deps, id.name ?? '')
    context.blockConcurrencyWhile(async () => {
      this.#alarmAt = await storage.getAlarm()
    })
  }

  async commit(batch: CommitBatch) {
    return (await this.#organization.shard()).commit(batch)
  }

  async check(call: CallColumns, learned: LearnedEpochs | null) {
    return this.#organization.use((shard) => shard.check(call, learned))
  }

  async extend(callId: string, leaseMilliseconds: number, progress: CallProgress | null) {
    return this.#organization.use(({ account }) => account.extend(callId, leaseMilliseconds, progress))
  }

  async recordChange(change: AuditedChange) {
    return this.#organization.use(({ account }) => account.recordChange(change))
  }

  async grantCredits(grant: CreditGrant) {
    return this.#organization.use((shard) => shard.grantCredits(grant))
  }

  async balance() {
    return this.#organization.use(({ account, others }) => others?.balance() ?? account.balance())
  }

  async tail(request: TailRequest) {
    return (await this.#organization.shard()).tail(request)
  }

  async learnEpochs(learned: LearnedEpochs) {
    return this.#organization.use((shard) => shard.learnEpochs(learned))
  }

  async registerShard(number: number) {
    return this.#organization.use((shard) => {
      homeOf(shard).escrow.register(number)
      return shard.account.epochs.organization(systemClock())
    })
  }

  async sendEscrow(to: number, number: number, least: number, all: number) {
    return this.#organization.use((shard) => shard.sendEscrow(to, number, least, all))
  }

  async takeEscrow(from: number, number: number, amount: number) {
    return this.#organization.use((shard) => homeOf(shard).escrow.take(from, number, amount))
  }

  async shardBalance() {
    return this.#organization.use((shard) => escrowOf(shard).balance())
  }

  async giveBack() {
    const escrow = escrowOf(await this.#organization.shard())
    await escrow.giveBack()
    return escrow.balance().balance
  }

  async registerForCatalogue(name: string) {
    return this.#announcements.register(name)
  }

  async announceCatalogue(epoch: number) {
    await this.#announcements.announce(epoch)
  }

  async flush() {
    const flushing = this.#rejected.flush() ?? this.#organization.flush()
    return flushing.finally(() => this.#arrangeAlarm())
  }

  async reflush(request: Reflush) {
    this.#rejected.resend()
    const announced = Math.max(request.announced, this.#announcements.announced())
    return this.#organization.begun?.reflush({ ...request, announced }) ?? []
  }

  async chains() {
    return this.#organization.begun?.chains() ?? []
  }

  async countRejected(ip: string, minute: number, surface: string, count: number) {
    this.#rejected.count(ip, minute, surface, count)
  }

  /** Never throws: the platform stops an alarm that has failed six times. */
  override async alarm() {
    this.#alarmAt = null
    await this.#runDue()
  }

  async #runDue(): Promise<void> {
    await Promise.all([this.#organization.runDue(), this.#rejected.runDue()])
    this.#arrangeAlarm()
  }

  /**
   * Sets the one alarm to the earliest time at which something is due, and never to a later one. Work that is due now
   * runs without an alarm, because setting one costs a row. If the object is lost meanwhile, the alarm already set
   * repeats the work.
   */
  #arrangeAlarm(): void {
    const next = earliest([this.#organization.dueAt(), this.#rejected.dueAt()])
    if (next === null || (this.#alarmAt !== null && this.#alarmAt <= next)) return
    if (this.#alarmAt !== null && next <= systemClock() && !this.#isRunning) {
      this.ctx.waitUntil(this.#runAfterThisTurn())
      return
    }
    this.#alarmAt = next
    void this.ctx.storage.setAlarm(next)
  }

  /** Runs after the method that arranged it, which may be in the middle of a change. */
  async #runAfterThisTurn(): Promise<void> {
    this.#isRunning = true
    await Promise.resolve()
    await this.#runDue().finally(() => {
      this.#isRunning = false
    })
  }
}

logFailuresOf(Ledger, 'Ledger')
