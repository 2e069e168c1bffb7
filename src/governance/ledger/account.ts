import type { Clock } from '../../lib/clock.ts'
import { errorText, logEvent } from '../../lib/log.ts'
import type { AuditedChange } from '../audit-record.ts'
import { type AccountMemory, loadMemory } from './account-memory.ts'
import { AccountTables, type LedgerStorage } from './account-tables.ts'
import { type CheckColumns, findLimited, findStale } from './admission.ts'
import { type ChainIdentity, type ChainLink, nextLink } from './chain.ts'
import type {
  CallColumns,
  ClosingColumns,
  CommitAnswer,
  CommitBatch,
  InvalidEntry,
  LearnedEpochs,
} from './commit.ts'
import { CommitDraft } from './commit-draft.ts'
import type { EpochKnowledge } from './epoch-knowledge.ts'
import { lapsedOutcome } from './lapsed-outcome.ts'
import {
  type Admission,
  type CallProgress,
  type CreditBalance,
  type CreditGrant,
  OTHER_GRANT,
  type Refusal,
} from './ledger.ts'
import type { OpenCall } from './open-calls.ts'
import { callText, changeText, withFlag } from './record-body.ts'
import { checkAmount, checkId, checkInstant, checkOwner, checkProgress } from './record-checks.ts'

/**
 * Commits stay this long: a repeated call is known for one, and the windows of the minute before reach back so far.
 */
const REMEMBERED_MS = 2 * 60_000
/** Calls that may be open at a time: some 60 MB. */
const MOST_OPEN_CALLS = 50_000
/** How long to wait with a lapsed call that could not be settled. */
const SETTLE_AGAIN_MS = 60_000

/**
 * Balance, open calls, windows, epochs and audit chain of one organization, over the storage of its Durable Object.
 * All of it is in memory and decided there; a row of the log for each commit is what memory is made of again after a
 * restart. Everything is synchronous: no other request can run between what a method reads and what it writes, which
 * is why concurrent calls never reserve more than the balance. The runtime holds answers back until writes are durable.
 */
export class LedgerAccount {
  readonly #storage: LedgerStorage
  readonly #tables: AccountTables
  readonly #identity: ChainIdentity
  readonly #clock: Clock
  #memory: AccountMemory
  #draft: CommitDraft

  /** Loads an account that was begun in this storage. */
  constructor(storage: LedgerStorage, identity: ChainIdentity, clock: Clock) {
    this.#storage = storage
    this.#tables = new AccountTables(storage)
    this.#identity = identity
    this.#clock = clock
    this.#tables.upgrade()
    this.#memory = loadMemory(this.#tables)
    this.#draft = new CommitDraft(this.#memory.state.hash)
  }

  get epochs(): EpochKnowledge {
    return this.#memory.epochs
  }

  /** When the next lease can run out, in milliseconds since the epoch; null when no call is open. */
  get nextDeadline(): number | null {
    return this.#memory.open.nextDeadline
  }

  balance(): CreditBalance {
    const { state, open } = this.#memory
    return { balance: state.balance, reserved: open.reserved, available: state.balance - open.reserved }
  }

