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
    const [first, second] = [budget.open('a'), budget.open('b')]
    expect([first.take(6), second.take(5), second.take(4), first.take(1)]).toEqual([true, false, true, false])
    second.close()
    expect(first.take(4)).toBe(true)
    limit = 12
    expect([first.take(2), first.take(1)]).toEqual([true, false])
  })

  it('gives all of it to one body, but keeps an eighth from whoever holds several', () => {
    const budget = new BufferBudget(() => 80)
    const alone = budget.open('a')
    expect([alone.take(80), alone.take(1)]).toEqual([true, false])
    alone.close()
    const several = [budget.open('a'), budget.open('a'), budget.open('a')]
    expect(several.map((share) => share.take(35))).toEqual([true, true, false])
    expect(several[2]?.take(1)).toBe(false)
    expect(budget.open('b').take(10)).toBe(true)
    for (const share of several) share.close()
    expect(budget.open('a').take(70)).toBe(true)
  })
})
