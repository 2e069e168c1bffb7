import { KnownEpochs } from '../epochs/known-epochs.ts'
import { Outbox } from '../records/outbox.ts'
import type { AccountState, AccountTables } from './account-tables.ts'
import { countedOf, linesOf, openedOf, renewedOf } from './commit-row.ts'
import { OpenCalls } from './open-calls.ts'
import { RecentIds } from './recent-ids.ts'
import { SlidingWindows } from './sliding-windows.ts'

/** The state by which an account decides. All of it can be rebuilt from the storage. */
export interface AccountMemory {
  /** State after the newest record. */
  state: AccountState
  /** Number of the newest commit. */
  commit: number
  /** Number of the oldest commit that is stored. */
  oldest: number
  /** Commits before this one may be overwritten. */
  neededFrom: number
  /** The first commit that `open_calls` does not include. */
  replayFrom: number
  readonly open: OpenCalls
  readonly recent: RecentIds
  readonly windows: SlidingWindows
  readonly epochs: KnownEpochs
  readonly outbox: Outbox
}

/** Reads the account, the calls that have long been open, and replays the newest commits. */
export function loadMemory(tables: AccountTables): AccountMemory {
  const begun = tables.account()
  const newest = tables.search.newest()
  const { sequence, hash, balance } = newest ?? begun
  const memory: AccountMemory = {
    state: { sequence, hash, balance },
    commit: newest?.number ?? 0,
    oldest: tables.search.oldest() ?? 1,
    neededFrom: 0,
    replayFrom: begun.replayFrom,
    open: new OpenCalls(),
    recent: new RecentIds(),
    windows: new SlidingWindows(),
    epochs: new KnownEpochs(begun.epochs),
    outbox: new Outbox(tables, begun.flushed),
  }
  for (const call of tables.storedOpenCalls()) {
    memory.open.add({ ...call, openedBy: 0, isStored: true, isChanged: false })
  }
  replay(tables, memory)
  memory.windows.loaded = memory.windows.admitted
  return memory
}

function replay(tables: AccountTables, { replayFrom, open, recent, windows }: AccountMemory): void {
  for (const { number, at, counted, opened, renewed, ids } of tables.replay(replayFrom)) {
    for (const [userId, calls] of countedOf(counted)) windows.count(userId, at, calls)
    for (const call of openedOf(opened, number)) open.add(call)
    for (const { id, deadline, progress } of renewedOf(renewed)) {
      const call = open.find(id)
      if (call) open.renew(call, deadline, progress)
    }
    for (const id of linesOf(ids)) {
      const call = open.find(id)
      if (call) open.remove(call)
      recent.add(id)
    }
  }
}
