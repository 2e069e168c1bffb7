import type { Clock } from '../../lib/clock.ts'
import { errorText, logEvent } from '../../lib/log.ts'
import type { AuditedChange } from '../audit-record.ts'
import {
  type CallColumns,
  type ClosingColumns,
  type CommitAnswer,
  type CommitBatch,
  emptyRateLimits,
  type InvalidEntry,
  type RateLimitColumns,
} from '../commits/commit.ts'
import {
  type Admission,
  type AdmissionRefusal,
  type CallProgress,
  type CreditBalance,
  type CreditGrant,
  OTHER_GRANT,
  SETTLED_CALL,
} from '../contract.ts'
import type { KnownEpochs, LearnedEpochs } from '../epochs/known-epochs.ts'
import type { ChainIdentity } from '../records/chain.ts'
import { callText, changeText, withFlag } from '../records/record-body.ts'
import { checkAmount, checkId, checkInstant, checkOwner, checkProgress } from '../records/record-checks.ts'
import { AccountLog } from './account-log.ts'
import type { LedgerStorage } from './account-tables.ts'
import { findLimited, findStale, limitsOf } from './admission-checks.ts'
import { lapsedOutcome } from './lapsed-outcome.ts'
import type { OpenCall } from './open-calls.ts'
import type { SlidingWindows } from './sliding-windows.ts'

/** Calls that may be open at a time; they take some 60 MB. */
const MOST_OPEN_CALLS = 50_000
/** Wait before a lapsed call that could not be settled is tried again. */
const SETTLE_AGAIN_MS = 60_000

/**
 * Balance, open calls, windows, epochs and audit chain of one shard of an organization, in memory. Each commit is one row
 * of a log in the storage of the Durable Object, from which memory is rebuilt after a restart. Everything is synchronous:
 * no other request can run between what a method reads and what it writes, so concurrent calls cannot reserve more than
 * the balance. The runtime holds answers back until writes are durable.
 */
export class LedgerAccount {
  readonly log: AccountLog
  readonly #identity: ChainIdentity
  readonly #clock: Clock
  /** Micro-credits settled since the account was loaded. */
  spent = 0

  /** Loads an account that was begun in this storage. */
  constructor(storage: LedgerStorage, identity: ChainIdentity, clock: Clock) {
    this.log = new AccountLog(storage, identity, clock)
    this.#identity = identity
    this.#clock = clock
  }

  get windows(): SlidingWindows {
    return this.log.memory.windows
  }

  get epochs(): KnownEpochs {
    return this.log.memory.epochs
  }

  /** When the next lease can run out, in milliseconds since the epoch; null when no call is open. */
  get nextDeadline(): number | null {
    return this.log.memory.open.nextDeadline
  }

  balance(): CreditBalance {
    const { state, open } = this.log.memory
    return { balance: state.balance, reserved: open.reserved, available: state.balance - open.reserved }
  }

  /** Settles the closings of a batch, then decides its calls in order, and stores the changes as one row. */
  commit({ calls, closings, learned }: CommitBatch): CommitAnswer {
    const now = this.#clock()
    if (learned) this.log.confirmEpochs(learned, now)
    return this.log.commit(now, () => ({
      unsettled: this.#close(closings, now),
      ...this.#decide(calls, now),
    }))
  }

  /** Whether a call would pass epochs and limits. Counts nothing. @param call one call. */
  check(call: CallColumns, learned: LearnedEpochs | null): Admission {
    const now = this.#clock()
    if (learned) this.log.confirmEpochs(learned, now)
    const { epochs, windows } = this.log.memory
    return findStale(call, 0, epochs, now) ?? findLimited(call, 0, windows, now) ?? { kind: 'admitted' }
  }

  extend(callId: string, leaseMilliseconds: number, progress: CallProgress | null): { open: boolean } {
    checkAmount('lease', leaseMilliseconds)
    if (progress) checkProgress(progress)
    const call = this.log.memory.open.find(callId)
    if (!call) return { open: false }
    const now = this.#clock()
    this.log.commit(now, () => {
      const text = progress === null ? null : JSON.stringify(progress)
      this.log.memory.open.renew(call, now + leaseMilliseconds, text)
      this.log.draft.renew(callId, call.deadline, text)
    })
    return { open: true }
  }

