import { describe, expect, it } from 'vitest'
import { PatternError } from '../../../src/dlp/detectors/custom/patterns.ts'
import { TokenVault } from '../../../src/dlp/policy/actions.ts'
import { callPolicy } from '../../../src/dlp/policy/call-policy.ts'
import { detectorOf, restoringDetector } from '../../../src/dlp/policy/profile-detector.ts'
import {
  applyReleased,
  type ReleasedText,
  type TextDetector,
  TextStream,
} from '../../../src/dlp/stream/text-stream.ts'
import type { CustomDetector } from '../../../src/dlp/types.ts'
import { inOneSlice } from './finding.ts'
import { CODE_PATTERN, profileOf, vaultOf } from './relayed-stream.ts'

const VALUE = 'ada@example.com'
const vault = vaultOf()
const TOKEN = vault.tokenFor('email', VALUE)

const pattern = (id: string, source: string): CustomDetector => ({
  id,
  kind: 'pattern',
  pattern: source,
  score: 1,
})

/** A text in pieces of a length, tokens restored and findings marked. */
function outputOf(detector: TextDetector | null, text: string, length: number): string {
  if (!detector) throw new Error('no detector')
  const stream = new TextStream(detector, (span, found) =>
    span.detector === 'restored-token' ? vault.valueOf(found) : '#',
  )
  const segments: ReleasedText[] = []
  for (let from = 0; from < text.length; from += length) {
    segments.push(...stream.push(text.slice(from, from + length)))
  }
  return applyReleased(text, [...segments, ...stream.end()])
}

describe('tokens in a text that is inspected', () => {
  // Each holds another part of the end of a text back.
  const others: CustomDetector[][] = [
    [],
    [CODE_PATTERN],
    [pattern('long', 'zz[a-z0-9 ]{1,60}zz')],
    [pattern('wide', '[A-Z_]{3}x')],
    [pattern('open', 'q+w')],
    [{ id: 'words', kind: 'dictionary', terms: ['the secret plan', 'EMAIL of'], score: 1 }],
  ]
  it.each(others.map((custom) => [custom[0]?.id ?? 'nothing', custom] as const))(
    'come back in pieces of every size, beside %s',
    (_, custom) => {
      const inner = custom.length > 0 ? detectorOf(profileOf('response', 'redact', custom)) : null
      const detector = restoringDetector(inner, vault)
      const text = `${TOKEN}, [${TOKEN}] [[${TOKEN}]] x${TOKEN}${TOKEN}.[[EMAIL_0000 ${TOKEN}`
      const expected = text.replaceAll(TOKEN, VALUE)
      for (let length = 1; length <= 64; length++) expect(outputOf(detector, text, length)).toBe(expected)
    },
  )

  it('come back where what is held back of the text begins within them', () => {
    for (let held = 1; held <= 30; held++) {
      const holding: TextDetector = {
        tail: inOneSlice((_context: string, text: string) => ({
          safe: Math.max(0, text.length - held),
          spans: [],
        })),
        rest: inOneSlice(() => []),
        passes: 0,
        actionOf: () => 'allow',
      }
      const text = `a ${TOKEN}, ${TOKEN} b`
      for (const length of [1, 5, 60]) {
        expect(outputOf(restoringDetector(holding, vault), text, length)).toBe(text.replaceAll(TOKEN, VALUE))
      }
    }
  })

  it('give way to a finding that is about more than them', () => {
    const detector = restoringDetector(
      detectorOf(profileOf('response', 'redact', [pattern('around', 'key:.{0,40};')])),
      vault,
    )
    for (const length of [1, 7, 100]) expect(outputOf(detector, `a key:${TOKEN}; b`, length)).toBe('a # b')
  })

  it('are not findings by what their own text looks like', () => {
    const detector = restoringDetector(
      detectorOf(profileOf('response', 'redact', [pattern('name', 'EMAIL_[0-9a-f]+')])),
      vault,
    )
    expect(outputOf(detector, `of ${TOKEN}.`, 3)).toBe(`of ${VALUE}.`)
  })

  it('of others stay', () => {
    const foreign = new TokenVault(new Uint8Array(32), 'o/other').tokenFor('email', VALUE)
    expect(foreign).not.toBe(TOKEN)
    expect(outputOf(restoringDetector(null, vault), `${foreign} ${TOKEN}`, 2)).toBe(`${foreign} ${VALUE}`)
  })
})

it('a policy that cannot be applied fails before any text is inspected', () => {
  const broken = profileOf('response', 'redact', [pattern('broken', '(?=x)')])
  const profiles = { request: null, response: broken, tool_arguments: null, tool_result: null }
  expect(() => callPolicy(profiles, vaultOf())).toThrow(PatternError)
})

it('a long text that is held back is not scanned again for every piece', () => {
  let scanned = 0
  const detector: TextDetector = {
    tail: inOneSlice((_context: string, text: string) => {
      scanned += text.length
      return { safe: 0, spans: [] }
    }),
    rest: inOneSlice(() => []),
    passes: 0,
    actionOf: () => 'allow',
  }
  const stream = new TextStream(detector, () => null)
  for (let piece = 0; piece < 20_000; piece++) stream.push('abcde')
  expect(stream.heldUnits).toBe(100_000)
  // A scan for each piece would read a thousand million units.
  expect(scanned).toBeLessThan(3_000_000)
  expect(stream.end()).toEqual([{ units: 100_000, replacement: null }])
})
