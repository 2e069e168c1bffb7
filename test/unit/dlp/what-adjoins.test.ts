import { describe, expect, it } from 'vitest'
import { detectorOf } from '../../../src/dlp/policy/profile-detector.ts'
import { type ReleasedText, TextStream } from '../../../src/dlp/stream/text-stream.ts'
import type { Profile } from '../../../src/dlp/types.ts'
import { EVERYTHING, profileOf } from './finding.ts'

/** A text as a stream leaves it that gets it in pieces of one length: each finding stands in brackets. */
function marked(text: string, length: number, profile: Profile): string {
  const stream = new TextStream(detectorOf(profile), (_, units) => `[${units}]`)
  const segments: ReleasedText[] = []
  for (let at = 0; at < text.length; at += length) segments.push(...stream.push(text.slice(at, at + length)))
  segments.push(...stream.end())
  let at = 0
  let output = ''
  for (const { units, replacement } of segments) {
    output += replacement ?? text.slice(at, at + units)
    at += units
  }
  return output
}

/** Expects the findings that a text has in brackets, whole and in pieces. */
function expectMarked(expected: string, profile = EVERYTHING): void {
  const text = expected.replace(/[[\]]/g, '')
  const output = (length: number) => marked(text, length, profile)
  for (const length of [text.length, 1, 2, 3, 7, 16]) expect(output(length)).toBe(expected)
}

describe('what follows a value does not hide it', () => {
  it.each([
    'card [4111 1111 1111 1111].txt',
    'card [4111 1111 1111 1111].pdf',
    'card [4111 1111 1111 1111].tar.gz',
    'card [4111 1111 1111 1111]_1',
    'card [4111 1111 1111 1111]-1',
    'card [4111 1111 1111 1111]-scan',
    'card [4111 1111 1111 1111]_final.pdf',
    'card [4111 1111 1111 1111].1',
    'card [4111 1111 1111 1111]@home',
    'card [4111 1111 1111 1111]%',
    'card [4111 1111 1111 1111]x',
    'card [4111 1111 1111 1111]é',
    'card [4111 1111 1111 1111]™',
    'card [4111 1111 1111 1111] 1234',
    'card [4111 1111 1111 1111]\t1234',
    'card [4111\t1111\t1111\t1111]\tyes',
    'card [4111_1111_1111_1111]',
    'card [4111_1111_1111_1111]_1.pdf',
    'card [4111111111111111].txt',
    'card [4111111111111111]_1',
    'card_[4111111111111111]-1.pdf',
    'card [4 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1].pdf',
    // Groups of four are enough.
    'see [4111 1111 1111 1111].txt',
    'see [4111-1111-1111-1111]_1',
    'see [4111-1111-1111-1111]-1',
    'see [4111 1111 1111 1111]x',
    'see [4111 1111 1111 1111] 1234',
    'see [4111_1111_1111_1111].pdf',
    'see [4111\t1111\t1111\t1111] x',
    'see [123-45-6789].pdf',
    'ssn [123-45-6789]_1',
    'ssn [123-45-6789]-scan',
    'ssn [123_45_6789].pdf',
    'ssn [123\t45\t6789] x',
    'ssn [123456789].pdf',
    'ssn [123-45-6789]x',
    'see [DE89 3704 0044 0532 0130 00].pdf',
    'see [DE89370400440532013000]_1.pdf',
    'see [DE89370400440532013000]x',
    'see [DE89_3704_0044_0532_0130_00].pdf',
    'see [DE89\t3704\t0044\t0532\t0130\t00] x',
    'see [DE89.3704.0044.0532.0130.00]',
    'phone [+49 30 901820].pdf',
    'call [+1 415 555 2671]_1',
    'phone [+49_30_901820] x',
    'phone [(415) 555-2671].vcf',
    'see [(415) 555-2671].vcf',
    'phone [415-555-2671]_home',
    'phone [4155552671]x',
    'mail [anna.berg@example.com].txt',
    'mail [anna.berg@example.com]-1',
    'mail [anna.berg@example.com]_old',
    'mail [anna.berg@example.com].2026.eml',
    'mail [anna.berg@example.com]Phone',
    'SWIFT [DEUTDEFF500]_1',
    'passport [C01X00T47]_1.jpg',
    'NINO [AB123456C]_1',
    'NINO [AB_12_34_56_C].pdf',
    'see [RSSMRA85T10A562S]_1.pdf',
    'DNI [12345678Z]-1',
    'ip [10.20.30.40].log',
    'ip [10.20.30.40]_1',
    'see [AIzaSyD4iE2xVSpkLLOXoyqT-RuPwURN3ddScAI]_final',
    'password: [hunter2!9x](1)',
  ])('%s', (expected) => expectMarked(expected))
})

describe('what precedes a value does not hide it', () => {
  it.each([
    'card_[4111 1111 1111 1111]',
    'card_2026_[4111 1111 1111 1111]',
    'card 2026-[4111 1111 1111 1111]',
    'card_2026_[4111111111111111]',
    'card1.[4111 1111 1111 1111]',
    'card[4111 1111 1111 1111]',
    'card[4111111111111111]',
    'CC[4111111111111111]',
    'é[4111 1111 1111 1111]',
    'see 2026_[4111-1111-1111-1111]',
    'see 1234 [4111 1111 1111 1111]',
    'ssn_2026_[123-45-6789]',
    'ssn[123-45-6789]',
    'see scan_[DE89370400440532013000]',
    'see IBAN[DE89370400440532013000]',
    'see IBAN[DE89 3704 0044 0532 0130 00]',
    'phone_[+49 30 901820]',
    'phone_[030 90182022]',
    'tel[+49 30 901820]',
    'passport_[C01X00T47]',
    'SWIFT-[DEUTDEFF500]',
    'see scan_[RSSMRA85T10A562S]',
    'ip_[10.20.30.40]',
    'see x_[eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.SflKxwRJSMeKKF2QT4fwpMeJf36POk6yJV_adQssw5c]',
    'see -[eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.SflKxwRJSMeKKF2QT4fwpMeJf36POk6yJV_adQssw5c]',
    'password: [$9fK2xQ#81zLw]',
  ])('%s', (expected) => expectMarked(expected))
})

describe('what makes a number another one', () => {
  it.each([
    'see 4111111111111111.log',
    'see x4111111111111111',
    'see 2026_4111111111111111',
    'a ratio of 0.4111111111111111',
    'payment 0.4111111111111111',
    'card 94111111111111111',
    'id 1234-4111-1111-1111-1111-9',
    'see 9400 1111 4111 1111 1111 1111 22',
    'part 011-12-3456-7890',
    'part P123-45-6789',
    'backup_20240512_0305.tar',
    'backup 20240512-0305-full',
    '20240512\t0305',
    'let most = 123_456_782',
    'id 550e8400-4111-1111-1111-111655440000',
    'logo@2x.png',
    'getty@tty1.service',
    'nginx-1.20.30.40.tar.gz',
    'host-1.20.30.40.log',
    'password: getPassword(1)',
    'password=$DB_PASSWORD1',
    'password: $config.password2',
  ])('%s: nothing', (text) => expectMarked(text, WITHOUT_NAMES))
})

/** Names of hosts and mere words are measured elsewhere. */
const WITHOUT_NAMES = profileOf(
  EVERYTHING.rules.map(({ detector }) => detector).filter((id) => id !== 'domain'),
)
