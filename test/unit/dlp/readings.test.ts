import { describe, expect, it } from 'vitest'
import { readings } from '../../../src/dlp/scan/normalise.ts'
import { originalEnd, originalStart } from '../../../src/dlp/scan/reading.ts'
import { ScanBudget } from '../../../src/dlp/scan/scan-budget.ts'
import { drained } from '../../../src/lib/slices.ts'
import { SeededRandom } from '../lib/seeded-random.ts'
import { found, profileOf } from './finding.ts'

const readingsOf = (text: string) => drained(readings(text, new ScanBudget()))
const plain = (text: string): string => readingsOf(text)[0]?.text ?? ''
const decoded = (text: string): string | undefined => readingsOf(text)[1]?.text

describe('readings of a text', () => {
  it.each([
    ['full-width and mathematical digits', '４１１1 𝟒𝟏𝟏', '4111 411'],
    ['digits of other scripts', '٤١ ४१ ໔໑', '41 41 41'],
    ['what is not seen', '4\u200b1\u00ad1\u20601\ufeff', '4111'],
    ['dashes, blanks and quotes', '4–1‑1\u00a01\u2009“x” ‘y’', '4-1-1 1 "x" \'y\''],
    ['full-width signs', 'ａ＠ｂ．ｃｏｍ', 'a@b.com'],
    ['composed and decomposed letters', 'Ü u\u0308 e\u0302\u0301', 'Ü ü ế'],
    ['ligatures', 'oﬃce', 'office'],
    ['what stays', '漢字 🙂 naïve — em', '漢字 🙂 naïve — em'],
  ])('%s', (_, text, read) => expect(plain(text)).toBe(read))

  it.each([
    ['percent encoding', 'a%40b%2Ecom', 'a@b.com'],
    ['percent encoding twice', 'a%2540b', 'a@b'],
    ['percent encoding of UTF-8', '%EF%BC%94%EF%BC%91', '41'],
    ['HTML entities', '&#52;&#x31;&commat;&nbsp;&amp;lt;', '41@ <'],
    ['escapes of JSON', '\\u0034\\/\\"\\n', '4/"\n'],
    ['escapes of JSON in JSON in JSON', '\\\\\\"a\\\\\\\\u0040b', '"a@b'],
  ])('%s', (_, text, read) => expect(decoded(text)).toBe(read))

  it.each(['100% sure', 'AT&T & co', 'a\\d+', '%zz', '%c3%a', '&unknown;', 'plain'])(
    'no escape in %s',
    (text) => {
      expect(decoded(text)).toBeUndefined()
    },
  )

  it('every unit stems from a part of the original, in order', () => {
    const random = new SeededRandom(11)
    const pieces = [
      'a',
      '4',
      '１',
      '\u200b',
      'e\u0301',
      '%34',
      '%25',
      '&#52;',
      '&amp;',
      '\\u0034',
      '\\',
      '%',
      '🙂',
      '𝟒',
      '\ud83d',
      'ﷺ',
    ]
    for (let round = 0; round < 300; round++) {
      let text = ''
      while (text.length < 40) text += random.pick(pieces)
      for (const reading of readingsOf(text)) {
        let last = 0
        for (let index = 0; index < reading.text.length; index++) {
          const start = originalStart(reading, index, text.length)
          const end = originalEnd(reading, index + 1)
          expect(start).toBeGreaterThanOrEqual(last)
          expect(end).toBeGreaterThan(start)
          expect(end).toBeLessThanOrEqual(text.length)
          last = start
        }
      }
    }
  })
})

describe('findings land on the original', () => {
  const card = profileOf(['card'])
  it.each([
    'x ４１１１ １１１１ １１１１ １１１１ y',
    'x 4111\u200b1111\u200b1111\u200b1111 y',
    'x 4111&#32;1111&#x20;1111%201111 y',
    'x \\u0034111111111111111 y',
    'x 4111–1111–1111–1111 y',
    'x %34%31%31%31%31%31%31%31%31%31%31%31%31%31%31%31 y',
  ])('%s', (text) => expect(found(text, card)).toEqual([`card: ${text.slice(2, -2)}`]))

  it('what looks like an escape may be none', () => {
    expect(found('C:\\nina@example.com', profileOf(['email']))).toEqual(['email: nina@example.com'])
    expect(found('50%4111111111111111', card)).toEqual(['card: 4111111111111111'])
  })
})
