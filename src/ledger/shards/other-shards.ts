import type { Clock } from '../../lib/clock.ts'
import { settleAll } from '../../lib/settle-all.ts'
import { withinTime } from '../../lib/time-limit.ts'
import type { LedgerAccount } from '../account/account.ts'
import type { CreditBalance, Flushed } from '../contract.ts'
import { callLedger, type LedgerObject, ledgerName } from '../ledger-object.ts'
import type { HeldChain } from '../records/chain.ts'
import type { Reflush, Reflushed } from '../records/chain-writer.ts'
import { HomeEscrow, type KnownShard, type SentEscrow } from './home-escrow.ts'

/** Time that a shard may take to return credits; calls wait for it. */
const GIVE_BACK_LIMIT_MS = 2_000
/** Interval at which a debt of the home shard is called in, while the others hold credits. */
const COVER_MS = 2_000
/** Maximum number of times that the balance is summed up, when credits move meanwhile. */
const MOST_SUMS = 5

/** The objects of an organization's ledger. */
interface ShardObjects {
  namespace: DurableObjectNamespace
  organizationId: string
}

/** The home shard's connection to the other shards of its organization: it answers for all of them. */
export class OtherShards {
  readonly escrow: HomeEscrow
  readonly #account: LedgerAccount
  readonly #objects: ShardObjects
  readonly #clock: Clock
  #callingIn: Promise<void> | undefined
  /** Whether the other shards may hold credits that can be called in. */
  #holdCredits = true
  #coverAt: number

  constructor(sql: SqlStorage, account: LedgerAccount, objects: ShardObjects, clock: Clock) {
    this.escrow = new HomeEscrow(sql, account)
    this.#account = account
    this.#objects = objects
    this.#clock = clock
    this.#coverAt = clock()
  }

  /** Sends a message to every other shard. @throws when one of them does not answer, after all have been waited for. */
  callAll(use: (shard: LedgerObject) => Promise<unknown>): Promise<void> {
    return settleAll(this.escrow.shards().map(({ shard }) => this.#call(shard, use)))
  }

  /** @see HomeEscrow.send */
  send(shard: number, number: number, least: number, all: number): SentEscrow {
    this.#holdCredits = true
    return this.escrow.send(shard, number, least, all)
  }

  /**
   * Calls in credits that other shards have not reserved, when the home shard has too few.
   * @param asking the shard that lacks them, which is not asked; null for the home shard itself.
   * @param least how many are lacking. @returns whether some came, or there were enough. It never rejects: a shard that
   * does not answer keeps its own.
   */
  async callIn(asking: number | null, least: number): Promise<boolean> {
    const before = this.#account.balance().available
    const wanted = asking === null ? before + least : Math.max(1, least)
    const isEnough = () => this.#account.balance().available >= wanted
    if (isEnough()) return true
    const others = this.escrow.shards().filter(({ shard }) => shard !== asking)
    if (others.length === 0) return false
    // A running request may leave out a shard, or may have asked the others too early.
    if (this.#callingIn !== undefined) await this.#callingIn
    if (!isEnough()) await (this.#callingIn ?? this.#callInFrom(others))
    return this.#account.balance().available > before
  }

  #callInFrom(shards: readonly KnownShard[]): Promise<void> {
    this.#callingIn = this.#askToGiveBack(shards).finally(() => {
      this.#callingIn = undefined
    })
    return this.#callingIn
  }

  async #askToGiveBack(shards: readonly KnownShard[]): Promise<void> {
    const asked = shards.map(({ shard }) => {
      const answer = this.#call(shard, (object) => object.giveBack())
      return withinTime(answer, GIVE_BACK_LIMIT_MS, 'giving credits back')
    })
    const outcomes = await Promise.allSettled(asked)
    const areEmpty = outcomes.every((outcome) => outcome.status === 'fulfilled' && outcome.value <= 0)
    if (shards.length === this.escrow.shards().length) this.#holdCredits = !areEmpty
  }

  /** When to call in a debt, in milliseconds since the epoch; null when there is none, or the others hold nothing. */
  dueAt(): number | null {
    const isInDebt = this.#account.balance().available < 0 && this.#holdCredits
    return isInDebt && this.escrow.shards().length > 0 ? this.#coverAt : null
  }

  /**
   * Covers a debt of the home shard with credits of the others, so that they cannot spend them. A debt arises when a
   * call cost more than its reservation, or credits were taken away. It never rejects.
   */
  async runDue(): Promise<void> {
    const dueAt = this.dueAt()
    if (dueAt === null || this.#clock() < dueAt) return
    await this.cover()
  }

  /** Calls in credits now if the balance is negative. */
  async cover(): Promise<void> {
    const { available } = this.#account.balance()
    if (available >= 0) return
    this.#coverAt = this.#clock() + COVER_MS
    await this.callIn(null, -available)
  }

  /**
   * The balance of all shards together, with credits that are in transit between two of them. It is read again when credits moved
   * meanwhile, so that none are counted twice or left out.
   */
  async balance(): Promise<CreditBalance> {
    let before = this.escrow.shards()
    for (let round = 1; ; round += 1) {
      const parts = await this.#parts(before)
      const shards = this.escrow.shards()
      const hasMoved = JSON.stringify(shards) !== JSON.stringify(before)
      if (!hasMoved || round === MOST_SUMS) return this.#sum(before, parts)
      before = shards
    }
  }

  #parts(shards: readonly KnownShard[]) {
    return Promise.all(shards.map(({ shard }) => this.#call(shard, (object) => object.shardBalance())))
  }

  #sum(
    shards: readonly KnownShard[],
    parts: ReadonlyArray<Awaited<ReturnType<LedgerObject['shardBalance']>>>,
  ): CreditBalance {
    const totals = { ...this.#account.balance() }
    for (const [index, { sent, amount, taken }] of shards.entries()) {
      const part = parts[index]
      if (!part) continue
      const sentOnly = part.received < sent ? amount : 0
      const returnedOnly = part.returned > taken ? part.returning : 0
      totals.balance += part.balance + sentOnly + returnedOnly
      totals.reserved += part.reserved
    }
    return { ...totals, available: totals.balance - totals.reserved }
  }

  /** Writes what is pending at the others to Postgres. @returns what is still pending at each of them. */
  flush(): Promise<Flushed[]> {
    const shards = this.escrow.shards()
    return Promise.all(shards.map(({ shard }) => this.#call(shard, (object) => object.flush())))
  }

  /** @see LedgerShard.reflush */
  async reflush(request: Reflush): Promise<Reflushed[]> {
    const { shard: only } = request
    const shards = this.escrow.shards().filter(({ shard }) => only === null || only === shard)
    const answers = shards.map(({ shard }) => this.#call(shard, (object) => object.reflush(request)))
    return (await Promise.all(answers)).flat()
  }

  /** The chains of the others; one whose account has not begun is left out. */
  async chains(): Promise<HeldChain[]> {
    const shards = this.escrow.shards()
    return (
      await Promise.all(shards.map(({ shard }) => this.#call(shard, (object) => object.chains())))
    ).flat()
  }

  #call<Answer>(shard: number, use: (object: LedgerObject) => Promise<Answer>): Promise<Answer> {
    const { namespace, organizationId } = this.#objects
    return callLedger(namespace, ledgerName(organizationId, shard), use)
  }
}

/** The pending records of all shards together. */
export function flushedTogether(parts: readonly Flushed[]): Flushed {
  const pending = parts.reduce((sum, part) => sum + part.pending, 0)
  const since = parts.flatMap((part) => part.since ?? []).sort()[0]
  return since === undefined ? { pending } : { pending, since }
}
