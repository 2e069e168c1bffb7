import { describe, expect, it } from 'vitest'
import { restoringDetector } from '../../../src/dlp/policy/profile-detector.ts'
import { detectAfter } from '../../../src/dlp/scan/detect.ts'
import { ScanBudget } from '../../../src/dlp/scan/scan-budget.ts'
import type { Finding } from '../../../src/dlp/types.ts'
import { drained } from '../../../src/lib/slices.ts'
import { found, inOneSlice, profileOf } from './finding.ts'
import { vaultOf } from './relayed-stream.ts'

const LONG = 1_200_000
const HEADER = Buffer.from('{"alg":"HS256","typ":"JWT"}').toString('base64url')
const only = (id: string) => (text: string) => found(text, profileOf([id]))

describe('secrets of more than a megabyte are found whole', () => {
  it.each([
    [
      'a header',
      `${Buffer.from(`{"alg":"none","x":"${'x'.repeat(LONG)}"}`).toString('base64url')}.eyJhIjoxfQ.abc`,
    ],
    ['a payload', `${HEADER}.${'Ab0_'.repeat(LONG / 4)}.signature`],
    ['a signature', `${HEADER}.eyJhIjoxfQ.${'Ab0-'.repeat(LONG / 4)}`],
  ])('in a signed token with %s of that length', (_, token) => {
    const findings = only('jwt')(`Bearer ${token} end`)
    expect(findings.map((each) => each.length)).toEqual([`jwt: ${token}`.length])
  })

  it('in Basic credentials', () => {
    const credentials = Buffer.from(`user:${'p'.repeat(LONG)}`).toString('base64')
    const findings = only('basic_credentials')(`Authorization: Basic ${credentials} end`)
    expect(findings.map((each) => each.length)).toEqual([`basic_credentials: ${credentials}`.length])
  })
})

it('a number of any length after a column of others is read, as no telephone number', () => {
  const text = `a 004915112345678\n${'0'.repeat(40_000)}`
  expect(found(text)).toEqual(['phone: 004915112345678'])
})

describe('more findings than are held', () => {
  const terms = profileOf([], { custom: [{ id: 'terms', kind: 'dictionary', terms: ['x'], score: 1 }] })
  const scan = (context: string, count: number) =>
    drained(detectAfter(context, ' x'.repeat(count), terms, new ScanBudget(Number.POSITIVE_INFINITY)))

  it('are refused', () => {
    expect(scan('', 200_000)).toHaveLength(200_000)
    expect(() => scan('', 200_001)).toThrow(expect.objectContaining({ code: 'dlp_too_complex' }))
  })

  it('are refused, and not passed, where some of them lie before the text', () => {
    expect(() => scan('x '.repeat(60), 200_100)).toThrow(expect.objectContaining({ code: 'dlp_too_complex' }))
  })
})

describe('tokens beside findings', () => {
  const vault = vaultOf()
  const TOKEN = vault.tokenFor('email', 'ada@example.com')
  const findingAt = (start: number, end: number): Finding => ({
    start,
    end,
    detector: 'email',
    category: 'contact',
    score: 1,
  })

  /** Each token that no finding overlaps, and each finding that is not within a token; by trying all pairs. */
  const slowly = (tokens: Finding[], findings: Finding[]) => {
    const real = findings.filter(
      (each) => !tokens.some((token) => each.start >= token.start && each.end <= token.end),
    )
    const free = tokens.filter(
      (token) => !real.some(({ start, end }) => start < token.end && end > token.start),
    )
    return [...free, ...real].sort((left, right) => left.start - right.start)
  }

  it('are merged as by trying all pairs, also over the parts of a long text', () => {
    let state = 7
    const random = (below: number) => {
      state = (state * 48271) % 0x7fffffff
      return state % below
    }
    for (let run = 0; run < 40; run++) {
      let text = run % 4 === 0 ? 'a'.repeat(65_500 + random(60)) : ''
      const tokens: Finding[] = []
      for (let part = 0; part < 30; part++) {
        text += ['', '[', '[[', 'xy', ' '.repeat(random(9))][random(5)]
        if (random(3) === 0) continue
        tokens.push({ ...findingAt(text.length, text.length + TOKEN.length), detector: 'restored-token' })
        text += TOKEN
      }
      const findings: Finding[] = []
      for (let at = Math.max(0, text.length - 900); at < text.length; ) {
        const start = at + random(40)
        at = start + 1 + random(60)
        if (at <= text.length) findings.push(findingAt(start, at))
      }
      const inner = {
        tail: inOneSlice(() => ({ safe: text.length, spans: findings })),
        rest: inOneSlice(() => findings),
        passes: 0,
        actionOf: () => 'redact' as const,
      }
      const merged = drained(
        restoringDetector(inner, vault)?.rest('', text, new ScanBudget()) as never,
      ) as Finding[]
      const places = (all: Finding[]) => all.map(({ start, end, detector }) => [start, end, detector])
      expect(places(merged)).toEqual(places(slowly(tokens, findings).map((each) => each)))
    }
  })
})
