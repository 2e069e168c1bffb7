import { describe, expect, it, vi } from 'vitest'
import { slicesOf, writeBytes } from '../../../../src/lib/bytes/write-bytes.ts'
import { TimeLimitError } from '../../../../src/lib/time-limit.ts'
import { SeededRandom } from '../seeded-random.ts'

const KILOBYTE = 1024

/** A stream that takes what it is given, unless it is told otherwise. */
function sink(write: (bytes: Uint8Array) => void | Promise<void> = () => {}) {
  const written: number[] = []
  const events: string[] = []
  const writable = new WritableStream<Uint8Array>({
    async write(bytes) {
      await write(bytes)
      written.push(bytes.length)
    },
    close: () => void events.push('closed'),
    abort: () => void events.push('aborted'),
  })
  return { writable, written, events }
}

describe('writeBytes', () => {
  it('writes large pieces in slices, one after the other, and closes', async () => {
    const { writable, written, events } = sink()
    await writeBytes(writable, [new Uint8Array(600 * KILOBYTE), new Uint8Array(3)])
    expect(written).toEqual([256 * KILOBYTE, 256 * KILOBYTE, 88 * KILOBYTE, 3])
    expect(events).toEqual(['closed'])
  })

  it('begins with short slices, and says when those were taken', async () => {
    const seen: number[] = []
    const { writable, written } = sink()
    const beginning = { slices: 3, bytes: 8 * KILOBYTE, written: () => seen.push(written.length) }
    await writeBytes(writable, [new Uint8Array(100 * KILOBYTE)], { beginning })
    expect(written).toEqual([8 * KILOBYTE, 8 * KILOBYTE, 8 * KILOBYTE, 76 * KILOBYTE])
    expect(seen).toEqual([3])
  })

  it('says so at the end of a body that has fewer slices', async () => {
    const beginning = { slices: 5, bytes: 8, written: vi.fn() }
    await writeBytes(sink().writable, [new Uint8Array(2)], { beginning })
    expect(beginning.written).toHaveBeenCalledOnce()
  })

  it('ends with its signal, and when nothing is taken any more', async () => {
    const stuck = () => new Promise<void>(() => {})
    const pieces = [new Uint8Array(2)]
    const abort = new AbortController()
    const left = sink(stuck)
    const writing = writeBytes(left.writable, pieces, { signal: abort.signal })
    abort.abort(new Error('left'))
    await expect(writing).rejects.toThrow()
    await expect(writeBytes(sink(stuck).writable, pieces, { longestWait: 5 })).rejects.toThrow(TimeLimitError)
    await expect(writeBytes(sink().writable, pieces, { signal: abort.signal })).rejects.toThrow('left')
  })

  it('passes on what the stream throws', async () => {
    const { writable } = sink(() => Promise.reject(new Error('broken')))
    await expect(writeBytes(writable, [new Uint8Array(2)])).rejects.toThrow('broken')
  })
})

it('slices are the pieces, whatever their lengths', () => {
  const random = new SeededRandom(3)
  for (let round = 0; round < 200; round++) {
    const pieces = Array.from({ length: random.below(6) }, () =>
      Uint8Array.from({ length: random.below(40) }, () => random.below(256)),
    )
    const slices = [...slicesOf(pieces, { slices: random.below(7), bytes: 1 + random.below(9) })]
    expect(slices.flatMap((slice) => [...slice])).toEqual(pieces.flatMap((piece) => [...piece]))
    expect(slices.every(({ length }) => length > 0)).toBe(true)
  }
})
