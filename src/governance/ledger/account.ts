import type { Clock } from '../../lib/clock.ts'
import { errorText, logEvent } from '../../lib/log.ts'
import type { AuditedChange, CallOpening, CallOutcome } from '../audit-record.ts'
import type { Usage } from '../credits.ts'
import {
  type AccountState,
  AccountTables,
  type LedgerStorage,
  type MadeGrant,
  type OpenRow,
} from './account-tables.ts'
import { type ChainIdentity, type ChainLink, nextLink } from './chain.ts'
import {
  type CallProgress,
  type CreditBalance,
  type CreditGrant,
  type OpenCall,
  type OpenResult,
  OTHER_GRANT,
} from './ledger.ts'
import { callContent, changeContent, trimmedOpening } from './record-body.ts'

/** Records stay this long after they were appended, so that a repeated call is known for one. */
const REMEMBERED_MS = 2 * 60_000
/** Ids of them that are kept in memory: some 6 MB, also when Postgres is away for hours. */
const REMEMBERED_IDS = 50_000
/** Open calls that are kept in memory as they are stored: some 10 MB. */
const HELD_CALLS = 10_000
/** How long to wait with a lapsed call that could not be settled. */
const SETTLE_AGAIN_MS = 60_000
/** What one batch to Postgres may hold. */
const BATCH_RECORDS = 200
const BATCH_CHARACTERS = 4_000_000

/**
 * Balance, open calls and audit chain of one organization, over the storage of its Durable Object. Everything is
 * synchronous: no other request can run between what a method reads and what it writes, which is why concurrent calls
 * never reserve more than the balance. The runtime holds answers back until the writes are durable.
 */
export class LedgerAccount {
  readonly #storage: LedgerStorage
  readonly #tables: AccountTables
  readonly #identity: ChainIdentity
  readonly #clock: Clock
  #state: AccountState & { flushed: number }
  #reserved: number
  #openCount: number
  /** Open calls by their id: all of them while there are as many as `#openCount`, which makes a look at the table needless. */
  readonly #openCalls = new Map<string, OpenRow>()
  /** No open call's lease ends before this; closing calls does not raise it. */
  #firstDeadline: number | null
  readonly #rememberedIds: Set<string>

  /** Loads an account that was begun in this storage. */
  constructor(storage: LedgerStorage, identity: ChainIdentity, clock: Clock) {
    this.#storage = storage
    this.#tables = new AccountTables(storage)
    this.#tables.upgrade()
    this.#identity = identity
    this.#clock = clock
    this.#state = this.#tables.state()
    const open = this.#tables.openTotals()
    this.#reserved = open.reserved
    this.#openCount = open.count
    this.#firstDeadline = open.firstDeadline
    this.#rememberedIds = new Set(this.#tables.newestIds(REMEMBERED_IDS))
  }

  /** When the next lease can run out, in milliseconds since the epoch; null when no call is open. */
  get nextDeadline(): number | null {
    return this.#openCount === 0 ? null : this.#firstDeadline
  }

