import { describe, expect, it } from 'vitest'
import { compilePattern, findMatches, PatternError } from '../../../src/dlp/detectors/custom/patterns.ts'
import { detect } from '../../../src/dlp/scan/detect.ts'
import { holdBack } from '../../../src/dlp/stream/hold-back.ts'
import type { CustomDetector, Profile } from '../../../src/dlp/types.ts'
import { drained } from '../../../src/lib/slices.ts'
import { found, profileOf } from './finding.ts'

const patternOf = (pattern: string, more: Partial<CustomDetector> = {}) =>
  profileOf([], { custom: [{ id: 'custom', kind: 'pattern', pattern, score: 1, ...more }] })
const dictionaryOf = (terms: readonly string[], more: Partial<CustomDetector> = {}) =>
  profileOf([], { custom: [{ id: 'terms', kind: 'dictionary', terms, score: 1, ...more }] })

/** Leading units that a stream can release. */
const safeLength = (context: string, text: string, profile: Profile) =>
  drained(holdBack(context, text, profile)).safe

describe('custom patterns', () => {
  it('find every match', () => {
    expect(found('PRJ-1234, prj-1 and PRJ-77.', patternOf('PRJ-\\d+'))).toEqual([
      'custom: PRJ-1234',
      'custom: PRJ-77',
    ])
    expect(found('prj-1', patternOf('PRJ-\\d+', { ignoreCase: true }))).toEqual(['custom: prj-1'])
  })

  it('read a text as it is and as it is meant', () => {
    expect(found('“a” P\u200bRJ–1', patternOf('“a”|PRJ-1'))).toEqual(['custom: “a”', 'custom: P\u200bRJ–1'])
  })

  it.each([
    ['(?=a)b', /look-ahead/],
    ['(?<!a)b', /look-behind/],
    ['(a)\\1', /back-references/],
    ['(?>a)b', /atomic/],
    ['a++b', /possessive/],
    ['a(b', /not valid.*missing/],
    ['[z-a]', /not valid/],
    ['', /empty/],
    ['a*', /matches the empty text/],
    ['a'.repeat(600), /longer than/],
    ['(?:(?:a{1,100}){1,100}){1,100}', /not valid|too large/],
  ])('refuse %s', (source, reason) => {
    expect(() => compilePattern(source)).toThrow(PatternError)
    expect(() => compilePattern(source)).toThrow(reason)
  })

  it('refuse flags that are none', () => expect(() => compilePattern('a', 'g')).toThrow(/flags/))

  it.each([
    ['abc', 3],
    ['a|bcd', 3],
    ['\\d{4,6}', 6],
    ['(?:ab){2}c?', 5],
    ['(?P<name>a)(?i:b)(?i)c', 3],
    ['[^a]', 2],
    ['\\bx\\b', 1],
    ['^a$', 1],
    ['\\x41\\.', 3],
    ['a+', null],
    ['a{2,}', null],
    ['(?:ab)*c', null],
    ['x.*?y', null],
    ['\\Qab\\E', null],
  ])('%s has at most %s units', (source, longest) => {
    expect(compilePattern(source).longest).toBe(longest)
  })

  it('hold a stream while a match may have begun, and all of it if a match has no bound', () => {
    const bounded = patternOf('\\bPRJ-\\d{4}\\b')
    expect(safeLength('', 'nothing of the kind ', bounded)).toBe(20)
    expect(safeLength('', 'see PRJ-12', bounded)).toBe(4)
    expect(safeLength('', 'see P', bounded)).toBe(4)
    expect(safeLength('', 'see PRJ-1234', bounded)).toBe(4)
    expect(safeLength('', 'see PRJ-1234,', bounded)).toBe(13)
    expect(safeLength('', 'see x', patternOf('P\\d+'))).toBe(0)
  })

  it('treat the rest as one match after many that each read far', () => {
    const text = 'x'.repeat(200_000)
    const matches = drained(findMatches(compilePattern('x(?:.*y)?'), text, 0))
    expect(matches.length).toBeLessThan(100)
    expect(matches.at(-1)?.end).toBe(text.length)
    expect(drained(findMatches(compilePattern('x+'), 'x '.repeat(2000), 0))).toHaveLength(2000)
  })
})

describe('dictionaries', () => {
  it.each([
    ['whole words only', ['Titan'], 'Titan titanic Titan-2 untitan TITAN', ['Titan', 'Titan', 'TITAN']],
    ['the longest of those that end together', ['whale', 'blue whale'], 'a blue whale', ['blue whale']],
    ['phrases over any white space', ['Project Titan'], 'project \n titan', ['project \n titan']],
    ['scripts without spaces', ['极光计划', '홍길동'], '我们的极光计划很好 홍길동은', ['极光计划', '홍길동']],
    ['letters beyond ASCII', ['Übung'], 'u\u0308bung ÜBUNG übungen', ['u\u0308bung', 'ÜBUNG']],
    ['signs at the ends', ['C++', '.env'], 'in C++, a.env', ['C++', '.env']],
    [
      'what is written otherwise',
      ['secret plan'],
      'secret%20plan ｓｅｃｒｅｔ plan',
      ['secret%20plan', 'ｓｅｃｒｅｔ plan'],
    ],
  ])('%s', (_, terms, text, expected) => {
    expect(found(text, dictionaryOf(terms))).toEqual(expected.map((each) => `terms: ${each}`))
  })

  it('compare the case where ignoreCase is off', () => {
    expect(found('Apple apple', dictionaryOf(['Apple'], { ignoreCase: false }))).toEqual(['terms: Apple'])
  })

  it('hold a stream while a term may have begun', () => {
    const profile = dictionaryOf(['blue whale', 'whale song'])
    expect(safeLength('', 'a blue', profile)).toBe(2)
    expect(safeLength('', 'a blue whale', profile)).toBe(2)
    expect(safeLength('', 'a blue whale ', profile)).toBe(2)
    expect(safeLength('', 'a blue whale x', profile)).toBe(14)
    expect(safeLength('', 'xblue', profile)).toBe(5)
    expect(safeLength('x', 'blue', profile)).toBe(4)
  })

  it('find thousands of terms', () => {
    const terms = Array.from({ length: 5000 }, (_, index) => `term number ${index}`)
    expect(detect('term number 4711 and term number 9999', dictionaryOf(terms))).toHaveLength(1)
  })
})
