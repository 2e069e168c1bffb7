import type { Clock } from '../../lib/clock.ts'
import type { LearnedEpochs } from '../epochs/known-epochs.ts'
import { type ChainIdentity, type ChainLink, type HeldChain, nextLink } from '../records/chain.ts'
import { checkId } from '../records/record-checks.ts'
import { type AccountMemory, loadMemory } from './account-memory.ts'
import { AccountTables, type LedgerStorage } from './account-tables.ts'
import { CommitDraft } from './commit-row.ts'

/** A restart reads the commits of this time: repeated calls are recognized, and the sliding windows have the minute before. */
const REMEMBERED_MS = 2 * 60_000
const DAY_MS = 24 * 60 * 60_000
/** For this time commits are kept that Postgres has: what a restore of Postgres loses can be written again. */
const KEPT_MS = DAY_MS
/** Rows that no commit has overwritten by then are deleted. Load that rises and falls within a week deletes nothing. */
const SURPLUS_MS = 8 * DAY_MS
/** In a larger database commits are overwritten as soon as Postgres has them. An object holds 10 GB. */
const LARGEST_BYTES = 5_000_000_000
/** In one that has grown even more, while Postgres was away, commits are deleted that Postgres has. */
const SHRINKING_BYTES = 6_000_000_000
/** Rows that are deleted at a time. */
const MOST_DELETED = 1_000
/**
 * Interval in which progress is stored. Records written to Postgres since the last progress are written again after a
 * restart.
 */
const TRIM_MS = 60_000

/**
 * The stored side of an account: each commit's changes are one row of the log, from which records are flushed to Postgres
 * and memory is rebuilt. It decides nothing.
 */
export class AccountLog {
  readonly tables: AccountTables
  readonly #storage: LedgerStorage
  readonly #identity: ChainIdentity
  readonly #clock: Clock
  #memory: AccountMemory
  #draft: CommitDraft
  #trimmedAt = 0

  /** Loads an account that was begun in this storage. */
  constructor(storage: LedgerStorage, identity: ChainIdentity, clock: Clock) {
    this.tables = new AccountTables(storage)
    this.#storage = storage
    this.#identity = identity
    this.#clock = clock
    this.tables.upgrade()
    this.#memory = loadMemory(this.tables)
    this.#draft = new CommitDraft(this.#memory.state.hash)
  }

  /** Replaced after a failed write. */
  get memory(): AccountMemory {
    return this.#memory
  }

  /** The next row of the log. */
  get draft(): CommitDraft {
    return this.#draft
  }

  /**
   * Runs a change of memory, and writes its row. When either fails, memory is rebuilt from what is stored.
   * @param alsoWrite writes in the same transaction.
   */
  commit<Result>(now: number, change: () => Result, alsoWrite?: () => void): Result {
    try {
      const result = change()
      this.#write(now, alsoWrite)
      return result
    } catch (error) {
      this.#memory = loadMemory(this.tables)
      this.#draft = new CommitDraft(this.#memory.state.hash)
      throw error
    }
  }

  /** Writes the row within a commit when it has the maximum length; further changes go into another row. */
  commitIfFull(now: number): void {
    if (this.#draft.isFull) this.#write(now)
  }

  #write(now: number, alsoWrite?: () => void): void {
    const draft = this.#draft
    if (draft.isEmpty) return
    const memory = this.#memory
    const row = draft.row(memory.commit + 1, now, memory.state)
    const overwritten = memory.oldest < memory.neededFrom ? memory.oldest : null
    const write = () => {
      this.tables.append(row, overwritten)
      for (const id of draft.closedRows) this.tables.deleteOpenCall(id)
      alsoWrite?.()
    }
    if (alsoWrite || draft.closedRows.length > 0) this.#storage.transactionSync(write)
    else write()
    memory.commit += 1
    if (overwritten !== null) memory.oldest += 1
    this.#draft = new CommitDraft(memory.state.hash)
  }

