import { describe, expect, it, vi } from 'vitest'
import { ApiError } from '../../../../src/lib/api-error.ts'
import { borrowBytes } from '../../../../src/lib/bytes/free-bytes.ts'
import { OwnedBytes, ownedCopy } from '../../../../src/lib/bytes/owned-bytes.ts'
import { SeededRandom } from '../seeded-random.ts'

const MEGABYTE = 1024 * 1024

function filled(maximum: number, length: number): OwnedBytes {
  const buffer = new OwnedBytes(maximum)
  buffer.append(new Uint8Array(length).fill(7))
  return buffer
}

describe('OwnedBytes', () => {
  it.each([0, 1, 1000, MEGABYTE, MEGABYTE + 1, 5 * MEGABYTE])(
    'holds what came, up to %d bytes',
    (maximum) => {
      const random = new SeededRandom(maximum + 1)
      const buffer = new OwnedBytes(maximum)
      const expected = new Uint8Array(maximum)
      for (let at = 0; at < maximum; ) {
        const chunk = new Uint8Array(Math.min(maximum - at, random.below(300_000))).fill(random.below(256))
        expected.set(chunk, at)
        buffer.append(chunk)
        at += chunk.length
      }
      expect(Buffer.compare(buffer.bytes, expected)).toBe(0)
      expect(() => buffer.append(Uint8Array.of(1))).toThrow(RangeError)
      expect(buffer.bytes.length).toBe(maximum)
    },
  )

  it('takes memory as bytes come, not by its maximum', () => {
    const buffer = filled(50 * MEGABYTE, 10)
    expect(buffer.bytes.buffer.byteLength).toBeLessThanOrEqual(MEGABYTE)
    buffer.append(new Uint8Array(3 * MEGABYTE))
    expect(buffer.bytes.buffer.byteLength).toBeLessThanOrEqual(4 * MEGABYTE)
  })

  it('frees a large buffer under every view of it, and leaves a small one to the collector', () => {
    const large = filled(2 * MEGABYTE, MEGABYTE)
    const views = [large.bytes, large.bytes.subarray(10)]
    large.free()
    expect(views.map(({ length }) => length)).toEqual([0, 0])
    expect(() => large.free()).not.toThrow()

    const small = filled(1000, 1000)
    const view = small.bytes
    small.free()
    expect([view.length, small.bytes.length]).toEqual([1000, 0])
  })

  it('has its place in the budget until it is released, whatever becomes of the bytes', () => {
    const room = { limitBytes: 3 * MEGABYTE, holder: 'a' }
    const first = new OwnedBytes(2 * MEGABYTE, room)
    first.append(new Uint8Array(2 * MEGABYTE))
    const second = new OwnedBytes(2 * MEGABYTE, room)
    const append = () => second.append(new Uint8Array(1.5 * MEGABYTE))
    expect(append).toThrow(ApiError)
    first.free()
    expect(append).toThrow(ApiError)
    first.release()
    first.release()
    expect(append).not.toThrow()
    second.release()
  })

  it('frees the bytes of a slow sender for another holder, and refuses that sender', () => {
    vi.useFakeTimers({ toFake: ['Date'] })
    const room = (holder: string) => ({ limitBytes: 3 * MEGABYTE, holder, isArriving: true })
    const slow = new OwnedBytes(3 * MEGABYTE, room('slow'))
    slow.append(new Uint8Array(3 * MEGABYTE))
    vi.advanceTimersByTime(5_000)
    const other = new OwnedBytes(MEGABYTE, room('other'))
    other.append(new Uint8Array(MEGABYTE))
    vi.useRealTimers()
    expect(slow.bytes.length).toBe(0)
    expect(() => slow.append(new Uint8Array(0))).toThrow("The gateway's memory for large requests is in use")
    expect(() => slow.arrived()).toThrow("The gateway's memory for large requests is in use")
    slow.release()
    expect(() => other.arrived()).not.toThrow()
    other.release()
  })

  it('is one copy of pieces, each of which may go when it was taken', () => {
    const pieces = [Uint8Array.of(1, 2), Uint8Array.of(), Uint8Array.of(3)]
    const places: number[] = []
    const copy = ownedCopy(pieces, (_piece, place) => places.push(place.byteOffset))
    expect([...copy.bytes]).toEqual([1, 2, 3])
    expect(places).toEqual([0, 2, 2])
  })
})

describe('borrowBytes', () => {
  it('keeps a buffer until the last reader has given it back, and its place as long', () => {
    const room = { limitBytes: 2 * MEGABYTE, holder: 'a' }
    const owned = new OwnedBytes(2 * MEGABYTE, room)
    owned.append(new Uint8Array(MEGABYTE).fill(7))
    const { bytes } = owned
    const giveBack = [borrowBytes(bytes), borrowBytes(bytes.subarray(5))]
    owned.release()
    expect(bytes.length).toBe(MEGABYTE)
    // Twice by one reader is once.
    giveBack[0]?.()
    giveBack[0]?.()
    expect(bytes.length).toBe(MEGABYTE)
    const other = new OwnedBytes(2 * MEGABYTE, room)
    expect(() => other.append(new Uint8Array(1.5 * MEGABYTE))).toThrow(ApiError)
    giveBack[1]?.()
    expect(bytes.length).toBe(0)
    expect(() => other.append(new Uint8Array(1.5 * MEGABYTE))).not.toThrow()
    other.release()
  })

  it('frees nothing by itself', () => {
    const owned = filled(2 * MEGABYTE, MEGABYTE)
    const { bytes } = owned
    borrowBytes(bytes)()
    expect(bytes.length).toBe(MEGABYTE)
    const again = borrowBytes(bytes)
    owned.free()
    expect(bytes.length).toBe(MEGABYTE)
    again()
    expect(bytes.length).toBe(0)
  })
})
