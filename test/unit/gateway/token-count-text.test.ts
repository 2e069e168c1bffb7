import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { get_encoding } from 'tiktoken'
import { describe, expect, it } from 'vitest'
import { generateVocabulary, VOCABULARY_FILE } from '../../../scripts/generate-token-vocabulary.ts'
import { type JsonLayout, TextCounter } from '../../../src/gateway/token-count/text-counter.ts'
import { PROPERTY_RUNS } from '../lib/property-runs.ts'
import { SAMPLES } from './token-count-samples.ts'

/** The vendor's own tokenizer, in Rust. */
const reference = get_encoding('o200k_base')
const truth = (text: string): number => reference.encode_ordinary(text).length
const encode = (text: string): Uint8Array => new TextEncoder().encode(text)

/** Of JSON string contents, written by `JSON.stringify` unless they are given. */
function count(text: string, contents = JSON.stringify(text).slice(1, -1)): number {
  return counted(contents).tokens
}

function counted(contents: string): TextCounter {
  const counter = new TextCounter()
  const bytes = encode(contents)
  counter.pushJson(bytes, 0, bytes.length)
  counter.end()
  return counter
}

function countSource(source: string, layout: JsonLayout): number {
  const counter = new TextCounter()
  const bytes = encode(source)
  counter.pushJsonSource(bytes, 0, bytes.length, layout)
  counter.end()
  return counter.tokens
}

/** A generator of numbers from 0 to below a limit, the same on every run. */
function numbers(seed: number): (limit: number) => number {
  let state = seed
  return (limit) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    return Math.floor((state / 2 ** 32) * limit)
  }
}

const randomText = (length: number, alphabet: readonly string[], seed: number): string => {
  const next = numbers(seed)
  return Array.from({ length }, () => alphabet[next(alphabet.length)]).join('')
}

const LETTERS = [...'abcdefghijklmnopqrstuvwxyz']

describe('the vocabulary', () => {
  it('is what its package gives', () => {
    expect(generateVocabulary() === readFileSync(VOCABULARY_FILE, 'utf8')).toBe(true)
  })
})

describe('tokens of a text', () => {
  it.each(Object.entries(SAMPLES))('of %s are exactly those of the vendor', (_name, text) => {
    expect(count(text)).toBe(truth(text))
  })

  it.each(['zod/README.md', 'hono/dist/hono-base.js', 'openai/client.js', 'pg/lib/client.js', 'zod/LICENSE'])(
    'of the file %s are exactly those of the vendor',
    (file) => {
      const folder = join(createRequire(import.meta.url).resolve('vitest/package.json'), '../..')
      const text = readFileSync(join(folder, file), 'utf8')
      expect(text.length).toBeGreaterThan(500)
      expect(count(text)).toBe(truth(text))
    },
  )

  it('are those of the vendor for any mixture of characters', () => {
    const alphabet = [
      ...'aSté中の한אع1½٣ \t\n\r/!._{"\'क€',
      ...['É', 'ſ', 'ǅ', 'ʰ', '\u0301', '\u0308', 'Ⅷ', '\u00a0', '\u0085', '\u2028', '\ufeff', 'ि', 'ไ'],
      ...["'s", "'LL", "'ſ", "'re", ' The', 'ing', '\r\n', '  ', '😀', '👩‍👧', '𝒜', '𐐀', '𐐨'],
    ]
    for (let seed = 1; seed <= PROPERTY_RUNS * 10; seed++) {
      const text = randomText(1 + (seed % 25), alphabet, seed)
      expect([text, count(text)]).toEqual([text, truth(text)])
    }
  })

  it('are those of the vendor for any code point', () => {
    const next = numbers(5)
    for (let round = 0; round < PROPERTY_RUNS * 5; round++) {
      const points = Array.from({ length: 12 }, () => next(0x20000)).filter((point) => point >> 11 !== 27)
      const text = String.fromCodePoint(...points)
      expect([text, count(text)]).toEqual([text, truth(text)])
    }
  })

  it('are counted through windows as if there were none', () => {
    const words = [
      'reservation ',
      'Straße',
      '\n\n',
      ' 2026',
      '，你好',
      "can't ",
      '{"a":',
      '    ',
      '🚀',
      'Ünïcödé',
    ]
    const text = randomText(60_000, words, 9)
    expect(encode(text).length).toBeGreaterThan(200_000)
    expect(count(text)).toBe(truth(text))
  })

  it('do not depend on the parts in which a text is pushed', () => {
    const bytes = encode(Object.values(SAMPLES).join('\n'))
    const next = numbers(3)
    const counter = new TextCounter()
    for (let at = 0; at < bytes.length; ) {
      let end = Math.min(bytes.length, at + 1 + next(40))
      while (end < bytes.length && ((bytes[end] as number) & 0xc0) === 0x80) end++
      counter.pushJson(escapeQuotes(bytes.subarray(at, end)), 0, escapeQuotes(bytes.subarray(at, end)).length)
      at = end
    }
    counter.end()
    expect(counter.tokens).toBe(truth(Object.values(SAMPLES).join('\n')))
  })

  it('keep texts apart', () => {
    const counter = new TextCounter()
    for (const text of ['hel', 'lo']) {
      counter.push(text)
      counter.end()
    }
    expect(counter.tokens).toBe(truth('hel') + truth('lo'))
  })
})

