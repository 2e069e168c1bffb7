import type { Redis } from '@upstash/redis'
import type { Database } from '../../schema/database.ts'
import { type Clock, earliest } from '../lib/clock.ts'
import { withinTime } from '../lib/time-limit.ts'
import { loadAccount } from './account/account.store.ts'
import { LedgerAccount } from './account/account.ts'
import { AccountTables, type LedgerStorage } from './account/account-tables.ts'
import { DEPLOYMENT_ORGANIZATION_ID } from './audit-record.ts'
import {
  type CallColumns,
  type CommitAnswer,
  type CommitBatch,
  emptyClosings,
  type InvalidEntry,
} from './commits/commit.ts'
import type { Admission, CreditBalance, CreditGrant, Flushed } from './contract.ts'
import { CatalogueRegistration } from './epochs/catalogue-announcements.ts'
import { epochsAt, type LearnedEpochs } from './epochs/known-epochs.ts'
import { callLedger, ledgerName } from './ledger-object.ts'
import type { ChainIdentity, ChainLink, HeldChain } from './records/chain.ts'
import { ChainWriter, type Reflush, type Reflushed } from './records/chain-writer.ts'
import { Flusher } from './records/flusher.ts'
import { writeInOrder } from './records/write-in-order.ts'
import { resendRejectedCalls } from './rejected-calls/count-rejected-call.ts'
import type { SentEscrow } from './shards/home-escrow.ts'
import { flushedTogether, OtherShards } from './shards/other-shards.ts'
import { ShardEscrow } from './shards/shard-escrow.ts'
import { HOME_SHARD } from './shards/shards.ts'
import { coverShortage, decideAgain } from './shards/shortage.ts'
import { escrowState, knownShards } from './shards/transfers.ts'
import { WindowBalance } from './shards/window-balance.ts'
import { OpenTails, readTail, type TailAnswer, type TailRequest } from './tail/tail.ts'

/** Time between two looks for calls that a reader waits for. */
const TAIL_LOOK_MS = 250

/** Time that the first call of an account waits for Postgres, which may have to wake up. */
const BEGIN_LIMIT_MS = 5_000

export interface LedgerShardDeps {
  storage: LedgerStorage
  database: Database
  redis: Redis
  /** Reaches the other ledgers. */
  namespace: DurableObjectNamespace
  clock: Clock
  /** Time that new records wait for others before they are written to Postgres. */
  flushMilliseconds: number
  /** Sets the alarm by `dueAt`. Called in the same turn as every write, so that no write is without an alarm. */
  arrangeAlarm: () => void
}

/** One shard of an organization's ledger: its account, connected to Postgres, Redis and the other shards. */
export class LedgerShard {
  readonly account: LedgerAccount
  /** The other shards, in the home shard; null elsewhere. */
  readonly others: OtherShards | null
  /** Transfers from and to the home shard, in every other shard; null in the home shard. */
  readonly escrow: ShardEscrow | null
  readonly #deps: LedgerShardDeps
  readonly #organizationId: string
  readonly #writer: ChainWriter
  readonly #flusher: Flusher<readonly ChainLink[]>
  readonly #registration: CatalogueRegistration
  readonly #windowBalance: WindowBalance
  readonly #tails = new OpenTails()

  /** Loads an account that was begun in this storage. */
  constructor(deps: LedgerShardDeps, identity: ChainIdentity) {
    const { storage, redis, namespace, clock, arrangeAlarm } = deps
    const { organizationId, shard } = identity
    const isHome = shard === HOME_SHARD
    const account = new LedgerAccount(storage, identity, clock)
    this.#deps = deps
    this.#organizationId = organizationId
    this.account = account
    this.others = isHome ? new OtherShards(storage.sql, account, { namespace, organizationId }, clock) : null
    this.escrow = isHome
      ? null
      : new ShardEscrow(storage.sql, account, { namespace, ...identity }, clock, arrangeAlarm)
    this.#writer = new ChainWriter(deps.database, identity, account, clock)
    this.#flusher = this.#flusherOf()
    this.#registration = new CatalogueRegistration(namespace, ledgerName(organizationId, shard), clock)
    this.#windowBalance = new WindowBalance(redis, organizationId, clock)
  }

