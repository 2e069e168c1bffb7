import { expect, it } from 'vitest'
import { BoundedMap } from '../../../src/lib/bounded-map.ts'

it('never holds more than its capacity and forgets what was written longest ago', () => {
  const map = new BoundedMap<number, string>(3)
  for (let key = 0; key < 100; key += 1) {
    map.set(key, `value ${key}`)
    expect(map.size).toBeLessThanOrEqual(3)
  }
  expect([96, 97, 98, 99].map((key) => map.get(key))).toEqual([undefined, 'value 97', 'value 98', 'value 99'])
})

it('counts a key written again as new', () => {
  const map = new BoundedMap<string, number>(2)
  map.set('a', 1)
  map.set('b', 1)
  map.set('a', 2)
  map.set('c', 1)
  expect([map.get('a'), map.get('b'), map.get('c')]).toEqual([2, undefined, 1])
})

it('deletes and clears', () => {
  const map = new BoundedMap<string, number>(2)
  map.set('a', 1)
  map.set('b', 1)
  map.delete('a')
  expect([map.get('a'), map.size]).toEqual([undefined, 1])
  map.clear()
  expect(map.size).toBe(0)
})
