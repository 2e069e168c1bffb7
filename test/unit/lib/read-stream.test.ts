import { describe, expect, it, vi } from 'vitest'
import { BufferBudget } from '../../../src/lib/buffer-budget.ts'
import { readAll, TooLongError } from '../../../src/lib/read-stream.ts'

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

describe('BufferBudget', () => {
  it('takes what fits, all or nothing, and gives it back', () => {
    let limit = 10
    const budget = new BufferBudget(() => limit)
    expect([budget.take(6), budget.take(5), budget.take(4), budget.take(1)]).toEqual([
      true,
      false,
      true,
      false,
    ])
    budget.give(4)
    expect(budget.take(4)).toBe(true)
    limit = 12
    expect([budget.take(2), budget.take(1)]).toEqual([true, false])
  })
})