  recordChange(change: AuditedChange): void {
    this.#checkChange(change)
    if (this.log.memory.recent.has(change.id)) return
    this.log.commit(this.#clock(), () => this.log.append(change.id, changeText(change, null), 0))
  }

  grantCredits({ id, amount, reason, change }: CreditGrant): CreditBalance {
    this.#checkChange(change)
    if (!Number.isSafeInteger(amount)) throw new RangeError('amount is not a whole number of micro-credits')
    const made = this.log.tables.findGrant(id)
    if (made !== null && (made.amount ?? amount) !== amount) throw new RangeError(OTHER_GRANT)
    if (made !== null) return this.balance()
    if (this.log.memory.recent.has(change.id)) throw new RangeError(`change ${change.id} was recorded before`)
    this.log.commit(
      this.#clock(),
      () => this.log.append(change.id, changeText(change, { id, amount, reason }), amount),
      () => this.log.tables.storeGrant({ id, amount }),
    )
    return this.balance()
  }

  /**
   * Records credits that were moved to or from another shard of the organization.
   * @param name of the transfer, unique in the organization. @param amount negative for credits that leave this shard.
   * @param alsoWrite writes in the same transaction.
   */
  transfer(name: string, amount: number, alsoWrite: () => void): void {
    const { organizationId } = this.#identity
    const id = `transfer:${organizationId}:${name}`
    const at = this.#clock()
    const actor = { userId: null, keyId: null, administrator: 'ledger', ip: null }
    const [shard = '', , direction = ''] = name.split(':')
    const detail = { shard: Number(shard), direction, amount: Math.abs(amount) }
    const place = { requestId: id, organizationId, resource: `ledger/shards/${shard}` }
    const change: AuditedChange = { id, ...place, at, actor, action: 'credits.moved', detail }
    const reason = 'transfer between shards'
    const content = changeText(change, { kind: 'transfer', id: name, amount, reason })
    this.log.commit(at, () => this.log.append(id, content, amount), alsoWrite)
  }

  /**
   * Settles every call whose lease has run out: at the cost it last reported, else at the estimate it was opened with,
   * else at all that was reserved, since it is unknown what the provider delivered.
   */
  settleExpired(): void {
    const now = this.#clock()
    for (const { id } of this.log.memory.open.expired(now)) {
      try {
        // Each call has a commit of its own: a call that cannot be recorded must not block the others or the flush.
        this.log.commit(now, () => {
          const call = this.log.memory.open.find(id)
          if (!call) return
          const { cost, text } = lapsedOutcome(call, now)
          this.#settle(call, text, cost)
        })
      } catch (error) {
        logEvent('error', 'ledger.settle_failed', { callId: id, error: errorText(error) })
      }
    }
    this.log.memory.open.readDeadlines(now, now + SETTLE_AGAIN_MS)
  }

  #close({ ids, outcomes, costs }: ClosingColumns, now: number): CommitAnswer['unsettled'] {
    const unsettled: CommitAnswer['unsettled'] = []
    for (let index = 0; index < ids.length; index += 1) {
      const call = this.log.memory.open.find(ids[index] as string)
      if (!call) continue
      const failure = invalidOr(() => this.#settle(call, outcomes[index] as string, costs[index] as number))
      if (failure) unsettled.push([index, failure])
      this.log.commitIfFull(now)
    }
    return unsettled
  }

  #decide(calls: CallColumns, now: number): Pick<CommitAnswer, 'refused' | 'rateLimits'> {
    const { windows } = this.log.memory
    const refused: CommitAnswer['refused'] = []
    let rateLimits: RateLimitColumns | null = null
    for (let index = 0; index < calls.ids.length; index += 1) {
      const verdict = invalidOr(() => this.#admit(calls, index, now))
      const limits = verdict ? null : limitsOf(calls, index)
      if (verdict) refused.push([index, verdict])
      if (limits) {
        const { limit, remaining } = windows.tightest(limits, now)
        rateLimits ??= emptyRateLimits(calls.ids.length, windows.endsAt)
        rateLimits.limits[index] = limit
        rateLimits.remaining[index] = remaining
      }
      this.log.commitIfFull(now)
    }
    return rateLimits ? { refused, rateLimits } : { refused }
  }

  /**
   * Order: known calls (a repeated one, or the outcome of an open one), epochs, limits, credits.
   *
   * @throws RangeError for a call that is not opened: with a settled id it would run without a charge
   */
  #admit(calls: CallColumns, index: number, now: number): AdmissionRefusal | null {
    const { recent, open, epochs, windows } = this.log.memory
    const id = calls.ids[index] as string
    const outcome = calls.outcomes[index] ?? null
    if (recent.has(id) && outcome === null) throw new RangeError(SETTLED_CALL)
    if (recent.has(id)) return null
    const cost = calls.costs[index] as number
    const known = open.find(id)
    // A call that was opened is settled by its record: two records of one call could not both be stored.
    if (known && outcome !== null) this.#settle(known, outcome, cost)
    if (known) return null
    const refusal = findStale(calls, index, epochs, now) ?? findLimited(calls, index, windows, now)
    if (refusal) return refusal
    if (outcome !== null) {
      this.log.append(id, callText(calls.openings[index] as string, outcome, 0), -checkedCost(cost))
    } else {
      const noCredits = this.#openCall(calls, index, now)
      if (noCredits) return noCredits
    }
    const userId = calls.userIds[index] as string
    if (userId !== '') {
      windows.count(userId, now)
      this.log.draft.count(userId)
    }
    return null
  }

  #openCall(calls: CallColumns, index: number, now: number): AdmissionRefusal | null {
    const [reserve, lease] = [calls.reserves[index] as number, calls.leases[index] as number]
    const id = calls.ids[index] as string
    checkId(id)
    checkAmount('reserve', reserve)
    checkAmount('lease', lease)
    const { available } = this.balance()
    if (reserve > 0 && available < reserve) return { kind: 'no_credits', available, required: reserve }
    const { open, commit } = this.log.memory
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
    this.log.draft.open(call)
    return null
  }

  #settle(call: OpenCall, outcome: string, cost: number): void {
    const exceeds = checkedCost(cost) > call.reserve
    const ended = exceeds ? withFlag(outcome, 'cost_exceeded_reservation') : outcome
    this.log.append(call.id, callText(call.opening, ended, call.reserve), -cost)
    this.log.memory.open.remove(call)
    this.spent += cost
    if (call.isStored) this.log.draft.closedRows.push(call.id)
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

/** Decides one entry of a batch: an invalid one fails alone. */
function invalidOr<Verdict>(decide: () => Verdict): Verdict | InvalidEntry {
  try {
    return decide()
  } catch (error) {
    if (!(error instanceof RangeError)) throw error
    return { kind: 'invalid', message: error.message }
  }
}
