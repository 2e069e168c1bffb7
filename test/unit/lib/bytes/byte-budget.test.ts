import { describe, expect, it } from 'vitest'
import { ByteBudget } from '../../../../src/lib/bytes/byte-budget.ts'

describe('ByteBudget', () => {
  it('takes what fits, all or nothing, and gives it back', () => {
    let limit = 10
    const budget = new ByteBudget(() => limit)
    const [first, second] = [budget.open('a'), budget.open('b')]
    expect([first.take(6), second.take(5), second.take(4), first.take(1)]).toEqual([true, false, true, false])
    second.close()
    expect(first.take(4)).toBe(true)
    limit = 12
    expect([first.take(2), first.take(1)]).toEqual([true, false])
  })

  it('gives all of it to one body, but keeps an eighth from whoever holds several', () => {
    const budget = new ByteBudget(() => 80)
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
