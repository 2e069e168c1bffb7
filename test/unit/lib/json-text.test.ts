import { describe, expect, it } from 'vitest'
import { offsetOf, readJsonText } from '../../../src/lib/json-text.ts'
import { SeededRandom } from './seeded-random.ts'

const encoder = new TextEncoder()
const decoder = new TextDecoder('utf-8', { fatal: false, ignoreBOM: true })

describe('the text of a JSON string', () => {
  it('is what JSON says it is, each unit at its place', () => {
    const random = new SeededRandom(3)
    const parts = [
      'a',
      'é',
      '€',
      '😀',
      '\\n',
      '\\"',
      '\\\\',
      '\\/',
      '\\u0041',
      '\\ud83d\\ude00',
      '\\ud83d',
      '\ufeff',
      '\ufffd',
    ]
    for (let round = 0; round < 2_000; round++) {
      const source = Array.from({ length: random.below(8) }, () => random.pick(parts)).join('')
      const bytes = encoder.encode(source)
      const read = readJsonText(bytes)
      expect(read.text).toBe(JSON.parse(`"${source}"`))
      expect(offsetOf(read, read.text.length)).toBe(bytes.length)
      for (let unit = 0; unit <= read.text.length; unit++) {
        // Within a pair of surrogates there is no place.
        if (/[\ud800-\udbff]$/.test(read.text.slice(0, unit))) continue
        const before = decoder.decode(bytes.subarray(0, offsetOf(read, unit)))
        expect(JSON.parse(`"${before}"`)).toBe(read.text.slice(0, unit))
      }
    }
  })

  it('has its places also where the source is no UTF-8', () => {
    const random = new SeededRandom(4)
    const bytes = [
      0x61, 0x80, 0xbf, 0xc0, 0xc3, 0xa9, 0xe0, 0xe2, 0x82, 0xac, 0xed, 0xa0, 0xef, 0xbf, 0xbd, 0xf0, 0x9f,
      0xf4, 0x90, 0xff,
    ]
    for (let round = 0; round < 20_000; round++) {
      const source = Uint8Array.from({ length: 1 + random.below(7) }, () => random.pick(bytes))
      const read = readJsonText(source)
      expect(read.text).toBe(decoder.decode(source))
      for (let unit = 0; unit <= read.text.length; unit++) {
        if (/[\ud800-\udbff]$/.test(read.text.slice(0, unit))) continue
        expect(decoder.decode(source.subarray(0, offsetOf(read, unit)))).toBe(read.text.slice(0, unit))
      }
      expect(offsetOf(read, read.text.length)).toBe(source.length)
    }
  })
})