  balance(): CreditBalance {
    const { balance } = this.#state
    return { balance, reserved: this.#reserved, available: balance - this.#reserved }
  }

  open({ opening, reserve, leaseMilliseconds, estimate = null }: OpenCall): OpenResult {
    this.#checkOwner(opening.organizationId)
    checkAmount('reserve', reserve)
    checkAmount('lease', leaseMilliseconds)
    checkInstant(opening.at)
    if (estimate) checkProgress(estimate)
    if (this.#rememberedIds.has(opening.callId) || this.#findOpen(opening.callId)) return { admitted: true }
    const { available } = this.balance()
    if (reserve > 0 && available < reserve) {
      return { admitted: false, reason: 'no_credits', available, required: reserve }
    }
    const deadline = this.#clock() + leaseMilliseconds
    const row: OpenRow = { opening: trimmedOpening(opening), reserve, progress: estimate }
    this.#tables.insertOpen(row, deadline)
    if (this.#openCalls.size < HELD_CALLS) this.#openCalls.set(opening.callId, row)
    this.#reserved += reserve
    this.#openCount += 1
    this.#firstDeadline = Math.min(this.#firstDeadline ?? deadline, deadline)
    return { admitted: true }
  }

  close(callId: string, outcome: CallOutcome): { closed: boolean } {
    const row = this.#findOpen(callId)
    if (!row) return { closed: false }
    checkOutcome(outcome)
    const flags = outcome.cost > row.reserve ? [...outcome.flags, 'cost_exceeded_reservation'] : outcome.flags
    this.#settle(row, { ...outcome, flags })
    return { closed: true }
  }

  extend(callId: string, leaseMilliseconds: number, progress: CallProgress | null): { open: boolean } {
    checkAmount('lease', leaseMilliseconds)
    if (progress) checkProgress(progress)
    const deadline = this.#clock() + leaseMilliseconds
    if (!this.#tables.renewOpen(callId, deadline, progress)) return { open: false }
    const held = this.#openCalls.get(callId)
    if (held && progress) held.progress = progress
    this.#firstDeadline = Math.min(this.#firstDeadline ?? deadline, deadline)
    return { open: true }
  }

  record(opening: CallOpening, outcome: CallOutcome): void {
    this.#checkOwner(opening.organizationId)
    checkInstant(opening.at)
    checkOutcome(outcome)
    if (this.#rememberedIds.has(opening.callId)) return
    // A call that was opened is settled by it: two records of one call could not both be stored.
    if (this.close(opening.callId, outcome).closed) return
    const content = { ...callContent(opening, outcome, 0) }
    this.#append(opening.callId, content, -outcome.cost)
  }

  recordChange(change: AuditedChange): void {
    this.#checkOwner(change.organizationId)
    checkInstant(change.at)
    if (this.#rememberedIds.has(change.id)) return
    this.#append(change.id, { ...changeContent(change, null) }, 0)
  }

  grantCredits({ id, amount, reason, change }: CreditGrant): CreditBalance {
    this.#checkOwner(change.organizationId)
    checkInstant(change.at)
    if (!Number.isSafeInteger(amount)) throw new RangeError('amount is not a whole number of micro-credits')
    const made = this.#tables.findGrant(id)
    if (made !== null && (made.amount ?? amount) !== amount) throw new RangeError(OTHER_GRANT)
    if (made !== null) return this.balance()
    if (this.#rememberedIds.has(change.id)) throw new RangeError(`change ${change.id} was recorded before`)
    const content = { ...changeContent(change, { id, amount, reason }) }
    this.#append(change.id, content, amount, { id, amount })
    return this.balance()
  }

  /**
   * Settles every call whose lease has run out: at the cost it last reported, else at the estimate it was opened with,
   * else at all that was held for it, since what the provider delivered is not known. Its status is 0: nobody knows what the caller got.
   */
  settleExpired(): void {
    const now = this.#clock()
    if (this.#firstDeadline === null || this.#firstDeadline > now) return
    for (const callId of this.#tables.expiredCallIds(now)) {
      try {
        const row = this.#findOpen(callId)
        if (row) this.#settle(row, lapsedOutcome(row, now))
      } catch (error) {
        // One call that cannot be recorded must hold back neither the others nor the flush that comes after.
        logEvent('error', 'ledger.settle_failed', { callId, error: errorText(error) })
      }
    }
    const { firstDeadline } = this.#tables.openTotals()
    const overdue = firstDeadline !== null && firstDeadline <= now
    this.#firstDeadline = overdue ? now + SETTLE_AGAIN_MS : firstDeadline
  }

  /** Records that Postgres does not have yet. */
  pending(): number {
    return this.#state.sequence - this.#state.flushed
  }

  /** When the oldest of them was appended, in milliseconds since the epoch; null when Postgres has all. */
  pendingSince(): number | null {
    return this.pending() === 0 ? null : this.#tables.appendedAfter(this.#state.flushed)
  }

  /** The oldest records that Postgres does not have yet, in order; null when it has all. */
  nextBatch(): ChainLink[] | null {
    if (this.pending() === 0) return null
    return this.#tables.linksAfter(this.#state.flushed, BATCH_RECORDS, BATCH_CHARACTERS)
  }

  /** Notes that Postgres has everything up to and including `sequence`, and forgets what is old, but never the newest. */
  markFlushed(sequence: number): void {
    if (sequence <= this.#state.flushed) return
    const recent = this.#tables.firstSince(this.#clock() - REMEMBERED_MS) ?? sequence
    this.#storage.transactionSync(() => {
      this.#tables.markFlushed(sequence)
      this.#tables.deleteLinksBefore(Math.min(recent, sequence))
    })
    this.#state.flushed = sequence
  }

  #findOpen(callId: string): OpenRow | null {
    const held = this.#openCalls.get(callId)
    if (held || this.#openCalls.size === this.#openCount) return held ?? null
    return this.#tables.findOpen(callId)
  }

  #settle(row: OpenRow, outcome: CallOutcome): void {
    const { callId } = row.opening
    const content = { ...callContent(row.opening, outcome, row.reserve) }
    this.#append(callId, content, -outcome.cost)
    this.#openCalls.delete(callId)
    this.#reserved -= row.reserve
    this.#openCount -= 1
  }

  /** Appends to the chain and moves the balance, together with a grant if it is of one; memory follows once all is written. */
  #append(id: string, content: Record<string, unknown>, amount: number, grant?: MadeGrant): void {
    const link = nextLink(this.#identity, this.#state, id, content)
    const balance = this.#state.balance + amount
    if (!Number.isSafeInteger(balance)) throw new RangeError('the balance would leave the range of integers')
    const append = () => this.#tables.appendLink(link, balance, this.#clock())
    if (!grant) append()
    else {
      this.#storage.transactionSync(() => {
        append()
        this.#tables.rememberGrant(grant)
      })
    }
    this.#state = { ...this.#state, sequence: link.sequence, hash: link.hash, balance }
    this.#remember(id)
  }

  #remember(id: string): void {
    this.#rememberedIds.add(id)
    if (this.#rememberedIds.size <= REMEMBERED_IDS) return
    for (const oldest of this.#rememberedIds) {
      this.#rememberedIds.delete(oldest)
      return
    }
  }

  #checkOwner(organizationId: string): void {
    if (organizationId !== this.#identity.organizationId) {
      throw new RangeError(`a record of organization ${organizationId} reached another organization's ledger`)
    }
  }
}

function lapsedOutcome({ opening, reserve, progress }: OpenRow, now: number): CallOutcome {
  return {
    status: 0,
    errorCode: 'unsettled',
    provider: progress?.provider ?? null,
    attempts: [],
    usage: progress?.usage ?? null,
    provenance: progress ? 'estimated' : 'unknown',
    cost: progress?.cost ?? reserve,
    durationMilliseconds: Math.max(0, now - opening.at),
    request: null,
    response: null,
    dlp: null,
    connectionId: null,
    flags: ['settled_by_alarm'],
  }
}

// What follows guards the account against figures that Postgres would refuse, or that would spoil the balance for
// good: a record that cannot be flushed would hold back all that come after it.

/** From here on JavaScript writes years with a sign, which Postgres does not read. */
const YEAR_10000 = Date.UTC(10_000, 0)

function checkAmount(name: string, value: number): void {
  if (!Number.isSafeInteger(value) || value < 0) throw new RangeError(`${name} is not a whole number from 0`)
}

function checkInstant(at: number): void {
  if (!(at >= 0 && at < YEAR_10000)) throw new RangeError('at is not an instant that Postgres reads')
}

function checkUsage(usage: Usage): void {
  for (const [name, count] of Object.entries(usage)) checkAmount(`usage.${name}`, count)
}

function checkProgress({ cost, usage }: CallProgress): void {
  checkAmount('cost', cost)
  checkUsage(usage)
}

function checkOutcome(outcome: CallOutcome): void {
  checkAmount('cost', outcome.cost)
  checkAmount('status', outcome.status)
  if (outcome.status > 999) throw new RangeError('status is not an HTTP status')
  if (outcome.usage) checkUsage(outcome.usage)
}
