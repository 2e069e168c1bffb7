import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { describe, expect, it } from 'vitest'
import { compileDictionary } from '../../../src/dlp/detectors/custom/dictionary.ts'
import { drained } from '../../../src/lib/slices.ts'
import { LARGEST_DICTIONARIES } from '../../../src/wire/dlp.ts'
import { SeededRandom } from '../../dlp/corpus/seeded-random.ts'
import { PROPERTY_RUNS } from '../lib/property-runs.ts'

const LETTER = /[a-z]/
const startsWord = (text: string, start: number) =>
  !(LETTER.test(text.charAt(start)) && LETTER.test(text.charAt(start - 1)))
const endsWord = (text: string, end: number) =>
  !(LETTER.test(text.charAt(end - 1)) && LETTER.test(text.charAt(end)))

/** Findings of a dictionary, by trying every term at every place. */
function findSlowly(terms: readonly string[], text: string): { start: number; end: number }[] {
  return Array.from({ length: text.length }, (_, last) => last + 1).flatMap((end) => {
    const starts = terms
      .filter((term) => text.slice(0, end).endsWith(term))
      .map((term) => end - term.length)
      .filter((start) => startsWord(text, start) && endsWord(text, end))
    return starts.length === 0 ? [] : [{ start: Math.min(...starts), end }]
  })
}

function openSlowly(terms: readonly string[], text: string): number {
  for (let start = 0; start < text.length; start++) {
    if (startsWord(text, start) && terms.some((term) => term.startsWith(text.slice(start)))) return start
  }
  return text.length
}

describe('a dictionary', () => {
  it('finds what trying each term finds, and holds what may become one', () => {
    const random = new SeededRandom(1)
    const write = (units: number) => random.characters('ab-', random.integer(1, units))
    let finds = 0
    for (let round = 0; round < PROPERTY_RUNS * 10; round++) {
      const terms = Array.from({ length: random.integer(1, 6) }, () => write(6))
      const text = write(24)
      const dictionary = compileDictionary(terms, false)
      const found = findSlowly(terms, text)
      finds += found.length
      expect(drained(dictionary.find(text)), JSON.stringify({ terms, text })).toEqual(found)
      expect(drained(dictionary.openFrom(text)), JSON.stringify({ terms, text })).toBe(
        openSlowly(terms, text),
      )
    }
    expect(finds).toBeGreaterThan(PROPERTY_RUNS * 5)
  })

  it('without a term finds and holds nothing', () => {
    const dictionary = compileDictionary(['', ' \n'], true)
    expect(drained(dictionary.find('a b'))).toEqual([])
    expect(drained(dictionary.openFrom('a b '))).toBe(4)
  })

  it('of the largest size fits in a small part of an isolate', () => {
    setFlagsFromString('--expose-gc')
    const collect: () => void = runInNewContext('gc')
    const held = () => {
      collect()
      const { heapUsed, arrayBuffers } = process.memoryUsage()
      return heapUsed + arrayBuffers
    }
    const random = new SeededRandom(1)
    const terms = Array.from({ length: LARGEST_DICTIONARIES / 100 }, () =>
      random.characters('abcdefghijklmnopqrstuvwxyz', 100),
    )
    const before = held()
    const dictionary = compileDictionary(terms, true)
    expect(held() - before).toBeLessThan(16e6)
    expect(drained(dictionary.find(`x ${terms[77]} y`))).toEqual([{ start: 2, end: 102 }])
  })
})
