import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest'
import { SlidingWindows } from '../../../src/ledger/account/sliding-windows.ts'
import { WindowBalance } from '../../../src/ledger/shards/window-balance.ts'
import { redisAt } from '../calls/fixtures.ts'
import { emptyRedis, type Forwarder, startForwarder } from '../calls/stand-ins.ts'

const SHARDS = 4
const MINUTE = Date.UTC(2026, 10, 21, 12, 0)

let forwarder: Forwarder
beforeAll(async () => {
  forwarder = await startForwarder((await emptyRedis()).url)
}, 60_000)
afterAll(() => forwarder?.close())
beforeEach(() => {
  vi.useFakeTimers({ toFake: ['Date'], now: MINUTE })
  vi.spyOn(console, 'log').mockImplementation(() => undefined)
})
afterEach(() => {
  forwarder.behaviour = 'forward'
  vi.useRealTimers()
  vi.restoreAllMocks()
})

function shardsOf(organizationId: string) {
  const clock = () => Date.now()
  return Array.from({ length: SHARDS }, () => ({
    windows: new SlidingWindows(),
    balance: new WindowBalance(redisAt(forwarder.url), organizationId, clock),
  }))
}

type Shard = ReturnType<typeof shardsOf>[number]

/** Admits what there is room for. @returns how many. */
function admit({ windows }: Shard, wanted: number, perMinute: number): number {
  const limits = { userId: 'u', organizationPerMinute: perMinute, userPerMinute: 1_000, shards: SHARDS }
  let admitted = 0
  while (admitted < wanted && windows.findFull(limits, Date.now()) === null) {
    windows.count('u', Date.now())
    admitted += 1
  }
  return admitted
}

/** Exchanges the counts of all shards, twice a quarter of a second apart. */
async function tellEachOther(shards: Shard[]): Promise<void> {
  for (let round = 0; round < 2; round += 1) {
    vi.setSystemTime(Date.now() + 250)
    for (const { windows, balance } of shards) await balance.reportIfDue(windows)
  }
}

describe('windows of several shards', () => {
  it('keep the limit of the organization together, wherever its calls come', async () => {
    const shards = shardsOf('uneven')
    const [busy, ...quiet] = shards as [Shard, ...Shard[]]
    // Without counts of the others, the share is an equal part.
    expect(admit(busy, 100, 80)).toBe(20)
    await tellEachOther(shards)
    // No other shard has calls: it gets the rest.
    expect(admit(busy, 40, 80)).toBe(40)
    await tellEachOther(shards)
    expect(admit(quiet[0] as Shard, 100, 80)).toBe(20)
    await tellEachOther(shards)
    for (const shard of shards) expect(admit(shard, 1, 80)).toBe(0)
    // Half of the window before still counts, and a little less after half a second.
    vi.setSystemTime(MINUTE + 90_000)
    await tellEachOther(shards)
    expect(admit(busy, 100, 80)).toBe(41)
  })

  it('fall back to equal parts while Redis is away', async () => {
    const shards = shardsOf('away')
    await tellEachOther(shards)
    forwarder.behaviour = { status: 500, body: 'down' }
    vi.setSystemTime(Date.now() + 6_000)
    await tellEachOther(shards)
    expect(shards.map((shard) => admit(shard, 100, 80))).toEqual([20, 20, 20, 20])
  })

  it('tell nothing twice, also when a report was lost', async () => {
    const shards = shardsOf('twice')
    const [first, second] = shards as [Shard, Shard]
    await tellEachOther(shards)
    admit(first, 10, 80)
    forwarder.behaviour = { status: 500, body: 'down' }
    await tellEachOther(shards)
    forwarder.behaviour = 'forward'
    vi.setSystemTime(Date.now() + 2_000)
    await tellEachOther(shards)
    await tellEachOther(shards)
    expect(admit(second, 100, 80)).toBe(70)
  })

  it('tell nothing twice while Redis is slow: one report at a time', async () => {
    const [first, second] = shardsOf('slow') as [Shard, Shard]
    admit(first, 10, 80)
    const report = first.balance.reportIfDue(first.windows)
    vi.setSystemTime(Date.now() + 250)
    expect(first.balance.reportIfDue(first.windows)).toBe(report)
    await report
    await second.balance.reportIfDue(second.windows)
    expect(admit(second, 100, 80)).toBe(70)
  })
})
