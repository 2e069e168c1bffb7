import { describe, expect, it } from 'vitest'
import { base62Value } from '../../../src/responses/model/response-ids.ts'
import { lonePlace, Places } from '../../../src/responses/pool/places.ts'
import { ANY_REGION, locationHint, regionOf } from '../../../src/responses/pool/regions.ts'
import { Reservations } from '../../../src/responses/pool/reservations.ts'
import { poolName, slotAt, slotEnd } from '../../../src/responses/pool/slots.ts'

const MINUTE = 60_000
const NOW = Date.parse('2026-11-28T12:03:00Z')

describe('the place of a response', () => {
  const numberOf = (places: Places, now = NOW) =>
    base62Value(places.shared('organization', 'w', now)?.number ?? 'zz')

  it('is the object with the lowest number that is not full, for half a minute', () => {
    const places = new Places()
    expect(numberOf(places)).toBe(0)
    const first = places.shared('organization', 'w', NOW)
    for (const room of ['enough', 'little', 'none'] as const)
      if (first) places.note('organization', first, room, NOW)
    // The second report is about an object that is left already.
    expect(numberOf(places)).toBe(1)
    expect(base62Value(places.shared('other', 'w', NOW)?.number ?? '')).toBe(0)
    expect(base62Value(places.shared('organization', 'E', NOW)?.number ?? '')).toBe(0)
    expect(numberOf(places, NOW + 29_999)).toBe(1)
    expect(numberOf(places, NOW + 30_000)).toBe(0)
  })

  it('is another object in the next slot, of which late reports say nothing', () => {
    const places = new Places()
    const first = places.shared('organization', 'w', NOW)
    const next = NOW + 7 * MINUTE
    expect(places.shared('organization', 'w', next)?.slot).not.toBe(first?.slot)
    if (first) places.note('organization', first, 'none', next)
    expect(numberOf(places, next)).toBe(0)
  })

  it('is none when all shared objects are full, and then one at random', () => {
    const places = new Places()
    for (let full = 0; full < 1922; full++) {
      const place = places.shared('organization', 'w', NOW)
      if (place) places.note('organization', place, 'none', NOW)
    }
    expect(places.shared('organization', 'w', NOW)).toBeNull()
    const numbers = Array.from({ length: 200 }, () => base62Value(lonePlace(NOW, 'w').number))
    expect(Math.min(...numbers)).toBeGreaterThanOrEqual(1922)
    expect(Math.max(...numbers)).toBeLessThan(3844)
    expect(new Set(numbers).size).toBeGreaterThan(150)
    expect(lonePlace(NOW)).toMatchObject({ region: ANY_REGION, slot: slotAt(NOW) })
  })
})

describe('a slot', () => {
  it('takes ten minutes, and its name returns after 26.7 days', () => {
    const begins = Date.parse('2026-11-28T12:00:00Z')
    expect(slotAt(begins)).toBe(slotAt(begins + 10 * MINUTE - 1))
    const names = new Set(Array.from({ length: 3844 }, (_, index) => slotAt(begins + index * 10 * MINUTE)))
    expect(names.size).toBe(3844)
    expect(slotAt(begins + 3844 * 10 * MINUTE)).toBe(slotAt(begins))
  })

  it.each([
    ['at its beginning', 0],
    ['in its last millisecond', 10 * MINUTE - 1],
    ['before it, by a clock that is behind', -5 * MINUTE],
    ['a day later', 24 * 60 * MINUTE],
    ['26 days later', 26 * 24 * 60 * MINUTE],
  ])('has its end %s', (_when, after) => {
    const begins = Date.parse('2026-11-28T12:00:00Z')
    expect(slotEnd(slotAt(begins), begins + after)).toBe(begins + 10 * MINUTE)
  })
})

it('the name of an object has the organization of the caller', () => {
  expect(poolName('organization', { region: 'w', slot: 'aB', number: '01' })).toBe('organization/w/aB/01')
})

it.each([
  [{ continent: 'NA', longitude: '-122.4' }, 'wnam'],
  [{ continent: 'NA', longitude: '-74.0' }, 'enam'],
  [{ continent: 'SA' }, 'sam'],
  [{ continent: 'EU', longitude: '2.3' }, 'weur'],
  [{ continent: 'EU', longitude: '21.0' }, 'eeur'],
  [{ continent: 'EU' }, 'weur'],
  [{ continent: 'AS', longitude: '55.3' }, 'me'],
  [{ continent: 'AS', longitude: '139.7' }, 'apac'],
  [{ continent: 'OC' }, 'oc'],
  [{ continent: 'AF' }, 'afr'],
  [{ continent: 'T1' }, undefined],
  [{}, undefined],
  [undefined, undefined],
])('the region of %j is %s', (whereabouts, hint) => {
  const region = regionOf(whereabouts)
  expect(region).toMatch(/^[0-9A-Za-z]$/)
  expect(locationHint(region)).toBe(hint)
})

it('a reservation is taken once, and lapses', () => {
  const reservations = new Reservations()
  reservations.add('one', 10, NOW)
  reservations.add('two', 20, NOW)
  expect(reservations.current(NOW)).toEqual({ count: 2, bytes: 30 })
  expect([reservations.take('one'), reservations.take('one'), reservations.take('three')]).toEqual([
    true,
    false,
    false,
  ])
  expect(reservations.current(NOW + MINUTE - 1)).toEqual({ count: 1, bytes: 20 })
  expect(reservations.current(NOW + MINUTE)).toEqual({ count: 0, bytes: 0 })
})
