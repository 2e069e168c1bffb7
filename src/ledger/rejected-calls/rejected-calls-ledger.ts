import { earliest } from '../../lib/clock.ts'
import type { Flushed } from '../contract.ts'
import type { LedgerShardDeps } from '../ledger-shard.ts'
import { Flusher } from '../records/flusher.ts'
import { writeRejectedCounts } from './rejected-calls.store.ts'
import { RejectedCalls, type RejectedCount } from './rejected-calls.ts'
import { stateCounts } from './state-counts.ts'

interface CountedCalls {
  counts: RejectedCalls
  flusher: Flusher<RejectedCount[]>
  /** Records final totals in the deployment's chain. */
  finalFlusher: Flusher<RejectedCount[]>
}

/** The part of a ledger's object that counts keyless calls. Its table is created with the first count. */
export class RejectedCallsLedger {
  readonly #deps: LedgerShardDeps
  readonly #name: string
  #counted: CountedCalls | undefined

  /** Loads the counts if this storage has some. @param name of the object. */
  constructor(deps: LedgerShardDeps, name: string) {
    this.#deps = deps
    this.#name = name
    if (RejectedCalls.existIn(deps.storage.sql)) this.#counted = this.#begin()
  }

  /** @see RejectedCalls.count */
  count(ip: string, minute: number, surface: string, count: number): void {
    this.#counted ??= this.#begin()
    this.#counted.counts.count(ip, minute, surface, count)
    this.#deps.arrangeAlarm()
  }

  /** @see RejectedCalls.resend */
  resend(): void {
    this.#counted?.counts.resend()
    this.#deps.arrangeAlarm()
  }

  /** Writes the counts to Postgres. @returns null for an object that has counted nothing. */
  flush(): Promise<Flushed> | null {
    return this.#counted?.flusher.flush() ?? null
  }

  /** When `runDue` has something to do, in milliseconds since the epoch; null when nothing is pending. */
  dueAt(): number | null {
    if (!this.#counted) return null
    const { counts, flusher, finalFlusher } = this.#counted
    return earliest([flusher.dueAt(), finalFlusher.dueAt(), counts.nextFinalAt()])
  }

  /** A total is final in the chain only after Postgres has it. */
  async runDue(): Promise<void> {
    await this.#counted?.flusher.flush()
    await this.#counted?.finalFlusher.flush()
  }

  #begin(): CountedCalls {
    const { storage, clock, database, flushMilliseconds, namespace } = this.#deps
    const counts = new RejectedCalls(storage.sql, {
      name: this.#name,
      clock,
      write: (batch) => writeRejectedCounts(database, batch),
      state: (batch) => stateCounts(namespace, batch, clock()),
    })
    const flusher = new Flusher(counts, clock, flushMilliseconds)
    return { counts, flusher, finalFlusher: new Flusher(counts.final, clock, 0) }
  }
}
