import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import type { CommitAnswer, CommitBatch } from '../../../src/ledger/commits/commit.ts'
import type { CallEntry, ClosingEntry } from '../../../src/ledger/commits/commit-entries.ts'
import { CommitQueue, type CommitSender } from '../../../src/ledger/commits/commit-queue.ts'
import { withinTime } from '../../../src/lib/time-limit.ts'

const callOf = (id: string, size = 100): CallEntry => ({
  kind: 'call',
  id,
  opening: '',
  reserve: 0,
  lease: 0,
  estimate: null,
  checks: { epochs: null, learned: null, limits: null },
  outcome: null,
  cost: 0,
  size,
})
const closingOf = (id: string): ClosingEntry => ({ kind: 'closing', id, outcome: '', cost: 0, size: 100 })

const ALL_WELL: CommitAnswer = { refused: [], unsettled: [] }

/** A ledger that answers on command, and the requests that send to it. */
class World {
  readonly queue = new CommitQueue()
  readonly sent: Array<{
    by: string
    calls: string[]
    closings: string[]
    answer: PromiseWithResolvers<CommitAnswer>
  }> = []

  sender(by: string): CommitSender {
    return {
      send: ({ calls, closings }: CommitBatch, milliseconds: number) => {
        const answer = Promise.withResolvers<CommitAnswer>()
        this.sent.push({ by, calls: calls.ids, closings: closings.ids, answer })
        return withinTime(answer.promise, milliseconds, 'the ledger')
      },
      waitUntil: () => {},
    }
  }

  /** A request of its own that asks for a call. */
  call(id: string, size?: number): Promise<unknown> {
    return this.queue.submit(callOf(id, size), this.sender(id)).catch(String)
  }

  close(id: string): Promise<unknown> {
    return this.queue.submit(closingOf(id), this.sender(`close ${id}`)).catch(String)
  }

  get batches() {
    return this.sent.map(({ by, calls, closings }) => ({ by, calls, closings }))
  }

  async answer(index: number, answer: CommitAnswer = ALL_WELL): Promise<void> {
    this.sent[index]?.answer.resolve(answer)
    await settle()
  }
}

const settle = () => vi.advanceTimersByTimeAsync(0)

let world: World
beforeEach(() => {
  vi.useFakeTimers({ now: 1_000_000 })
  world = new World()
})
afterEach(() => void vi.useRealTimers())

describe('calls of one isolate', () => {
  it('leave at once one after the other', async () => {
    for (const id of ['a', 'b', 'c']) {
      const verdict = world.call(id)
      await settle()
      expect(world.batches.at(-1)).toEqual({ by: id, calls: [id], closings: [] })
      await world.answer(world.sent.length - 1)
      expect(await verdict).toBeNull()
      void world.close(id)
      await vi.advanceTimersByTimeAsync(20)
      await world.answer(world.sent.length - 1)
    }
  })

  it('travel together behind a commit that is on its way, led by the first that waits', async () => {
    const first = world.call('a')
    await settle()
    const verdicts = [first, ...['b', 'c', 'd'].map((id) => world.call(id))]
    await settle()
    expect(world.batches).toEqual([{ by: 'a', calls: ['a'], closings: [] }])
    await world.answer(0)
    expect(world.batches[1]).toEqual({ by: 'b', calls: ['b', 'c', 'd'], closings: [] })
    await world.answer(1, {
      refused: [[1, { kind: 'no_credits', available: 1, required: 2 }]],
      unsettled: [],
    })
    expect(await Promise.all(verdicts)).toEqual([
      null,
      null,
      { kind: 'no_credits', available: 1, required: 2 },
      null,
    ])
  })

  it('get their rate limits with the answer of the commit, where they are counted', async () => {
    const first = world.call('a')
    await settle()
    const verdicts = [world.call('b'), world.call('c'), world.call('d')]
    await world.answer(0)
    await world.answer(1, {
      refused: [[2, { kind: 'no_credits', available: 1, required: 2 }]],
      unsettled: [],
      rateLimits: { limits: [5, 0, 0], remaining: [-1, 0, 0], resetsAt: 60_000 },
    })
    expect(await first).toBeNull()
    expect(await Promise.all(verdicts)).toEqual([
      { kind: 'admitted', rateLimit: { limit: 5, remaining: 0, resetsAt: 60_000 } },
      null,
      { kind: 'no_credits', available: 1, required: 2 },
    ])
  })

  it('wait for half of those in flight, and for four milliseconds at most', async () => {
    const calls = (name: string, count: number) => {
      for (let each = 0; each < count; each += 1) void world.call(`${name}_${each}`)
      return settle()
    }
    await calls('open', 30)
    await world.answer(0)
    expect(world.batches[0]?.calls).toHaveLength(30)
    await calls('late', 1)
    expect(world.sent).toHaveLength(1)
    await vi.advanceTimersByTimeAsync(4)
    expect(world.batches[1]?.calls).toEqual(['late_0'])
    await world.answer(1)

    // The last commit carried one: whoever comes next leaves at once.
    await calls('next', 1)
    expect(world.batches[2]?.calls).toEqual(['next_0'])
    await calls('more', 20)
    await world.answer(2)
    expect(world.batches[3]?.calls).toHaveLength(20)
    await world.answer(3)
    // 52 are in flight. Half of all with those that come is waited for.
    await calls('first', 50)
    expect(world.sent).toHaveLength(4)
    await calls('second', 2)
    expect(world.batches[4]?.calls).toHaveLength(52)
  })

  it('are split where one commit would be too large', async () => {
    void world.call('first')
    await settle()
    for (let each = 0; each < 5; each += 1) void world.call(`large_${each}`, 1_500_000)
    await settle()
    await world.answer(0)
    await vi.advanceTimersByTimeAsync(4)
    await world.answer(1)
    await vi.advanceTimersByTimeAsync(4)
    await world.answer(2)
    await vi.advanceTimersByTimeAsync(4)
    expect(world.batches.map(({ calls }) => calls.length)).toEqual([1, 2, 2, 1])
  })
})

