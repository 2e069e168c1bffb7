import { describe, expect, it } from 'vitest'
import { detect } from '../../src/dlp/scan/detect.ts'
import { holdBack } from '../../src/dlp/stream/hold-back.ts'
import { EVERYTHING, profileOf } from '../unit/dlp/finding.ts'
import { growthOf } from './timing.ts'

/** Texts that start a match of some detector; each is repeated. */
const UNITS = [
  'a', 'A', '1', '1 ', '1-', '12 ', '4111 ', '4111\n', '+1 ', '(1', 'a@', 'a.', 'a.b@c.', '1.1.', '1:', '::', 'f:', '://', 'http://a:b',
  'http://a:b@', 'password=', 'password:"', 'token: a1b2c3d4e5f6a7b8c9d0 ', 'eyJ-', 'eyJ.', 'sk-', 'sk-proj-', 'ya29.', 'SG.', 'M.', '-----BEGIN ',
  '-----BEGIN PRIVATE KEY-----\n', '-----', 'P<<', '&#', '&amp;', '%2', '%25', '\\', '\\u0031', '\u200b', 'e\u0301', '\u0301', '\ufdfa', 'DE89 ',
  'D E 8 9 ', '0x', 'QUJDREVGR0hJSktMTU5P', 'QUJDREVGR0hJSktMTU5P\n', 'Basic ', '"', '=', 'x=1&', 'AB12 ', 'Q~', '中1', '/', 'A1b2C3d4-', '\ud83d',
  'curl -u ', '<password>', 'name: password value: ', 'variable "a" { default = "', ' --password', '$2b$12$', 'token CamelCaseName ',
  '4111 1111 1111 1111 ', '4111 1111 1111 1111\n', '4 1 1 1 - ', '1,4111111111111111\n', '№', '4—', 'upgraded from 10.2.1.3 to ', 'a b ',
] // biome-ignore format: a list

const growth = (run: (size: number) => void, size: number) => growthOf((factor) => run(size * factor))

describe('time grows with the text and no faster', () => {
  it.each(UNITS)('%j', (unit) => {
    const scan = (size: number) => void detect(unit.repeat(size / unit.length), EVERYTHING)
    const hold = (size: number) => void holdBack('', unit.repeat(size / unit.length), EVERYTHING)
    expect(growth(scan, 20_000)).toBeLessThan(10)
    expect(growth(hold, 20_000)).toBeLessThan(10)
  })

  it.each(['(a+)+$', '(a|aa)+$', '(.*a){12}', 'a.{0,200}b', 'x(?:.*y)?'])('the pattern %s', (pattern) => {
    const profile = profileOf([], { custom: [{ id: 'custom', kind: 'pattern', pattern, score: 1 }] })
    const scan = (size: number) => void detect(`${'ax'.repeat(size / 2)}!`, profile)
    // Patterns that read far have a budget, which short texts do not use up.
    expect(growth(scan, 200_000)).toBeLessThan(10)
  })

  it('terms that contain each other', () => {
    const terms = Array.from({ length: 60 }, (_, index) => 'a '.repeat(index + 1).trim())
    const profile = profileOf([], { custom: [{ id: 'terms', kind: 'dictionary', terms, score: 1 }] })
    expect(growth((size) => void detect('a '.repeat(size / 2), profile), 20_000)).toBeLessThan(10)
  })
})
