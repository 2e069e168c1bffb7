import type { AccountLog } from '../account/account-log.ts'
import { linesOf, openedOf } from '../account/commit-row.ts'

/** Calls of each kind that one answer has. */
const MOST_CALLS = 100
/** Records that one answer looks at, the newest ones: the ledger admits no call meanwhile. */
const MOST_EXAMINED = 2_000

/** What one reader of a shard's calls asks for. */
export interface TailRequest {
  tailId: string
  /** The user that reads; null for the administration token. */
  reader: string | null
  /** The last commit that was read; null for the calls that are open now. */
  after: number | null
  /** Keeps the calls of one user; null for all. */
  userId: string | null
  /** Time to wait for something that is wanted. */
  waitMilliseconds: number
}

interface TailedCalls {
  /** The last commit that was read. */
  after: number
  /** Records without an outcome, as JSON, oldest first: calls that were admitted and have not ended. */
  opened: string[]
  /** Records of calls that ended, as JSON, oldest first. */
  closed: string[]
  /** Whether there were more than an answer holds. The newest are in it. */
  skipped: boolean
}

/** @see TailedCalls. */
export interface TailAnswer extends TailedCalls {
  /** The organization's epoch, where the shard knows it: another one than before means other rights. */
  epoch: number | null
}

/** Calls that were opened and ended since a commit. The log has the commits of a day. */
export function readTail(log: AccountLog, after: number | null, userId: string | null): TailedCalls {
  const { commit, open } = log.memory
  const calls = new NewestCalls(userId)
  if (after === null || after > commit) {
    for (const call of open.newestFirst()) if (!calls.addOpened(call)) break
    return { after: commit, ...calls.oldestFirst() }
  }
  for (const { number, opened, bodies } of log.tables.newestCommits(after)) {
    if (calls.examined >= MOST_EXAMINED) return { after: commit, ...calls.oldestFirst(), skipped: true }
    for (const body of linesOf(bodies).reverse()) calls.addClosed(body)
    for (const call of [...openedOf(opened, number)].reverse()) if (open.find(call.id)) calls.addOpened(call)
  }
  return { after: commit, ...calls.oldestFirst() }
}

/** Collects calls, the newest first, up to the most that an answer has. */
class NewestCalls {
  readonly #userId: string | null
  readonly #opened: string[] = []
  readonly #closed: string[] = []
  #skipped = false
  /** Records that were looked at. */
  examined = 0

  constructor(userId: string | null) {
    this.#userId = userId
  }

  /** @returns whether more may be added. */
  addOpened({ id, opening }: { id: string; opening: string }): boolean {
    return this.#add(this.#opened, `{"id":${JSON.stringify(id)},${opening}}`, null)
  }

  /** @param body of any record; those of changes are left out. */
  addClosed(body: string): boolean {
    return this.#add(this.#closed, body, 'call')
  }

  oldestFirst(): Omit<TailedCalls, 'after'> {
    return { opened: this.#opened.reverse(), closed: this.#closed.reverse(), skipped: this.#skipped }
  }

  #add(calls: string[], text: string, kind: string | null): boolean {
    if (++this.examined > MOST_EXAMINED) this.#skipped = true
    if (this.examined > MOST_EXAMINED) return false
    // Most records are of others, and need not be parsed.
    if (this.#userId !== null && !text.includes(this.#userId)) return true
    const record: { kind?: string; actor: { userId: string | null } } = JSON.parse(text)
    if (kind !== null && record.kind !== kind) return true
    if (this.#userId !== null && record.actor.userId !== this.#userId) return true
    if (calls.length === MOST_CALLS) {
      this.#skipped = true
      return false
    }
    calls.push(text)
    return true
  }
}

/** Tails of one organization at one time, and of one of its users, so that nobody takes the place of all others. */
const MOST_TAILS = 20
const MOST_OF_A_USER = 5
/** A tail that has not asked for so long has ended: a request waits five seconds. */
const LEFT_AFTER_MS = 15_000

/** The tails of an organization, in the memory of its home shard. */
export class OpenTails {
  readonly #open = new Map<string, { reader: string | null; seenAt: number }>()

  /** Notes that a tail asks. @returns whether it may: false for a further one where there are many. */
  admit({ tailId, reader }: Pick<TailRequest, 'tailId' | 'reader'>, now: number): boolean {
    for (const [id, { seenAt }] of this.#open) if (now - seenAt > LEFT_AFTER_MS) this.#open.delete(id)
    if (!this.#open.has(tailId) && !this.#hasRoom(reader)) return false
    this.#open.set(tailId, { reader, seenAt: now })
    return true
  }

  #hasRoom(reader: string | null): boolean {
    if (this.#open.size >= MOST_TAILS) return false
    if (reader === null) return true
    return [...this.#open.values()].filter((tail) => tail.reader === reader).length < MOST_OF_A_USER
  }
}