  /** Appends to the chain and moves the balance. Changes nothing when it throws. @param content members of the body. */
  append(id: string, content: string, amount: number): void {
    checkId(id)
    const { state, recent } = this.#memory
    const balance = state.balance + amount
    if (!Number.isSafeInteger(balance)) throw new RangeError('the balance would leave the range of integers')
    const link = nextLink(this.#identity, state, id, content)
    this.#draft.append(link)
    this.#memory.state = { sequence: link.sequence, hash: link.hash, balance }
    recent.add(id)
  }

  /** Takes over epochs that were read from Postgres. @param at when they were requested, in milliseconds since the epoch. */
  confirmEpochs(learned: LearnedEpochs, at: number): void {
    const { epochs, outbox, replayFrom } = this.#memory
    if (epochs.confirm(learned, at)) this.tables.saveProgress(outbox.flushed, replayFrom, epochs.stored)
  }

  /** Records that Postgres does not have yet. */
  pending(): number {
    return this.#memory.state.sequence - this.#memory.outbox.flushed
  }

  /** When the oldest pending record was appended, in milliseconds since the epoch; null when Postgres has all. */
  pendingSince(): number | null {
    return this.pending() === 0 ? null : this.#memory.outbox.oldestAt()
  }

  /** The chain, up to the last record, to the last one that Postgres has, and to the one after that. */
  chain(): HeldChain {
    const { state, outbox, oldest } = this.#memory
    const { sequence, hash } = state
    const next = outbox.firstPending()
    return {
      shard: this.#identity.shard,
      head: { sequence, hash },
      flushed: { sequence: outbox.flushed, hash: next?.previousHash ?? hash },
      flushedBalance: this.#flushedBalance(),
      pending: next && { sequence: next.sequence, hash: next.hash },
      keptFrom: this.tables.search.firstRecord(oldest),
    }
  }

  #flushedBalance(): number | null {
    const { state, outbox } = this.#memory
    if (this.pending() === 0) return state.balance
    const after = this.tables.search.stateAfter(outbox.flushedCommit)
    return after?.sequence === outbox.flushed ? after.balance : null
  }

  /** The oldest records that Postgres does not have yet, in order; null when it has all. */
  nextBatch(): ChainLink[] | null {
    return this.pending() === 0 ? null : this.#memory.outbox.nextBatch()
  }

  /**
   * Postgres has the records from `first` to `last`. That changes nothing where it may lack some before them: a write that was
   * answered late, or whose records the log was rewound behind.
   */
  markFlushed(first: number, last: number): void {
    const { outbox } = this.#memory
    if (last <= outbox.flushed || first > outbox.flushed + 1) return
    outbox.markFlushed(last)
    this.trim()
  }

  /**
   * Makes records pending again that Postgres has lost. Until they are written, no commit overwrites them.
   * @param sequence the last one that Postgres has. @param since only those of commits since then, in milliseconds since the
   * epoch.
   * @returns the sequence after which everything is pending, which is higher where the log has older ones no more.
   */
  rewind(sequence: number, since = 0): number {
    const memory = this.#memory
    const { outbox, oldest, commit, epochs } = memory
    const kept = this.tables.search.firstRecord(this.tables.search.firstSince(since, oldest, commit + 1))
    const last = Math.min(outbox.flushed, Math.max(sequence, kept ? kept.sequence - 1 : outbox.flushed))
    if (last === outbox.flushed) return last
    this.tables.saveProgress(last, memory.replayFrom, epochs.stored)
    outbox.rewind(last)
    memory.neededFrom = Math.min(memory.neededFrom, outbox.flushedCommit + 1)
    return last
  }

  /** Hash of a record; null when the log does not have it. */
  hashOf(sequence: number): string | null {
    const { tables } = this
    for (const { links } of tables.recordsAfter(tables.search.lastUpTo(sequence - 1))) {
      return links.find((link) => link.sequence === sequence)?.hash ?? null
    }
    return null
  }

  /** The last sequence that Postgres has confirmed. */
  get flushed(): number {
    return this.#memory.outbox.flushed
  }

  /**
   * Once a minute: stores progress and the calls that have long been open, so that a restart reads only the newest commits, and
   * finds the commits that others may overwrite. Those are old, and Postgres has them. The newest is always kept.
   */
  trim(): void {
    const now = this.#clock()
    if (Math.abs(now - this.#trimmedAt) < TRIM_MS) return
    this.#trimmedAt = now
    const memory = this.#memory
    const { commit, oldest, open, outbox, epochs } = memory
    const replayFrom = this.tables.search.firstSince(now - REMEMBERED_MS, memory.replayFrom, commit)
    const calls = [...open.unstoredBefore(replayFrom)]
    const unused = Math.min(replayFrom, outbox.flushedCommit + 1)
    const { size, search } = this.tables
    const neededFrom = size > LARGEST_BYTES ? unused : search.firstSince(now - KEPT_MS, oldest, unused)
    const isShrinking = size > SHRINKING_BYTES
    const surplus = isShrinking ? neededFrom : search.firstSince(now - SURPLUS_MS, oldest, neededFrom)
    const keptFrom = Math.min(surplus, oldest + MOST_DELETED)
    this.#storage.transactionSync(() => {
      for (const call of calls) this.tables.storeOpenCall(call)
      this.tables.saveProgress(outbox.flushed, replayFrom, epochs.stored)
      this.tables.deleteCommitsBefore(keptFrom)
    })
    for (const call of calls) Object.assign(call, { isStored: true, isChanged: false })
    Object.assign(memory, { replayFrom, neededFrom, oldest: keptFrom })
  }
}