  /** Begins an account in an empty storage with what Postgres has of it. @throws when Postgres cannot be read. */
  static async begin(deps: LedgerShardDeps, identity: ChainIdentity): Promise<LedgerShard> {
    const { storage, database, namespace, clock } = deps
    const { organizationId, shard } = identity
    const readAt = clock()
    const loading = loadAccount(database, identity)
    const beginning = await withinTime(loading, BEGIN_LIMIT_MS, 'reading the ledger from Postgres')
    const { state, grants, epochs, transfers, lastShard } = beginning
    const isHome = shard === HOME_SHARD
    // From here on the home shard sends epochs to this one. An epoch that was read before may be stale already.
    const organization = isHome
      ? null
      : await callLedger(namespace, ledgerName(organizationId), (home) => home.registerShard(shard))
    storage.transactionSync(() => {
      const tables = new AccountTables(storage)
      tables.create()
      tables.begin(identity, state, grants, epochsAt(epochs, readAt))
      if (!isHome) ShardEscrow.begin(storage.sql, escrowState(shard, transfers))
    })
    const begun = new LedgerShard(deps, identity)
    begun.account.log.confirmEpochs({ organization, catalogue: null }, readAt)
    for (const known of knownShards(transfers, lastShard)) begun.others?.escrow.register(known.shard, known)
    return begun
  }

  /** Decides and stores a batch; calls that lack credits or a place in the organization's window wait for other shards. */
  async commit(batch: CommitBatch): Promise<CommitAnswer> {
    const { calls, learned } = batch
    const raising = learned && this.#writer.raiseIfTurnedBack(learned)
    if (raising) await raising
    if (calls.catalogueEpochs.some((epoch) => epoch !== 0)) this.#registration.renewIfDue(this.account.epochs)
    const answer = this.account.commit(batch)
    this.#deps.arrangeAlarm()
    const report = calls.shards.some((shards) => shards > 1) ? this.#balanceWindows() : null
    if (answer.refused.length === 0) return answer
    const covered = await this.#coverShortage(calls, answer)
    if (report === null || !covered.refused.some(([, verdict]) => isOrganizationLimit(verdict)))
      return covered
    await report
    return this.#coverShortage(calls, decideAgain(this.#decide, calls, covered, 'limited'))
  }

  async check(call: CallColumns, learned: LearnedEpochs | null): Promise<Admission> {
    const admission = this.account.check(call, learned)
    const isAlone = call.shards[0] === 1 || !isOrganizationLimit(admission)
    const report = isAlone ? null : this.#balanceWindows()
    return report === null ? admission : report.then(() => this.account.check(call, null))
  }

  /** @returns the balance of all shards. */
  async grantCredits(grant: CreditGrant): Promise<CreditBalance> {
    const granted = this.account.grantCredits(grant)
    if (this.others === null || this.others.escrow.shards().length === 0) return granted
    // Credits that were taken away must not be spent by the shard that holds them.
    await this.others.cover()
    return this.others.balance()
  }

