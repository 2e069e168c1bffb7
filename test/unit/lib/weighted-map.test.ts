import { describe, expect, it } from 'vitest'
import { WeightedMap } from '../../../src/lib/weighted-map.ts'

describe('a weighted map', () => {
  const keysOf = (map: WeightedMap<string, number>) =>
    ['a', 'b', 'c', 'd'].filter((key) => map.get(key) !== undefined)

  it('evicts the entry written longest ago, beyond its number of entries', () => {
    const map = new WeightedMap<string, number>({ entries: 2, weight: 100 })
    map.set('a', 1, 1)
    map.set('b', 2, 1)
    map.set('a', 3, 1)
    map.set('c', 4, 1)
    expect(keysOf(map)).toEqual(['a', 'c'])
    expect(map.get('a')).toBe(3)
  })

  it('evicts as many entries as the weight of a new one takes', () => {
    const map = new WeightedMap<string, number>({ entries: 10, weight: 100 })
    map.set('a', 1, 40)
    map.set('b', 2, 40)
    map.set('c', 3, 20)
    expect(keysOf(map)).toEqual(['a', 'b', 'c'])
    map.set('d', 4, 50)
    expect(keysOf(map)).toEqual(['c', 'd'])
  })

  it('keeps no entry that is too heavy by itself, nor the one that it replaces', () => {
    const map = new WeightedMap<string, number>({ entries: 10, weight: 100 })
    map.set('a', 1, 60)
    map.set('b', 2, 40)
    map.set('a', 3, 101)
    expect(keysOf(map)).toEqual(['b'])
    // The weight of what was evicted is free again.
    map.set('c', 4, 60)
    expect(keysOf(map)).toEqual(['b', 'c'])
  })
})
