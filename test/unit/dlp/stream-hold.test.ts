import { describe, expect, it } from 'vitest'
import { detect, detectAfter } from '../../../src/dlp/scan/detect.ts'
import { holdBack } from '../../../src/dlp/stream/hold-back.ts'
import type { CustomDetector, Finding, Profile } from '../../../src/dlp/types.ts'
import { drained } from '../../../src/lib/slices.ts'
import { SeededRandom } from '../lib/seeded-random.ts'
import { EVERYTHING, profileOf } from './finding.ts'

/** Texts of each kind and profile; `test:dlp` runs more. */
const ROUNDS = Number(process.env.FUZZ_ROUNDS ?? 2)

const told = ({ detector, start, end, score }: Finding, base: number): string =>
  `${start + base}-${end + base} ${detector} ${score.toFixed(2)}`

interface Passage {
  found: string[]
  held: number[]
}

/** Findings of a stream that gets a text in pieces, keeps 128 units of context and cannot revoke a release. */
function stream(text: string, profile: Profile, nextLength: () => number): Passage {
  const passage: Passage = { found: [], held: [] }
  let context = ''
  let held = ''
  let released = 0
  for (let index = 0; index < text.length; ) {
    const length = nextLength()
    held += text.slice(index, index + length)
    index += length
    const { safe, spans } = drained(holdBack(context, held, profile))
    passage.found.push(...spans.map((span) => told(span, released)))
    context = (context + held.slice(0, safe)).slice(-128)
    held = held.slice(safe)
    released += safe
    passage.held.push(held.length)
  }
  passage.found.push(...drained(detectAfter(context, held, profile)).map((span) => told(span, released)))
  return passage
}