  async learnEpochs(learned: LearnedEpochs): Promise<void> {
    this.account.log.confirmEpochs(learned, this.#deps.clock())
    if (learned.organization !== null) await this.others?.callAll((shard) => shard.learnEpochs(learned))
  }

  /** @see HomeEscrow.send */
  async sendEscrow(shard: number, number: number, least: number, all: number): Promise<SentEscrow> {
    const others = homeOf(this)
    if (all > 0) await others.callIn(shard, least)
    const sent = others.send(shard, number, least, all)
    this.#deps.arrangeAlarm()
    return sent
  }

  /**
   * The calls that were opened and ended since a commit; waits for them where there are none. It looks every quarter of a second, only
   * while there is a reader: a commit knows nothing of readers.
   * @returns null in the home shard where the organization or the reader has many tails.
   */
  async tail(request: TailRequest): Promise<TailAnswer | null> {
    const { after, userId, waitMilliseconds } = request
    const { clock } = this.#deps
    const { log, epochs } = this.account
    if (this.others !== null && !this.#tails.admit(request, clock())) return null
    const until = clock() + waitMilliseconds
    let read = readTail(log, after, userId)
    const isEmpty = () => read.opened.length + read.closed.length === 0 && !read.skipped
    while (after !== null && isEmpty() && clock() < until) {
      await new Promise((resolve) => setTimeout(resolve, TAIL_LOOK_MS))
      if (log.memory.commit !== read.after) read = readTail(log, read.after, userId)
    }
    return { ...read, epoch: epochs.organization(clock()) }
  }

  /** Writes what is pending to Postgres, here and at the shards behind this one. */
  async flush(): Promise<Flushed> {
    const [own, rest] = await Promise.all([this.#flusher.flush(), this.others?.flush()])
    return flushedTogether([own, ...(rest ?? [])])
  }

  /**
   * Makes records pending again that Postgres has lost, here and at the shards behind this one. They are written as others are: by
   * the next flush, which an alarm begins.
   */
  async reflush(request: Reflush): Promise<Reflushed[]> {
    const { shard } = this.account.log.chain()
    const isMeant = request.shard === null || request.shard === shard
    const own = async () => this.#flusher.between(await this.#writer.prepare(request))
    const isDeployment = this.#organizationId === DEPLOYMENT_ORGANIZATION_ID
    const [begun, behind] = await Promise.all([
      isMeant ? own() : null,
      this.others?.reflush(request),
      isDeployment ? resendRejectedCalls(this.#deps.namespace) : null,
    ])
    this.#deps.arrangeAlarm()
    return [...(begun ? [begun] : []), ...(behind ?? [])]
  }

  /** The chain of this shard, and those of the shards behind it. */
  async chains(): Promise<HeldChain[]> {
    const { account, others } = this
    const behind = await others?.chains()
    return [account.log.chain(), ...(behind ?? [])]
  }

  /** When `runDue` has something to do, in milliseconds since the epoch; null when nothing is pending. */
  dueAt(): number | null {
    const { account, escrow, others } = this
    return earliest([account.nextDeadline, this.#flusher.dueAt(), escrow?.dueAt(), others?.dueAt()])
  }

  /** Settles leases that ran out, continues transfers, and writes pending records to Postgres. */
  async runDue(): Promise<void> {
    const { account, escrow, others } = this
    account.settleExpired()
    await Promise.all([escrow?.runDue(), others?.runDue(), this.#flusher.flushDue()])
    // While Postgres is away nothing is deleted, but a restart must not have to read everything since.
    if (account.log.pending() > 0) account.log.trim()
  }

  /** @returns what a call waits for that would be refused because the other shards' windows are unknown. */
  #balanceWindows(): Promise<void> | null {
    const { windows } = this.account
    const isKnown = windows.knowsOthers(this.#deps.clock())
    const report = this.#windowBalance.reportIfDue(windows)
    return isKnown ? null : report
  }

  #coverShortage(calls: CallColumns, answer: CommitAnswer): Promise<CommitAnswer> {
    const { account, escrow, others } = this
    const shortage = {
      available: () => account.balance().available,
      draw: async (least: number, all: number) =>
        (await (escrow?.draw(least, all) ?? others?.callIn(null, least))) ?? false,
      decide: this.#decide,
      clock: this.#deps.clock,
    }
    return coverShortage(shortage, calls, answer)
  }

  readonly #decide = (calls: CallColumns): CommitAnswer => {
    const answer = this.account.commit({ calls, closings: emptyClosings(), learned: null })
    this.#deps.arrangeAlarm()
    return answer
  }

  #flusherOf(): Flusher<readonly ChainLink[]> {
    const { clock, flushMilliseconds } = this.#deps
    const { log } = this.account
    const written = (links: readonly ChainLink[]) =>
      log.markFlushed(links[0]?.sequence ?? 0, links.at(-1)?.sequence ?? 0)
    const source = {
      pending: () => log.pending(),
      pendingSince: () => log.pendingSince(),
      take: () => log.nextBatch(),
      write: (links: readonly ChainLink[]) =>
        writeInOrder(links, (part) => this.#writer.write(part), written),
      written,
    }
    return new Flusher(source, clock, flushMilliseconds)
  }
}

/** The home shard's view of the others. @throws when a message for the home shard reached another one. */
export function homeOf({ others }: LedgerShard): OtherShards {
  if (!others) throw new Error('this is not the home shard')
  return others
}

/** The other shards' side of transfers. @throws when a message for another shard reached the home shard. */
export function escrowOf({ escrow }: LedgerShard): ShardEscrow {
  if (!escrow) throw new Error('this is the home shard')
  return escrow
}

const isOrganizationLimit = (verdict: Admission | InvalidEntry) =>
  verdict.kind === 'limited' && verdict.scope === 'organization'
