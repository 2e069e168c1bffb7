import { describe, expect, it } from 'vitest'
import { holdBuffer } from '../../../src/lib/buffer-holds.ts'
import { GrowingBuffer } from '../../../src/lib/growing-buffer.ts'
import { SeededRandom } from './seeded-random.ts'

const MEGABYTE = 1024 * 1024

function filled(maximum: number, length: number): GrowingBuffer {
  const buffer = new GrowingBuffer(maximum)
  buffer.append(new Uint8Array(length).fill(7))
  return buffer
}

describe('GrowingBuffer', () => {
  it.each([0, 1, 1000, MEGABYTE, MEGABYTE + 1, 5 * MEGABYTE])(
    'holds what came, up to %d bytes',
    (maximum) => {
      const random = new SeededRandom(maximum + 1)
      const buffer = new GrowingBuffer(maximum)
      const expected = new Uint8Array(maximum)
      for (let at = 0; at < maximum; ) {
        const chunk = new Uint8Array(Math.min(maximum - at, random.below(300_000))).fill(random.below(256))
        expected.set(chunk, at)
        buffer.append(chunk)
        at += chunk.length
      }
      expect(Buffer.compare(buffer.bytes(), expected)).toBe(0)
      expect(() => buffer.append(Uint8Array.of(1))).toThrow(RangeError)
      expect(buffer.bytes().length).toBe(maximum)
    },
  )

  it('takes memory as bytes come, not by its maximum', () => {
    const buffer = filled(50 * MEGABYTE, 10)
    expect(buffer.bytes().buffer.byteLength).toBeLessThanOrEqual(MEGABYTE)
    buffer.append(new Uint8Array(3 * MEGABYTE))
    expect(buffer.bytes().buffer.byteLength).toBeLessThanOrEqual(4 * MEGABYTE)
  })

  it('frees a large buffer under every view of it, and leaves a small one alone', () => {
    const large = filled(2 * MEGABYTE, MEGABYTE)
    const views = [large.bytes(), large.bytes().subarray(10)]
    const gone: string[] = []
    large.free(() => gone.push('large'))
    expect(views.map(({ length }) => length)).toEqual([0, 0])
    expect(() => large.free(() => {})).not.toThrow()

    const small = filled(1000, 1000)
    small.free(() => gone.push('small'))
    expect(gone).toEqual(['large', 'small'])
    expect(small.bytes().length).toBe(1000)
  })
})

describe('holdBuffer', () => {
  it('keeps a buffer until the last holder has let go', () => {
    const buffer = filled(2 * MEGABYTE, MEGABYTE)
    const bytes = buffer.bytes()
    const letGo = [holdBuffer(bytes), holdBuffer(bytes.subarray(5))]
    let gone = 0
    buffer.free(() => gone++)
    expect(bytes.length).toBe(MEGABYTE)
    // Twice by one holder is once.
    letGo[0]?.()
    letGo[0]?.()
    expect([bytes.length, gone]).toEqual([MEGABYTE, 0])
    letGo[1]?.()
    expect([bytes.length, gone]).toEqual([0, 1])
  })

  it('frees nothing by itself', () => {
    const buffer = filled(2 * MEGABYTE, MEGABYTE)
    const bytes = buffer.bytes()
    holdBuffer(bytes)()
    expect(bytes.length).toBe(MEGABYTE)
    const again = holdBuffer(bytes)
    buffer.free(() => {})
    expect(bytes.length).toBe(MEGABYTE)
    again()
    expect(bytes.length).toBe(0)
  })
})
