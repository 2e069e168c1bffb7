import { describe, expect, it } from 'vitest'
import { PolicyEngine } from '../../../src/dlp/policy/policy-engine.ts'
import { detectorOf } from '../../../src/dlp/policy/profile-detector.ts'
import { drained } from '../../../src/lib/slices.ts'
import { fullProfile } from '../../dlp/engine-under-test.ts'
import { SeededRandom } from '../lib/seeded-random.ts'
import { CODE, CODE_PATTERN, vaultOf } from './relayed-stream.ts'

const detector = detectorOf(fullProfile([CODE_PATTERN]))
const encoder = new TextEncoder()
const decoder = new TextDecoder()

function engine(): PolicyEngine {
  const detectors = { request: detector, response: detector, tool_arguments: detector, tool_result: detector }
  return new PolicyEngine({ detectors, policyVersion: 'v', kind: 'response', vault: vaultOf() })
}

/** Arguments as a policy leaves them, given whole and in pieces. */
function argumentsAfter(text: string, random = new SeededRandom(1)): string {
  const source = JSON.stringify(text).slice(1, -1)
  const field = { path: ['arguments'], json: true, kind: 'tool_arguments' as const }
  const whole = engine().inspect({ ...field, partial: false }, encoder.encode(source))
  const pieces = engine()
  for (let at = 0; at < text.length; ) {
    const length = 1 + random.below(9)
    const piece = JSON.stringify(text.slice(at, at + length)).slice(1, -1)
    pieces.inspect({ ...field, partial: true, key: 'k' }, encoder.encode(piece))
    at += length
  }
  const held = drained(pieces.end('k')).map(({ contents }) => decoder.decode(contents))
  const output = JSON.parse(`"${whole ? decoder.decode(whole.contents) : source}"`) as string
  expect(JSON.parse(`"${held.join('')}"`)).toBe(output)
  return output
}

describe('arguments of a tool', () => {
  it.each([
    [{ password: 'hunter2passX9q' }, { password: '[REDACTED:SECRET]' }],
    [
      { a: { ssn: '078051120' }, order: '078051120' },
      { a: { ssn: '[REDACTED:US_SSN]' }, order: '078051120' },
    ],
    [{ phones: ['2025550143'] }, { phones: ['[REDACTED:PHONE]'] }],
    [
      { count: 21, card: 4111111111111111 },
      { count: 21, card: '[REDACTED:CARD]' },
    ],
    [{ [CODE]: CODE }, { '[REDACTED:CODE]': '[REDACTED:CODE]' }],
    [{ nested: JSON.stringify({ code: CODE }) }, { nested: '{"code":"[REDACTED:CODE]"}' }],
  ])('are read by the names of their members: %j', (input, expected) => {
    for (const space of [0, 2])
      expect(JSON.parse(argumentsAfter(JSON.stringify(input, null, space)))).toEqual(expected)
  })

  it('are valid afterwards, whatever they hold and however they are escaped', () => {
    const random = new SeededRandom(11)
    const text = () =>
      random.pick([CODE, `x${CODE}`, `"${CODE}\\`, 'é😀', '\ud83d', 'a\n', '', '4111 1111 1111 1111'])
    const value = (depth: number): unknown => {
      if (depth > 3 || random.chance(0.4))
        return random.pick([text(), 7, -1.5e3, true, null, 4111111111111111])
      if (random.chance(0.5)) return Array.from({ length: random.below(4) }, () => value(depth + 1))
      return Object.fromEntries(Array.from({ length: random.below(4) }, () => [text(), value(depth + 1)]))
    }
    for (let round = 0; round < 300; round++) {
      const json = JSON.stringify({ a: value(0) })
      const escaped = random.chance(0.5) ? json : json.replaceAll('K', '\\u004b').replaceAll('1', '\\u0031')
      const source = isJson(escaped) ? escaped : json
      const output = argumentsAfter(source, random)
      expect(isJson(output), output).toBe(true)
      const plain = JSON.stringify(JSON.parse(output))
      expect(plain).not.toContain(CODE)
      expect(plain).not.toMatch(/4111 ?1111 ?1111 ?1111/)
    }
  })

  it.each([`{"a":"${CODE}`, `call ${CODE}`, `{"a":"${CODE}"}{`, ''])(
    'that are not JSON are read as they are: %s',
    (text) => {
      expect(argumentsAfter(text)).toBe(text.replace(CODE, '[REDACTED:CODE]'))
    },
  )
})

function isJson(text: string): boolean {
  try {
    JSON.parse(text)
    return true
  } catch {
    return false
  }
}