describe('closings', () => {
  it('travel with the next call', async () => {
    const closed = world.close('x')
    void world.call('a')
    await settle()
    expect(world.batches).toEqual([{ by: 'a', calls: ['a'], closings: ['x'] }])
    await world.answer(0)
    expect(await closed).toBeNull()
  })

  it('leave together by themselves after twenty milliseconds', async () => {
    const closed = ['x', 'y', 'z'].map((id) => world.close(id))
    await vi.advanceTimersByTimeAsync(19)
    expect(world.sent).toEqual([])
    await vi.advanceTimersByTimeAsync(1)
    expect(world.batches).toEqual([{ by: 'close x', calls: [], closings: ['x', 'y', 'z'] }])
    await world.answer(0, { refused: [], unsettled: [[1, { kind: 'invalid', message: 'no' }]] })
    expect(await Promise.all(closed)).toEqual([null, { kind: 'invalid', message: 'no' }, null])
  })

  it('are sent when the commit that they waited for is over', async () => {
    void world.call('a')
    await settle()
    const closed = world.close('x')
    await vi.advanceTimersByTimeAsync(30)
    await world.answer(0)
    expect(world.batches[1]).toEqual({ by: 'close x', calls: [], closings: ['x'] })
    await world.answer(1)
    expect(await closed).toBeNull()
  })
})

describe('a leader that does not come back', () => {
  it('is deposed by one that waits, and what it took is sent again with all that waits', async () => {
    void world.call('dead')
    await settle()
    await world.answer(0)
    void world.call('leader')
    await settle()
    const waiting = ['b', 'c'].map((id) => world.call(id))
    // Simulates that the request of `leader` has ended: it gets no answer.
    await vi.advanceTimersByTimeAsync(399)
    expect(world.sent).toHaveLength(2)
    await vi.advanceTimersByTimeAsync(1)
    expect(world.batches[2]).toEqual({ by: 'b', calls: ['b', 'c'], closings: [] })
    await world.answer(2)
    expect(await Promise.all(waiting)).toEqual([null, null])
  })

  it('loses nothing that it took', async () => {
    void world.call('first')
    await settle()
    const waiting = ['b', 'c', 'd'].map((id) => world.call(id))
    const closed = world.close('x')
    await settle()
    await world.answer(0)
    expect(world.batches[1]?.calls).toEqual(['b', 'c', 'd'])
    // The object is slow, or `b` is dead: the others send theirs again after a while, a late answer comes all the same.
    await vi.advanceTimersByTimeAsync(420)
    expect(world.batches[2]?.calls).toEqual(['c', 'd'])
    await world.answer(1)
    expect(await waiting[0]).toBeNull()
    await world.answer(2)
    await world.answer(3)
    expect(await Promise.all([...waiting, closed])).toEqual([null, null, null, null])
  })

  it('that was woken to lead and is gone is followed by the next', async () => {
    void world.call('a')
    await settle()
    const waiting = ['b', 'c'].map((id) => world.call(id))
    await world.answer(0)
    await vi.advanceTimersByTimeAsync(400)
    await world.answer(world.sent.length - 1)
    expect(await waiting[1]).toBeNull()
  })
})

describe('a commit that fails', () => {
  it('is made once more on a fresh stub, for all that it carried', async () => {
    const first = world.call('a')
    await settle()
    const verdicts = [first, ...['b', 'c'].map((id) => world.call(id))]
    await world.answer(0)
    world.sent[1]?.answer.reject(new Error('reset'))
    await settle()
    expect(world.batches[2]?.calls).toEqual(['b', 'c'])
    await world.answer(2)
    expect(await Promise.all(verdicts)).toEqual([null, null, null])
  })

  it('has failed after the second time', async () => {
    const verdict = world.call('a')
    await settle()
    world.sent[0]?.answer.reject(new Error('reset'))
    await settle()
    world.sent[1]?.answer.reject(new Error('reset again'))
    expect(await verdict).toContain('reset again')
    expect(world.sent).toHaveLength(2)
  })

  it.each([{ overloaded: true }, { remote: true }])(
    'is not made again when it failed with %o',
    async (kind) => {
      const verdict = world.call('a')
      await settle()
      world.sent[0]?.answer.reject(Object.assign(new Error('final'), kind))
      expect(await verdict).toContain('final')
      expect(world.sent).toHaveLength(1)
    },
  )

  it('leaves the queue as it was for those that follow', async () => {
    const verdict = world.call('a')
    await settle()
    world.sent[0]?.answer.reject(Object.assign(new Error('final'), { remote: true }))
    await verdict
    const next = world.call('b')
    await settle()
    await world.answer(1)
    expect(await next).toBeNull()
  })

  it('is given up by those that wait after ten seconds in all', async () => {
    const waiting = ['a', 'b', 'c'].map((id) => world.call(id))
    await vi.advanceTimersByTimeAsync(10_000)
    expect(await waiting[1]).toContain('took longer')
    expect(await waiting[2]).toContain('took longer')
  })
})
