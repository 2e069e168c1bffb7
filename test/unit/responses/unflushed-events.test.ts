import { describe, expect, it } from 'vitest'
import {
  MAXIMUM_UNFLUSHED_BYTES,
  type SegmentHolder,
  UnflushedEvents,
} from '../../../src/responses/log/unflushed-events.ts'

const EIGHTH = MAXIMUM_UNFLUSHED_BYTES / 8

class Holder implements SegmentHolder {
  reasons: string[] = []
  readonly #unflushed: UnflushedEvents

  constructor(unflushed: UnflushedEvents) {
    this.#unflushed = unflushed
  }

  abort(reason: Error): void {
    this.reasons.push(reason.message)
    this.#unflushed.release(this)
  }
}

function setup() {
  const unflushed = new UnflushedEvents()
  const reads: number[] = []
  const hold = (position: number, holder: SegmentHolder) =>
    unflushed.hold(`${position}`, holder, () => {
      reads.push(position)
      return new Uint8Array(EIGHTH)
    })
  return { unflushed, reads, hold, holders: Array.from({ length: 20 }, () => new Holder(unflushed)) }
}

describe('segments held for readers', () => {
  it('are in memory once, until the last reader releases them', () => {
    const { unflushed, reads, hold, holders } = setup()
    const given = holders.map((holder) => hold(1, holder))
    expect(new Set(given).size).toBe(1)
    expect(reads).toEqual([1])
    for (const holder of holders.slice(1)) unflushed.release(holder)
    hold(1, new Holder(unflushed))
    expect(reads).toEqual([1])
  })

  it('are read again when no reader holds them any more', () => {
    const { unflushed, reads, hold, holders } = setup()
    for (const holder of holders) {
      hold(1, holder)
      unflushed.release(holder)
      unflushed.release(holder)
    }
    expect(reads).toHaveLength(20)
  })

  it('are released when their reader takes another', () => {
    const { reads, hold, holders } = setup()
    const [holder] = holders
    if (holder === undefined) return
    for (let position = 1; position <= 50; position += 1) hold(position, holder)
    hold(1, holder)
    expect(reads).toHaveLength(51)
    expect(holder.reasons).toEqual([])
  })

  it('stay below a limit: the readers that held theirs longest are ended', () => {
    const { hold, holders } = setup()
    holders.forEach((holder, index) => {
      hold(Math.floor(index / 2), holder)
    })
    // Ten segments, of which eight have room.
    const ended = holders.map(({ reasons }) => reasons.length)
    expect(ended).toEqual([1, 1, 1, 1, ...Array(16).fill(0)])
    expect(holders[0]?.reasons).toEqual(['the reader is too slow'])
  })

  it('may be larger than the limit by themselves', () => {
    const { unflushed, holders } = setup()
    const [one, other] = holders
    if (one === undefined || other === undefined) return
    unflushed.hold('1', one, () => new Uint8Array(EIGHTH))
    expect(unflushed.hold('2', other, () => new Uint8Array(MAXIMUM_UNFLUSHED_BYTES + 1))).toHaveLength(
      MAXIMUM_UNFLUSHED_BYTES + 1,
    )
    expect([one.reasons.length, other.reasons.length]).toEqual([1, 0])
  })
})