  /** Settles the closings of a batch, then decides its calls in order, and stores what came of it as one row. */
  commit({ calls, closings, learned }: CommitBatch): CommitAnswer {
    const now = this.#clock()
    if (learned) this.confirmEpochs(learned, now)
    return this.#writing(now, () => ({
      unsettled: this.#close(closings, now),
      refused: this.#decide(calls, now),
    }))
  }

  /** Whether a call, the first of the columns, would pass epochs and limits. */
  check(columns: CheckColumns, learned: LearnedEpochs | null): Admission {
    const now = this.#clock()
    if (learned) this.confirmEpochs(learned, now)
    const { epochs, windows } = this.#memory
    return findStale(columns, 0, epochs, now) ?? findLimited(columns, 0, windows, now) ?? { kind: 'admitted' }
  }

  extend(callId: string, leaseMilliseconds: number, progress: CallProgress | null): { open: boolean } {
    checkAmount('lease', leaseMilliseconds)
    if (progress) checkProgress(progress)
    const call = this.#memory.open.find(callId)
    if (!call) return { open: false }
    const now = this.#clock()
    this.#writing(now, () => {
      const text = progress === null ? null : JSON.stringify(progress)
      this.#memory.open.renew(call, now + leaseMilliseconds, text)
      this.#draft.renew(callId, call.deadline, text)
    })
    return { open: true }
  }

  recordChange(change: AuditedChange): void {
    this.#checkChange(change)
    if (this.#memory.recent.has(change.id)) return
    this.#writing(this.#clock(), () => this.#append(change.id, changeText(change, null), 0))
  }

  grantCredits({ id, amount, reason, change }: CreditGrant): CreditBalance {
    this.#checkChange(change)
    if (!Number.isSafeInteger(amount)) throw new RangeError('amount is not a whole number of micro-credits')
    const made = this.#tables.findGrant(id)
    if (made !== null && (made.amount ?? amount) !== amount) throw new RangeError(OTHER_GRANT)
    if (made !== null) return this.balance()
    if (this.#memory.recent.has(change.id)) throw new RangeError(`change ${change.id} was recorded before`)
    this.#writing(
      this.#clock(),
      () => this.#append(change.id, changeText(change, { id, amount, reason }), amount),
      () => this.#tables.rememberGrant({ id, amount }),
    )
    return this.balance()
  }

  /**
   * Settles every call whose lease has run out: at the cost it last reported, else at the estimate it was opened with,
   * else at all that was held for it, since what the provider delivered is not known.
   */
  settleExpired(): void {
    const now = this.#clock()
    for (const { id } of this.#memory.open.expired(now)) {
      try {
        // One row each: a call that cannot be recorded must hold back neither the others nor the flush that comes after.
        this.#writing(now, () => {
          const call = this.#memory.open.find(id)
          if (!call) return
          const { cost, text } = lapsedOutcome(call, now)
          this.#settle(call, text, cost)
        })
      } catch (error) {
        logEvent('error', 'ledger.settle_failed', { callId: id, error: errorText(error) })
      }
    }
    this.#memory.open.readDeadlines(now, now + SETTLE_AGAIN_MS)
  }

  /** Takes over epochs that Postgres told. @param at when it was asked; milliseconds since the epoch. */
  confirmEpochs(learned: LearnedEpochs, at: number): void {
    if (this.epochs.confirm(learned, at)) this.#tables.saveEpochs(this.epochs.stored)
  }

  /** Records that Postgres does not have yet. */
  pending(): number {
    return this.#memory.state.sequence - this.#memory.outbox.flushed
  }

  /** When the oldest of them was appended, in milliseconds since the epoch; null when Postgres has all. */
  pendingSince(): number | null {
    return this.pending() === 0 ? null : this.#memory.outbox.oldestAt()
  }

  /** The oldest records that Postgres does not have yet, in order; null when it has all. */
  nextBatch(): ChainLink[] | null {
    return this.pending() === 0 ? null : this.#memory.outbox.nextBatch()
  }

  /** Notes that Postgres has everything up to and including `sequence`, and deletes what is old, but never the newest. */
  markFlushed(sequence: number): void {
    const { outbox } = this.#memory
    if (sequence <= outbox.flushed) return
    outbox.markFlushed(sequence)
    this.trim()
  }

  /**
   * Moves calls that have long been open from the log to rows of their own, so that a restart reads no more than two
   * minutes of the log, and deletes the commits that nothing needs any more.
   */
  trim(): void {
    const { commit, open, outbox, epochs } = this.#memory
    const old = this.#clock() - REMEMBERED_MS
    const replayFrom = this.#tables.firstSince(old, this.#memory.replayFrom) ?? commit
    const calls = [...open.unstoredBefore(replayFrom)]
    this.#storage.transactionSync(() => {
      for (const call of calls) this.#tables.storeOpenCall(call)
      this.#tables.saveProgress(outbox.flushed, replayFrom, epochs.stored)
      this.#tables.deleteCommitsBefore(Math.min(replayFrom, outbox.flushedCommit + 1, commit))
    })
    for (const call of calls) Object.assign(call, { isStored: true, isChanged: false })
    this.#memory.replayFrom = replayFrom
  }

  /**
   * Runs what changes memory, and writes the row that says so. When either fails, memory is made anew of what is stored.
   * @param along what is written in one transaction with it.
   */
  #writing<Result>(now: number, change: () => Result, along?: () => void): Result {
    try {
      const result = change()
      this.#writeDraft(now, along)
      return result
    } catch (error) {
      this.#memory = loadMemory(this.#tables)
      this.#draft = new CommitDraft(this.#memory.state.hash)
      throw error
    }
  }

  #writeDraft(now: number, along?: () => void): void {
    const draft = this.#draft
    if (draft.isEmpty) return
    const memory = this.#memory
    const row = draft.row(memory.commit + 1, now, memory.state)
    const write = () => {
      this.#tables.append(row)
      for (const id of draft.endedRows) this.#tables.deleteOpenCall(id)
      along?.()
    }
    if (along || draft.endedRows.length > 0) this.#storage.transactionSync(write)
    else write()
    memory.commit += 1
    this.#draft = new CommitDraft(memory.state.hash)
  }

  #close({ ids, outcomes, costs }: ClosingColumns, now: number): CommitAnswer['unsettled'] {
    const unsettled: CommitAnswer['unsettled'] = []
    for (let index = 0; index < ids.length; index += 1) {
      const call = this.#memory.open.find(ids[index] as string)
      if (!call) continue
      const failure = invalidOr(() => this.#settle(call, outcomes[index] as string, costs[index] as number))
      if (failure) unsettled.push([index, failure])
      if (this.#draft.isFull) this.#writeDraft(now)
    }
    return unsettled
  }

  #decide(calls: CallColumns, now: number): CommitAnswer['refused'] {
    const refused: CommitAnswer['refused'] = []
    for (let index = 0; index < calls.ids.length; index += 1) {
      const verdict = invalidOr(() => this.#admit(calls, index, now))
      if (verdict) refused.push([index, verdict])
      if (this.#draft.isFull) this.#writeDraft(now)
    }
    return refused
  }

  /** Order: calls that are known (a repeated one, or the outcome of an open one), epochs, limits, credits. */
  #admit(calls: CallColumns, index: number, now: number): Refusal | null {
    const { recent, open, epochs, windows } = this.#memory
    const id = calls.ids[index] as string
    if (recent.has(id)) return null
    const outcome = calls.outcomes[index] ?? null
    const cost = calls.costs[index] as number
    const known = open.find(id)
    // A call that was opened is settled by its record: two records of one call could not both be stored.
    if (known && outcome !== null) this.#settle(known, outcome, cost)
    if (known) return null
    const refusal = findStale(calls, index, epochs, now) ?? findLimited(calls, index, windows, now)
    if (refusal) return refusal
    if (outcome !== null) {
      this.#append(id, callText(calls.openings[index] as string, outcome, 0), -checkedCost(cost))
    } else {
      const noCredits = this.#openCall(calls, index, now)
      if (noCredits) return noCredits
    }
    const userId = calls.userIds[index] as string
    if (userId !== '') {
      windows.count(userId, now)
      this.#draft.count(userId)
    }
    return null
  }

  #openCall(calls: CallColumns, index: number, now: number): Refusal | null {
    const [reserve, lease] = [calls.reserves[index] as number, calls.leases[index] as number]
    const id = calls.ids[index] as string
    checkId(id)
    checkAmount('reserve', reserve)
    checkAmount('lease', lease)
    const { available } = this.balance()
    if (reserve > 0 && available < reserve) return { kind: 'no_credits', available, required: reserve }
    const { open, commit } = this.#memory
    if (open.count >= MOST_OPEN_CALLS) throw new RangeError('too many calls are open')
    const call: OpenCall = {
      id,
      reserve,
      deadline: now + lease,
      opening: calls.openings[index] as string,
      progress: calls.estimates[index] ?? null,
      openedBy: commit + 1,
      isStored: false,
      isChanged: false,
    }
    open.add(call)
    this.#draft.open(call)
    return null
  }

  #settle(call: OpenCall, outcome: string, cost: number): void {
    const exceeds = checkedCost(cost) > call.reserve
    const ended = exceeds ? withFlag(outcome, 'cost_exceeded_reservation') : outcome
    this.#append(call.id, callText(call.opening, ended, call.reserve), -cost)
    this.#memory.open.remove(call)
    if (call.isStored) this.#draft.endedRows.push(call.id)
  }

  /** Appends to the chain and moves the balance. Changes nothing when it throws. */
  #append(id: string, content: string, amount: number): void {
    checkId(id)
    const { state, recent } = this.#memory
    const balance = state.balance + amount
    if (!Number.isSafeInteger(balance)) throw new RangeError('the balance would leave the range of integers')
    const link = nextLink(this.#identity, state, id, content)
    this.#draft.append(link)
    this.#memory.state = { sequence: link.sequence, hash: link.hash, balance }
    recent.add(id)
  }

  #checkChange(change: AuditedChange): void {
    checkOwner(change.organizationId, this.#identity.organizationId)
    checkInstant(change.at)
  }
}

function checkedCost(cost: number): number {
  checkAmount('cost', cost)
  return cost
}

/** Runs one entry of a batch: what it cannot be is told of it alone. */
function invalidOr<Verdict>(decide: () => Verdict): Verdict | InvalidEntry {
  try {
    return decide()
  } catch (error) {
    if (!(error instanceof RangeError)) throw error
    return { kind: 'invalid', message: error.message }
  }
}
