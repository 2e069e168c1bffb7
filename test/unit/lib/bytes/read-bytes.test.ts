import { describe, expect, it, vi } from 'vitest'
import { readAll, TooLongError } from '../../../../src/lib/bytes/read-bytes.ts'

const streamOf = (chunks: number[][], cancel = () => {}) =>
  new ReadableStream<Uint8Array>({
    pull(controller) {
      const chunk = chunks.shift()
      if (chunk) controller.enqueue(Uint8Array.from(chunk))
      else controller.close()
    },
    cancel,
  })

describe('readAll', () => {
  it('joins what comes, up to the limit', async () => {
    expect(await readAll(streamOf([]), 0)).toEqual(new Uint8Array())
    expect(await readAll(streamOf([[1, 2], [], [3]]), 3)).toEqual(Uint8Array.of(1, 2, 3))
  })

  it('stops at the first byte over the limit and lets the source go', async () => {
    const cancel = vi.fn()
    const rest = [[1, 2], [3], [4], [5], [6]]
    await expect(readAll(streamOf(rest, cancel), 2)).rejects.toThrow(TooLongError)
    expect(cancel).toHaveBeenCalledOnce()
    expect(rest.length).toBeGreaterThanOrEqual(2)
  })

  it('passes on what the stream throws', async () => {
    const broken = new ReadableStream<Uint8Array>({
      pull(controller) {
        controller.error(new Error('broken'))
      },
    })
    await expect(readAll(broken, 10)).rejects.toThrow('broken')
  })
})
