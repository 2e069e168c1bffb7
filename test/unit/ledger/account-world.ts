import { expect } from 'vitest'
import { LedgerAccount } from '../../../src/ledger/account/account.ts'
import { AccountTables } from '../../../src/ledger/account/account-tables.ts'
import type { CallOpening, CallOutcome } from '../../../src/ledger/audit-record.ts'
import { batchOf, type CommitEntry, callEntry } from '../../../src/ledger/commits/commit-entries.ts'
import type { CallLimits } from '../../../src/ledger/contract.ts'
import { epochsAt } from '../../../src/ledger/epochs/known-epochs.ts'
import { type ChainLink, GENESIS } from '../../../src/ledger/records/chain.ts'
import { memoryStorage } from './memory-storage.ts'

export const organizationId = '8f14e45f-ceea-4d7a-9b3c-0a1b2c3d4e5f'
const identity = { organizationId, shard: 0 }
export const STARTED = Date.UTC(2026, 10, 22, 12)
export const LEASE_MS = 100_000
export const EPOCH = 5

export type Random = (below: number) => number

export function randomFrom(seed: number): Random {
  let state = seed * 2_654_435_769
  return (below) => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) % below
  }
}

export const openingOf = (callId: string, at: number): CallOpening => ({
  callId,
  requestId: `req_${callId}`,
  organizationId,
  at,
  actor: { userId: 'u', keyId: 'k', administrator: null, ip: null },
  surface: 'messages',
  action: 'POST /v1/messages',
  modelId: 'm',
})

export const outcomeOf = (cost: number): CallOutcome => ({
  status: 200,
  errorCode: null,
  provider: 'p',
  attempts: [],
  usage: null,
  provenance: null,
  cost,
  durationMilliseconds: 1,
  request: null,
  response: null,
  dlp: null,
  connectionId: null,
  flags: [],
})

/** An account with what a restart does to it, and a clock that is moved. */
export class World {
  now = STARTED
  readonly storage = memoryStorage()
  account: LedgerAccount

  constructor(balance: number) {
    const tables = new AccountTables(this.storage)
    tables.create()
    const epochs = epochsAt({ organization: EPOCH, catalogue: null }, this.now)
    tables.begin(identity, { ...GENESIS, balance }, [], epochs)
    this.account = this.#load()
  }

  restart(): void {
    this.account = this.#load()
  }

  commit(entries: CommitEntry[]) {
    const { batch } = batchOf(entries, (entry) => entry)
    return this.account.commit(batch)
  }

  call(id: string, reserve: number, limits: CallLimits | null = null, organization = EPOCH): CommitEntry {
    return callEntry(organizationId, {
      opening: openingOf(id, this.now),
      reserve,
      leaseMilliseconds: LEASE_MS,
      estimate: null,
      epochs: { organization, catalogue: null },
      learned: { organization: EPOCH, catalogue: null },
      limits,
    })
  }

  /** Writes to Postgres, in parts. After a restart, records are sent again and must be the same. */
  flush(into: ChainLink[], part = Number.POSITIVE_INFINITY): void {
    const batch = this.account.log.nextBatch()?.slice(0, part) ?? []
    for (const link of batch) {
      into[link.sequence - 1] ??= link
      expect(into[link.sequence - 1]).toEqual(link)
    }
    this.account.log.markFlushed(batch[0]?.sequence ?? 0, batch.at(-1)?.sequence ?? 0)
  }

  #load(): LedgerAccount {
    return new LedgerAccount(this.storage, identity, () => this.now)
  }
}
