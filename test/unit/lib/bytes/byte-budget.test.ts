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

  it('gives all of it to one body alone, and leaves an eighth of what is free otherwise', () => {
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

  it('leaves an eighth of what is free where others hold more than a little', () => {
    const budget = new ByteBudget(() => 80)
    expect(budget.open('a').take(20)).toBe(true)
    const second = budget.open('b')
    expect([second.take(53), second.take(52)]).toEqual([false, true])
    expect(budget.open('c').take(8)).toBe(true)
  })

  it('returns to a holder below its share what slow senders have above theirs, however many they are', () => {
    let now = 0
    for (const slow of [1, 2, 3, 7]) {
      const budget = new ByteBudget(
        () => 1000,
        () => now,
      )
      const evicted: string[] = []
      const bodies = Array.from({ length: slow }, (_, index) => {
        const name = `slow ${index}`
        const share = budget.open(name, () => evicted.push(name))
        while (share.take(10));
        return share
      })
      const quick = budget.open('quick', () => evicted.push('quick'))
      const share = Math.floor(1000 / (slow + 1))
      expect(quick.take(share), `${slow} slow senders at first`).toBe(false)
      now += 5_000
      expect(quick.take(share), `${slow} slow senders`).toBe(true)
      expect(evicted.length).toBeGreaterThan(0)
      expect(evicted).not.toContain('quick')
      for (const [index, body] of bodies.entries()) {
        if (evicted.includes(`slow ${index}`)) expect(body.take(1)).toBe(false)
        body.close()
      }
      quick.close()
      const whole = budget.open('other')
      expect(whole.take(1000)).toBe(true)
    }
  })

  it('takes nothing from a body that has arrived, nor for a holder above its share', () => {
    let now = 0
    const budget = new ByteBudget(
      () => 100,
      () => now,
    )
    const [complete, slow] = [budget.open('a', () => {}), budget.open('b', () => {})]
    expect([complete.take(60), slow.take(30)]).toEqual([true, true])
    complete.arrived()
    now += 60_000
    const greedy = budget.open('c', () => {})
    // Neither has the 30 bytes of `slow` more than its share, nor can `complete` lose its place.
    expect([greedy.take(20), greedy.take(40), slow.take(1)]).toEqual([false, false, true])
  })
})
