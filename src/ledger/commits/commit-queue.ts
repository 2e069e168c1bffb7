import { systemClock } from '../../lib/clock.ts'
import { isFinal } from '../../lib/fresh-stub.ts'
import { TimeLimitError } from '../../lib/time-limit.ts'
import type { Admission } from '../contract.ts'
import { ANSWER_LIMIT_MS } from '../ledger-object.ts'
import { admissionOf, type CommitAnswer, type CommitBatch, type InvalidEntry } from './commit.ts'
import { batchOf, type CommitEntry } from './commit-entries.ts'

/** Longest time that a commit waits for others to join. */
const GATHER_MS = 4
/** Time that a closing waits for a commit of others before its own request leads one. */
const CLOSING_WAIT_MS = 20
/** First wait for a commit that another request leads, until its leader is replaced. Each further wait is twice as long. */
const PATIENCE_MS = 400
/** Entries and characters of one commit; an RPC message ends at 32 MiB. */
const MOST_ENTRIES = 500
const MOST_CHARACTERS = 4_000_000
/** A commit does not wait for calls that have been open for longer. */
const IN_FLIGHT_MS = 10_000

/** Sends a request's commits to the ledger. All its state belongs to that request, and ends with it. */
export interface CommitSender {
  /** Sends a batch on a stub of its own. @throws TimeLimitError when there is no answer in time. */
  send(batch: CommitBatch, milliseconds: number): Promise<CommitAnswer>
  /** Keeps the request alive for a commit that others wait for. */
  waitUntil(work: Promise<unknown>): void
}

type Send = (batch: CommitBatch) => Promise<CommitAnswer>

/** The result of an entry; null: it was admitted and is not counted, or is settled. */
type EntryVerdict = Admission | InvalidEntry | null

/** A waiting entry. It is plain data and a plain promise, because requests share it. */
class WaitingEntry {
  readonly entry: CommitEntry
  answer: { verdict: EntryVerdict } | { error: unknown } | null = null
  /** No commit has taken it. */
  isQueued = false
  /** Whether its request can lead a commit. The request of a closing can only after a while. */
  mayLead: boolean
  failures = 0
  #wake: () => void = () => {}

  constructor(entry: CommitEntry) {
    this.entry = entry
    this.mayLead = entry.kind === 'call'
  }

  resolve(answer: { verdict: EntryVerdict } | { error: unknown }): void {
    this.answer ??= answer
    this.#wake()
  }

  wake(): void {
    this.#wake()
  }

  /**
   * Waits until `wake` is called. @returns false when that takes longer.
   *
   * Use `Promise.withResolvers` for every promise that one request awaits and another resolves. The runtime tags a
   * promise with the request that created it, and resumes there whatever awaits it. In code that V8 has optimized,
   * promises of `new Promise`, `then` and async functions have no tag: what awaits one resumes in the wrong request
   * ("Cannot perform I/O on behalf of a different request"), and its own request is ended as hung.
   * `test/local/commit-queue` reproduces it.
   * https://github.com/cloudflare/workerd/tree/main/patches/v8 (Promise Context Tagging)
   */
  async untilWoken(milliseconds: number): Promise<boolean> {
    if (this.answer !== null) return true
    const { promise, resolve } = Promise.withResolvers<boolean>()
    this.#wake = () => resolve(true)
    const timer = setTimeout(() => resolve(this.answer !== null), milliseconds)
    const woken = await promise
    clearTimeout(timer)
    this.#wake = () => {}
    return woken
  }
}

/**
 * The commits of one isolate to one ledger, one at a time. If none is running, a call's request leads one with all waiting
 * entries; the others wait for its answer. A request leads only one commit, and only while its own entry waits. A leader
 * that does not return (its request was ended, its object was reset) is replaced by one that waits, and the entries are
 * sent again: the ledger is idempotent by id.
 */
export class CommitQueue {
  #queue: WaitingEntry[] = []
  #leader: object | null = null
  /** Calls that are open or wait for admission, with the time when they began; the oldest first. */
  readonly #inFlight = new Map<string, number>()
  #queuedCalls = 0
  /** When the last commit was sent. */
  #sentAt = 0
  /** Calls of the last commit that was sent. */
  #lastCalls = 0
  #hurry: (() => void) | null = null

  /** Sends an entry with others. @returns its result. @throws when the ledger did not answer. */
  async submit(entry: CommitEntry, sender: CommitSender): Promise<EntryVerdict> {
    if (entry.kind === 'call') this.#inFlight.set(entry.id, systemClock())
    else this.#inFlight.delete(entry.id)
    const waiting = new WaitingEntry(entry)
    this.#add(waiting)
    if (entry.kind === 'closing') await waiting.untilWoken(CLOSING_WAIT_MS)
    waiting.mayLead = true
    await this.#untilAnswered(waiting, sender)
    const { answer } = waiting
    if (answer !== null && 'verdict' in answer) {
      const { verdict } = answer
      const isOpen = verdict === null || verdict.kind === 'admitted'
      if (!isOpen || entry.kind === 'record') this.#inFlight.delete(entry.id)
      return verdict
    }
    this.#inFlight.delete(entry.id)
    throw answer?.error ?? new Error(`the ledger took longer than ${ANSWER_LIMIT_MS} ms`)
  }

