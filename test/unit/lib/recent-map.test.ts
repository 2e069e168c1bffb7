import { describe, expect, it } from 'vitest'
import { RecentMap } from '../../../src/lib/recent-map.ts'

describe('a map of recent entries', () => {
  it('keeps an entry that is used, and drops it after two periods without a use', () => {
    const map = new RecentMap<string, number>(1_000, 10)
    map.set('used', 1, 0)
    map.set('left', 2, 0)
    for (let now = 0; now <= 5_000; now += 500) expect(map.get('used', now)).toBe(1)
    expect(map.get('left', 5_000)).toBeUndefined()
    expect(map.get('used', 7_000)).toBeUndefined()
  })

  it('keeps an entry for at least one period', () => {
    const map = new RecentMap<string, number>(1_000, 10)
    map.set('first', 1, 0)
    map.set('second', 2, 999)
    expect(map.get('second', 1_998)).toBe(2)
  })

  it('drops the older half when it is full', () => {
    const map = new RecentMap<number, number>(1_000, 2)
    for (let key = 1; key <= 5; key++) map.set(key, key, 0)
    expect([1, 2, 3, 4, 5].map((key) => map.get(key, 0))).toEqual([undefined, undefined, 3, 4, 5])
  })

  it('drops everything when the clock is set back', () => {
    const map = new RecentMap<string, number>(1_000, 10)
    map.set('entry', 1, 5_000)
    expect(map.get('entry', 1_000)).toBeUndefined()
  })

  it('deletes an entry of either half', () => {
    const map = new RecentMap<string, number>(1_000, 10)
    map.set('entry', 1, 0)
    map.set('other', 1, 1_500)
    map.delete('entry')
    expect(map.get('entry', 1_500)).toBeUndefined()
  })
})