const KEY_LINE = 'MIIEowIBAAKCAQEA1234567890abcdefghijklmnopqrstuvwxyzABCDEFGHIJKL'
const SAMPLES = [
  'My card is 4111 1111 1111 1111, exp 12/27', 'pay 5555555555554444.', '4 1 1 1   1 1 1 1 1 1 1 1 1 1 1 1 x',
  '4111 1111 1111 1111 5500 0000 0000 0004', '4111\n1111\r\n1111\n1111', '9400 1253 5805 1252 9435 84',
  'iban DE89 3704 0044 0532 0130 00 ok', 'gb82west12345698765432', 'D E 8 9   3 7 0 4   0 0 4 4   0 5 3 2   0 1 3 0   0 0',
  'SWIFT: DEUTDEFF500', 'SSN 078-05-1120', 'ssn: 123456789', 'call +1 415 555 2671 now', '(415) 555-2671 ext. 12', 'phone 555-1234',
  'tel: 030/1234567-89', '0044 20 7946 0958', 'tel 0301234567 und 2024-05-06 12:33', 'mail john.doe@example.com.', "o'brien@example.com",
  'josé@münchen.com', 'see www.example.org/path and example.co.uk', '192.168.1.1 and version 1.2.3.4', '2001:db8::8a2e:370:7334',
  'postgres://user:s3(cr,et@db.host.com:5432/app', 'AB123456C QQ 12 34 56 C', 'AB 12-34 56 C', 'NHS 943 476 5919', 'RSSMRA85T10A562S',
  '12345678Z X1234567L', '12.345.678-Z', 'CPF 529.982.247-25', '11010519491231002X', '1 85 05 78 006 084 36', 'A123456(3)', '131052-308T',
  'marie@exa\u200bmple.com ４１１１ １１１１ １１１１ １１１１', 'user%40example.com &#52;111111111111111 \\u0040', '4111&#32;1111&#x20;1111%201111',
  'eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.SflKxwRJSMeKKF2QT4fwpMeJf36POk6yJV_adQssw5c',
  'password: hunter2!', 'api_key="9f8a7b6c5d4e3f2a1b0c9d8e"', '"password": "a(b)c,d1"', "secret='x9$(kk)'", 'the password is Tr0ub4dor&3',
  "id;password;x\n1;aB3$kdkf9;y'", 'AKIAIOSFODNN7EXAMPLE wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY', 'ghp_abcdefghijklmnopqrstuvwxyz0123456789',
  'https://hooks.slack.com/services/T00000000/B00000000/aBcDeFgHiJkLmNoPqRsTuVwX', 'Authorization: Basic dXNlcjpwYXNzd29yZA==',
  'data NDExMTExMTExMTExMTExMQ== x', 'aHR0cDovL3VzZXI6cGFzc0BleGFtcGxlLmNvbS8=',
  'dGhlIGNhcmQgaXMgNDExMSAx\nMTExIDExMTEgMTExMSwgdGhh\nbmtz', '{"a":"{\\"email\\":\\"bob\\\\u0040example.com\\"}"}',
  `-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,AABB\n\n${KEY_LINE}\nabcdef==\n-----END RSA PRIVATE KEY-----`,
  `{"key":"-----BEGIN PRIVATE KEY-----\\n${KEY_LINE}\\n-----END PRIVATE KEY-----\\n"}`,
  'P<UTOERIKSSON<<ANNA<MARIA<<<<<<<<<<<<<<<<<<<\nL898902C36UTO7408122F1204159ZE184226B<<<<<10',
  '0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed', 'bc1qw508d6qejxtdg4y5r3zarvary0c5xw7kv8f3t4',
  'PRJ-1234 and PRJ-123456-AB or xPRJ-1234', 'Project  Titan rules, titanic Titans', 'u\u0308-projekt Ü-Projekt', '我们的极光计划很好',
  '4111 1111 1111 1111\n4012 8888 8888 1881\n5555 5555 5555 4444', 'pay 4111 1111 1111 1111 1228 123 now',
  '1,4111111111111111,x\n2,4012888888881881,y\n3,4111111111111112,z\n4,5555555555554444,z', '7 536 90 4399 13 536 90 4398',
  '№4111111111111111 und 4111 — 1111 — 1111 — 1111 x', '4 1 1 1 - 1 1 1 1 - 1 1 1 1 - 1 1 1 1.', 'Tel 03 04 86 16 40 94 x 03 04 86 16 40',
  'i d e 8 9 3 7 0 4 0 0 4 4 0 5 3 2 0 1 3 0 0 0 x', '0012 3400 1176 2245\n4811 0023 9981 1111\n5311 0023 9981 1112', '536 90\n4399 12',
  '- name: DB_PASSWORD\n  value: Tr0ub4dor3x', '<db.password>Tr0ub4dor3x</db.password>', 'curl -s -u "deploy:Tr0ub4dor3x" https://x.example',
  'root:$6$9rFSNmAv$aoXfywYvMZhxx3kZcoU9w4G/6sm5GNd/ZkF2Ff8yC6xsdGH.HWUIU2CWMaBgfJPgjvHP1QbrzPB8ahmCxrS9v/:19000:0',
  'https://api.telegram.org/bot5633778125:AA0Mg5nQPvtOqURsrDGyCSj43XqeIsA0jyg/sendMessage', 'the domain --token abcDEF123456ghiJKL78 x',
  'card 4111 1111 1111 1111.txt and 4111-1111-1111-1111_1.pdf', '4111\t1111\t1111\t1111\t12', 'scan_4111_1111_1111_1111-2 x', 'card4111111111111111x',
  'see 1234 4111 1111 1111 1111 x', '1 4111 1111 1111 1111 22 y', 'CC4111 1111 1111 1111é', 'ssn 123-45-6789@home 123_45_6789.pdf', '20240512_0305.tar',
  'IBANDE89 3704 0044 0532 0130 00.pdf', 'DE89_3704_0044_0532_0130_00x', 'de89.3704.0044/0532/0130/00', 'tel_+49_30_901820.vcf', 'tel+49\t30\t901820 x',
  'phone +41 79 621 33 39-2', 'mail anna@example.com.2026.eml', 'anna@firma.it-1 and bob@example.comPhone', 'ip_10.20.30.40_1 addr:2001:db8::1.log',
  'x_eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.SflKxwRJSMeKKF2QT4fwpMeJf36POk6yJV_adQssw5c', 'AIzaSyD4iE2xVSpkLLOXoyqT-RuPwURN3ddScAI_old',
  'passport_C01X00T47_1.jpg SWIFT-DEUTDEFF500-2', 'see RSSMRA85T10A562S_1 AB_12_34_56_C.pdf', 'Titan_report Project Titan.pdf',
  'The quick brown fox jumps over the lazy dog.', 'It costs $1,234.56 in 2024; see fig. 3-4', '1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16',
  '550e8400-e29b-41d4-a716-446655440000 1700000000000 2024-01-02T12:30:45Z v10.2.3.4', '2024-05-11T01:49:42.155Z WARN duration=574ms status=204',
] // biome-ignore format: a list

const PATTERN: CustomDetector = {
  id: 'pattern',
  kind: 'pattern',
  pattern: '\\bPRJ-\\d{4,6}(?:-[A-Z]{2})?\\b',
  score: 0.9,
}
const TERMS: CustomDetector = {
  id: 'terms',
  kind: 'dictionary',
  terms: ['Project Titan', 'Titan', 'Ü-Projekt', '极光计划'],
  score: 0.8,
}
const PROFILES: Record<string, Profile> = {
  'every detector': EVERYTHING,
  'a pattern': profileOf([], { custom: [PATTERN] }),
  'a dictionary': profileOf([], { custom: [TERMS] }),
  'all of them': profileOf(
    EVERYTHING.rules.map(({ detector }) => detector),
    { custom: [PATTERN, TERMS] },
  ),
}