  async #untilAnswered(waiting: WaitingEntry, sender: CommitSender): Promise<void> {
    const startedAt = systemClock()
    let waited = 0
    for (let patience = PATIENCE_MS; waiting.answer === null; ) {
      const leader = this.#leader
      const left = ANSWER_LIMIT_MS - Math.max(waited, systemClock() - startedAt)
      if (left <= 0) return
      if (leader === null) await this.#lead(waiting, sender, left)
      else if (!(await waiting.untilWoken(Math.min(patience, left)))) {
        waited += patience
        patience *= 2
        // Still the same commit, or a later one without the entry: the leader that took it did not answer.
        if (this.#leader === leader) this.#leader = null
        if (!waiting.isQueued) this.#add(waiting)
      }
    }
  }

  async #lead(waiting: WaitingEntry, sender: CommitSender, milliseconds: number): Promise<void> {
    if (!waiting.isQueued) this.#add(waiting)
    const commit = this.#commit(waiting, (batch) => sender.send(batch, milliseconds))
    sender.waitUntil(commit)
    await commit
  }

  /** Runs one commit, from gathering to answers. It never rejects. */
  async #commit(own: WaitingEntry, send: Send): Promise<void> {
    const leader = {}
    this.#leader = leader
    try {
      if (own.entry.kind !== 'closing') await this.#gather()
      const taken = this.#take()
      if (taken.length > 0) await this.#send(taken, own, send)
    } finally {
      if (this.#leader === leader) {
        this.#leader = null
        this.#queue.find(({ mayLead }) => mayLead)?.wake()
      }
    }
  }

  /**
   * Waits for other entries: until half of the calls in flight wait too, and at most until GATHER_MS after the last commit
   * was sent. If that one had a single call, there are no others to wait for.
   */
  async #gather(): Promise<void> {
    const now = systemClock()
    for (const [id, since] of this.#inFlight) {
      if (now - since < IN_FLIGHT_MS) break
      this.#inFlight.delete(id)
    }
    const wait = GATHER_MS - (now - this.#sentAt)
    if (this.#lastCalls <= 1 || wait <= 0 || this.#isHalf()) return
    const { promise, resolve } = Promise.withResolvers<void>()
    this.#hurry = resolve
    const timer = setTimeout(resolve, wait)
    await promise
    clearTimeout(timer)
    this.#hurry = null
  }

  #isHalf(): boolean {
    return this.#queuedCalls * 2 >= this.#inFlight.size
  }

  #add(waiting: WaitingEntry): void {
    waiting.isQueued = true
    this.#queue.push(waiting)
    if (waiting.entry.kind === 'closing') return
    this.#queuedCalls += 1
    if (this.#hurry && this.#isHalf()) this.#hurry()
  }

  /** Takes waiting entries off the queue, as many as a commit holds. */
  #take(): WaitingEntry[] {
    const taken: WaitingEntry[] = []
    let size = 0
    let passed = 0
    for (const waiting of this.#queue) {
      size += waiting.entry.size
      if (taken.length > 0 && (taken.length >= MOST_ENTRIES || size > MOST_CHARACTERS)) break
      passed += 1
      waiting.isQueued = false
      if (waiting.answer === null) taken.push(waiting)
    }
    this.#queue = this.#queue.slice(passed)
    this.#queuedCalls = this.#queue.filter(({ entry }) => entry.kind !== 'closing').length
    this.#sentAt = systemClock()
    this.#lastCalls = taken.filter(({ entry }) => entry.kind !== 'closing').length
    return taken
  }

  async #send(taken: WaitingEntry[], own: WaitingEntry, send: Send): Promise<void> {
    const { batch, calls, closings } = batchOf(taken, ({ entry }) => entry)
    try {
      const { refused, unsettled, rateLimits } = await send(batch)
      for (const [index, verdict] of refused) calls[index]?.resolve({ verdict })
      for (const [index, verdict] of unsettled) closings[index]?.resolve({ verdict })
      if (rateLimits) {
        for (const [index, waiting] of calls.entries()) {
          if (waiting.answer === null) waiting.resolve({ verdict: admissionOf(rateLimits, index) })
        }
      }
      for (const waiting of taken) if (waiting.answer === null) waiting.resolve({ verdict: null })
    } catch (error) {
      const isLate = error instanceof TimeLimitError
      // The time of the leader is over; the others have time-outs of their own.
      for (const waiting of taken) if (waiting === own || !isLate) this.#fail(waiting, error)
    }
  }

  /** The next leader sends each entry once more, on its own stub: a stub whose object went away stays broken. */
  #fail(waiting: WaitingEntry, error: unknown): void {
    if (waiting.answer !== null) return
    waiting.failures += 1
    const isLast = waiting.failures > 1 || error instanceof TimeLimitError || isFinal(error)
    if (isLast) waiting.resolve({ error })
    else if (!waiting.isQueued) this.#add(waiting)
  }
}
