import { afterEach, describe, expect, it, vi } from 'vitest'
import { newId, randomBase62 } from '../../../src/lib/ids.ts'

afterEach(() => vi.restoreAllMocks())

describe('ids', () => {
  it('have the length and alphabet they promise', () => {
    for (const length of [0, 1, 22, 43, 200])
      expect(randomBase62(length)).toMatch(new RegExp(`^[0-9A-Za-z]{${length}}$`))
    expect(newId('call')).toMatch(/^call_[0-9A-Za-z]{22}$/)
  })

  it('do not repeat, and use every character about alike', () => {
    const ids = Array.from({ length: 5000 }, () => newId('x'))
    expect(new Set(ids).size).toBe(ids.length)
    const counts = new Map<string, number>()
    for (const character of randomBase62(62_000)) counts.set(character, (counts.get(character) ?? 0) + 1)
    expect(counts.size).toBe(62)
    // A thousand expected; eight standard deviations on either side.
    expect(Math.min(...counts.values())).toBeGreaterThan(750)
    expect(Math.max(...counts.values())).toBeLessThan(1250)
  })

  it('reject the bytes that would favour some characters, and draw again', () => {
    let draws = 0
    vi.spyOn(crypto, 'getRandomValues').mockImplementation((array) => {
      ;(array as unknown as Uint8Array).fill(draws++ === 0 ? 255 : 61)
      return array
    })
    expect(randomBase62(5)).toBe('zzzzz')
    expect(draws).toBe(2)
  })
})