function mixed(random: SeededRandom): string {
  let text = ''
  for (let count = 2 + random.below(5); count > 0; count--) {
    text +=
      random.pick(SAMPLES) +
      random.pick([' ', '\n', ', ', ' - ', '', '. ', ';', ' and then ', ',', '_', '\t', '-', '.'])
  }
  return text
}

/** Writes some of a text's characters otherwise, loses some, and puts signs between. */
function spelledOtherwise(text: string, random: SeededRandom): string {
  let spelled = ''
  for (const character of text) {
    const code = character.charCodeAt(0)
    const dice = random.below(100)
    if (dice < 2) spelled += `\u200b${character}`
    else if (dice < 4 && code < 128) spelled += `%${code.toString(16).padStart(2, '0')}`
    else if (dice < 6) spelled += `&#${code};`
    else if (dice < 7) spelled += `\\u${code.toString(16).padStart(4, '0')}`
    else if (dice < 8)
      spelled +=
        character +
        random.pick([
          ' ',
          '-',
          '.',
          '/',
          '"',
          '(',
          '<',
          '\n',
          '\\n',
          '&',
          '%',
          'é',
          '@',
          ':',
          '=',
          '_',
          '\t',
          'x',
          '1',
        ])
    else if (dice > 8) spelled += character
  }
  return spelled
}

describe('a stream finds what the whole text has', () => {
  const lengths = ROUNDS < 12 ? [1, 2, 3, 5, 8, 16, 45] : Array.from({ length: 64 }, (_, index) => index + 1)

  function expectSame(text: string, profile: Profile, sizes: readonly number[], random: SeededRandom): void {
    const whole = detect(text, profile).map((span) => told(span, 0))
    for (const size of sizes) {
      expect({ size, text, found: stream(text, profile, () => size).found }).toEqual({
        size,
        text,
        found: whole,
      })
    }
    const split = stream(text, profile, () => 1 + random.below(40)).found
    expect({ text, found: split }).toEqual({ text, found: whole })
  }

  // Every detector is among all of them, too.
  const { 'every detector': _everyDetector, ...others } = PROFILES
  it.each(Object.entries(others))('%s: samples in pieces of 1 to 64', (_, profile) => {
    const random = new SeededRandom(1)
    for (const text of SAMPLES) expectSame(text, profile, lengths, random)
  })

  it.each(Object.entries(PROFILES))('%s: samples side by side', (_, profile) => {
    const random = new SeededRandom(2)
    for (let round = 0; round < ROUNDS; round++)
      expectSame(mixed(random), profile, [1, 3, 4, 7, 16, 64], random)
  })

  it.each(Object.entries(PROFILES))('%s: samples spelled otherwise', (_, profile) => {
    const random = new SeededRandom(3)
    for (let round = 0; round < ROUNDS; round++) {
      expectSame(spelledOtherwise(mixed(random), random), profile, [1, 3, 4, 7, 16, 64], random)
    }
  })

  it('the test sees a stream that releases too early', () => {
    const held = 'card 4111 1111 1111'
    const { safe } = drained(holdBack('', held, EVERYTHING))
    expect(safe).toBe(5)
    const early = drained(detectAfter(held.slice(0, 10), `${held.slice(10)} 1111`, EVERYTHING))
    expect(early).toEqual([])
  })
})

describe('how much a stream holds', () => {
  const prose =
    'The committee met on 14 March 2024 to discuss the roadmap; 27 people (of 31) attended. It was agreed, after a long ' +
    'debate, that the well-known issues with the billing service — see https://example.com/issues/1234 — would be fixed ' +
    "first. “Nobody's happy with it,” said the chair. Costs: $1,250.00 per month, up 3.5% since 2022.\n\n- one\n- two\n"

  it('little of ordinary text', () => {
    const { held } = stream(prose.repeat(10), EVERYTHING, () => 4)
    const sorted = held.toSorted((left, right) => left - right)
    expect(held.reduce((sum, each) => sum + each) / held.length).toBeLessThan(8)
    expect(sorted[Math.floor(sorted.length * 0.95)]).toBeLessThan(40)
  })

  it.each([
    ['a word is done', 'hello world, ', 13],
    ['a word may become an address', 'hello wor', 6],
    ['digits may go on', 'pay 4111 1111 ', 4],
    ['digits are of nothing', 'in 2024 we ', 11],
    ['a key is open', 'a -----BEGIN PRIVATE KEY-----\nMIIE', 2],
    ['an escape is open', 'pay 4111 1111 1111 1111&#3', 4],
    ['half a character', 'hello \ud83d', 6],
  ])('%s', (_, text, safe) => expect(drained(holdBack('', text, EVERYTHING)).safe).toBe(safe))

  it('nothing where nothing is asked for', () => {
    expect(drained(holdBack('', '4111 1111', profileOf([])))).toEqual({ safe: 9, spans: [] })
  })
})