const escapeQuotes = (bytes: Uint8Array): Uint8Array =>
  encode(JSON.stringify(new TextDecoder().decode(bytes)).slice(1, -1))

describe('escapes', () => {
  it('are undone before counting', () => {
    const text = 'tab\there "quoted" back\\slash / line\r\nbreak \u0001 naïve 中文 😀'
    const everything = [...text]
      .flatMap((character) => character.split(''))
      .map((unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`)
      .join('')
    expect(count(text, everything)).toBe(truth(text))
    expect(count(text, everything.toUpperCase().replaceAll('\\U', '\\u'))).toBe(truth(text))
    expect(count('a/b', 'a\\/b')).toBe(truth('a/b'))
  })

  it.each([
    ['a high one at the end', 'abc\\ud83d', 'abc\ufffd'],
    ['a high one before text', '\\ud83dabc', '\ufffdabc'],
    ['a low one', 'abc \\ude00 def', 'abc \ufffd def'],
    ['two high ones', '\\ud83d\\ud83d\\ude00', '\ufffd😀'],
    ['a high one before another escape', '\\ud83d\\n', '\ufffd\n'],
    ['the halves in the wrong order', '\\ude00\\ud83d', '\ufffd\ufffd'],
  ])('of half a surrogate pair are one unknown character: %s', (_name, contents, text) => {
    expect(count(text, contents)).toBe(truth(text))
  })

  it('that span two windows are one character', () => {
    // A window of 65,536 bytes is counted when 16 are left.
    const words = 'word '.repeat(13_100).trimEnd()
    const tokensOfWords = truth(words)
    for (let shift = 16; shift < 24; shift++) {
      const rest = ` ${'x'.repeat(shift)}`
      const counted = count(`${words}${rest}😀 end`, `${words}${rest}\\ud83d\\ude00 end`)
      expect(counted).toBe(tokensOfWords + truth(`${rest}😀 end`))
    }
  })
})

describe('JSON as text', () => {
  const value = {
    path: 'C:\\temp/ü',
    'q"': [1, -2.5, true, false, null, []],
    nested: { 数: '中文\n', e: '1e5' },
  }

  it('is counted as JSON.stringify writes it, however it was written', () => {
    const ascii = JSON.stringify(value, null, 2).replace(
      /[^\x20-\x7e\n]/g,
      (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`,
    )
    expect(countSource(ascii, 'compact')).toBe(truth(JSON.stringify(value)))
    expect(countSource(JSON.stringify(value).replaceAll('/', '\\/'), 'compact')).toBe(
      truth(JSON.stringify(value)),
    )
  })

  it('keeps escapes that a JSON text has to have', () => {
    const source = '{"a":"\\u0000\\u0022\\u005c\\u001f"}'
    expect(countSource(source, 'compact')).toBeGreaterThanOrEqual(truth(JSON.stringify(JSON.parse(source))))
  })

  it('has spaces as other languages write them', () => {
    expect(countSource('{"a":1,"b":[2,3]}', 'spaced')).toBe(truth('{"a": 1, "b": [2, 3]}'))
    expect(countSource('{"a":1}', 'indented')).toBe(truth('{\n    "a": 1}'))
  })

  it('makes room for numbers that are written out', () => {
    const counter = new TextCounter()
    const bytes = encode('[1e20,1e-6,true]')
    counter.pushJsonSource(bytes, 0, bytes.length, 'compact')
    counter.end()
    expect(counter.tokens + counter.totals.more).toBeGreaterThanOrEqual(
      truth('[100000000000000000000,0.000001,true]'),
    )
  })
})

describe('words of thousands of letters', () => {
  const texts: Array<[string, (length: number) => string]> = [
    ['one letter', (length) => 'a'.repeat(length)],
    ['spaces', (length) => ' '.repeat(length)],
    ['random letters', (length) => randomText(length, LETTERS, 11)],
    ['one syllable', (length) => 'tion'.repeat(length / 4)],
    ['capitals after a mark', (length) => `\u0301${'Q'.repeat(length)}`],
    ['signs', (length) => randomText(length, [...'-=*#_'], 12)],
    ['letters without case', (length) => '中A'.repeat(length / 4)],
  ]

  it.each(texts)('are never counted below the truth: %s', (_name, make) => {
    for (const length of [4_096, 4_100, 8_300]) {
      const text = make(length)
      const counter = counted(text)
      const sum = counter.tokens + counter.totals.more
      const real = truth(text)
      expect(sum).toBeGreaterThanOrEqual(real)
      // Eight tokens for every cut: runs of spaces have so few tokens that it shows.
      expect(sum).toBeLessThanOrEqual(real * 1.02 + (length / 4_096) * 10)
    }
  })

  it('are never counted below the truth where they fill a window', () => {
    const text = `${'word '.repeat(100)}${randomText(70_000, LETTERS, 13)}`
    const counter = counted(text)
    // The vendor's tokenizer (tiktoken 1.0.22) takes seconds for one word of this length.
    expect(counter.tokens + counter.totals.more).toBeGreaterThanOrEqual(36_421)
  })

  it.each(texts)('take work in proportion to their length: %s', (_name, make) => {
    const small = counted(make(70_000)).lookups
    const large = counted(make(140_000)).lookups
    expect(small).toBeGreaterThan(0)
    expect(large).toBeLessThan(small * 2.2)
    expect(large).toBeLessThan(140_000 * 6)
  })
})

describe('texts beyond every context window', () => {
  const push = (counter: TextCounter, bytes: Uint8Array): number => {
    counter.pushJson(bytes, 0, bytes.length)
    counter.end()
    return counter.tokens + counter.totals.more
  }

  it('are counted on by their bytes', () => {
    const bytes = encode('quite '.repeat(100_000))
    const real = truth('quite '.repeat(100_000))
    const counter = new TextCounter({ tokens: 20_000, lookups: 1e9 })
    const sum = push(counter, bytes)
    expect(counter.tokens).toBeLessThan(40_000)
    expect(sum).toBeGreaterThanOrEqual(real)
    expect(sum).toBeLessThanOrEqual(bytes.length)
    expect(push(counter, bytes.subarray(0, 1_000))).toBe(sum + 1_000)
  })

  it('take a bounded amount of work', () => {
    const bytes = new Uint8Array(2_000_000).fill(0x20)
    const counter = new TextCounter({ tokens: 1e9, lookups: 1_000_000 })
    expect(push(counter, bytes)).toBeGreaterThan(bytes.length / 128)
    // One window more than the limit, at most.
    expect(counter.lookups).toBeLessThan(1_000_000 + 65_536 * 4)
  })

  it('of a quarter of a million tokens are still looked at in full', () => {
    const text = `${SAMPLES.english}\n`.repeat(2_000)
    expect(count(text)).toBe(truth(text))
  })
})
