import type { Clock } from '../../lib/clock.ts'
import type { CommitPart, CommitRows } from './commit-rows.ts'
import { FlushTimer } from './flush-timer.ts'

/** Frames of live responses that an object keeps in memory until they have rows of their own. */
const MOST_KEPT_BYTES = 16 * 1024 * 1024

/** A live response of the object. */
export interface CommitMember {
  /** Number of the response in its object. */
  readonly number: number
  /** Bytes of its frames that are stored in commits only. */
  readonly keptBytes: number
  /** What it has to store; null for nothing. `stored` or `storeAlone` follows at once. */
  take(): CommitPart | null
  stored(): void
  /** Stores what was taken in rows of its own. Never throws: a failure is that of this response only. */
  storeAlone(): void
  /** Stores what it has in commits only in rows of its own. @throws the error of SQLite. */
  spill(): void
}

/**
 * The live responses of an object, which store together what they have at one time: the first that has to store something
 * includes what is pending of the others. A row is most of what a response costs, whatever is in it.
 */
export class CommitGroup {
  readonly #rows: CommitRows
  readonly #clock: Clock
  readonly #members = new Set<CommitMember>()
  readonly #timer = new FlushTimer(() => this.commit())
  #last = Number.NEGATIVE_INFINITY

  constructor(rows: CommitRows, clock: Clock) {
    this.#rows = rows
    this.#clock = clock
  }

  get rows(): CommitRows {
    return this.#rows
  }

  /** Time of the last commit, in milliseconds since the epoch. */
  get lastCommit(): number {
    return this.#last
  }

  join(member: CommitMember): void {
    this.#members.add(member)
  }

  leave(member: CommitMember): void {
    this.#members.delete(member)
  }

  /** Commits at the end of this synchronous run. */
  soon(): void {
    this.#timer.soon()
  }

  /** Commits after so many milliseconds at the latest. @param now milliseconds since the epoch. */
  within(milliseconds: number, now: number): void {
    this.#timer.within(milliseconds, now)
  }

  /** Stores what all members have. Never throws: each member is notified of success or failure. */
  commit(): void {
    this.#timer.cancel()
    const taken: Array<[CommitMember, CommitPart]> = []
    for (const member of this.#members) {
      const part = member.take()
      if (part) taken.push([member, part])
    }
    if (taken.length === 0) return
    this.#last = this.#clock()
    try {
      this.#rows.write(taken.map(([, part]) => part))
    } catch {
      for (const [member] of taken) member.storeAlone()
      return
    }
    for (const [member] of taken) member.stored()
    if (this.#kept > MOST_KEPT_BYTES) this.#limitKept()
  }

  /** Removes from all commits what they have of a response that has left. @throws the error of SQLite. */
  erase(number: number): void {
    const rows = this.#rows.countOf(number)
    if (rows === 0) return
    // Whichever writes less: each row with a part of it, or what the others need of all rows.
    const isLess = rows <= 2 * this.#rows.needing
    if (!isLess && [...this.#members].every(trySpill)) this.#rows.drop()
    else this.#rows.eraseFrom(number)
  }

  get #kept(): number {
    let kept = 0
    for (const { keptBytes } of this.#members) kept += keptBytes
    return kept
  }

  /** The largest become rows of their own. */
  #limitKept(): void {
    const bySize = [...this.#members].sort((one, other) => one.keptBytes - other.keptBytes)
    let kept = this.#kept
    while (kept > MOST_KEPT_BYTES) {
      const largest = bySize.pop()
      if (!largest) return
      kept -= largest.keptBytes
      trySpill(largest)
    }
  }
}

/** What the member has stays where it is if it fails. @returns whether it has rows of its own now. */
function trySpill(member: CommitMember): boolean {
  try {
    member.spill()
    return true
  } catch {
    return false
  }
}
