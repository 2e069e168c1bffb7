import { describe, expect, it } from 'vitest'
import { EVERYTHING, found, profileOf } from './finding.ts'

/** A sequence of digits that is the same in every run (Numerical Recipes' generator). */
function digitSource(seed: number): (count: number) => string {
  let state = seed
  const digit = (): number => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    return Math.floor((state / 2 ** 32) * 10)
  }
  return (count) => Array.from({ length: count }, digit).join('')
}

const repeat = <T>(count: number, make: (index: number) => T): T[] =>
  Array.from({ length: count }, (_, i) => make(i))

/** Findings other than names of hosts, for every 1000 lines. */
function findingsIn(lines: readonly string[]): string[] {
  return found(lines.join('\n')).filter((finding) => !finding.startsWith('domain'))
}

describe('tables of numbers', () => {
  const digits = digitSource(7)

  it.each([
    ['ten columns of four digits', () => repeat(10, () => digits(4)).join(' ')],
    ['twelve columns of three digits', () => repeat(12, () => digits(3)).join(' ')],
    ['sixteen columns of two digits', () => repeat(16, () => digits(2)).join(' ')],
    ['columns of one digit', () => repeat(30, () => digits(1)).join(' ')],
    ['columns of many widths', () => repeat(8, (index) => digits(1 + ((index * 3) % 7))).join('  ')],
  ])('%s are none of cards, phones and ids', (_, row) => {
    expect(findingsIn(repeat(500, row)).length).toBeLessThanOrEqual(5)
  })

  it.each([
    ['references of 16 digits', () => `${digits(6)},${digits(12)},${digits(16)},${digits(10)}`],
    ['numbers of 11 digits', () => `${digits(9)}\t${digits(11)}`],
    ['numbers of 13 digits', () => `AB-1;${digits(13)};2;${digits(3)}.99`],
  ])('a column of %s is judged as a whole', (_, row) => {
    expect(findingsIn(repeat(500, row)).length).toBeLessThanOrEqual(5)
  })

  it('a column of cards is one of cards', () => {
    const cards = ['4111111111111111', '4012888888881881', '5555555555554444', '378282246310005']
    expect(found(cards.map((card, index) => `${index},${card},x`).join('\n'))).toEqual(
      cards.map((card) => `card: ${card}`),
    )
  })

  it('a list of cards in groups, one for each line', () => {
    const cards = ['4111 1111 1111 1111', '4012 8888 8888 1881', '5555 5555 5555 4444']
    expect(found(cards.join('\n'))).toEqual(cards.map((card) => `card: ${card}`))
  })

  it('a field of cards in a log that has other numbers in its lines', () => {
    expect(found('order_id=7116948403878630 duration=380ms\nnumber=2704829925718527 duration=229ms')).toEqual(
      ['card: 2704829925718527'],
    )
  })

  it('a card before its expiry and code', () => {
    expect(found('4111 1111 1111 1111 1228 123')).toEqual(['card: 4111 1111 1111 1111'])
  })

  it('milliseconds since 1970 are no ids of persons', () => {
    const fields = repeat(400, () => `"created": 17${digits(11)}`)
    expect(fields.flatMap((field) => found(field))).toEqual([])
  })
})

describe('programs and what they write', () => {
  it.each([
    [
      'names in code about tokens',
      'const token: IdentityTokenProvider = new DefaultAzureCredentialOptions2()',
    ],
    ['types', 'auth: CredentialAuthCreateParam; token: ChatCompletionTokenLogprob'],
    ['a page', '{"password_set": true, "next_page_token": "5T1MtPcxK2s03WeVD2eTEn1tNtEnAo-KCR4Q1Qrd"}'],
    ['where a secret lies', 'Reconciling secret "default/app-token-ecf4e" of the pod'],
    ['a version in JSON', '{"ver": "4.7.21.13", "version": "1.4.2.8"}'],
    ['versions', 'upgraded from 10.2.1.3 to 10.2.1.4, .NET 6.0.32.1, AssemblyVersion("4.0.0.0")'],
    ['a decimal', 'a number in the range 0.001-1000000'],
    ['bytes', 'prints <Buffer 08 07 06 05 04 03 02 01>'],
    ['coordinates', 'POINT 32U 380110 6127398 N75'],
    ['a word that the window of context cuts', `ARABIC LETTER LAM${' '.repeat(81)}ISOLATED form`],
  ])('%s: nothing', (_, text) => {
    expect(found(text)).toEqual([])
  })

  it.each([
    ['ADMIN_TOKEN=abcDEF123456ghiJKL', 'secret: abcDEF123456ghiJKL'],
    ['ACCOUNT_TOKEN=abcDEF123456ghiJKL', 'secret: abcDEF123456ghiJKL'],
    ['the host is at 10.2.1.3 now', 'ip_address: 10.2.1.3'],
    ['secret: default-9fK2xQ81zLw0', 'secret: default-9fK2xQ81zLw0'],
  ])('%s: still found', (text, finding) => {
    expect(found(text)).toEqual([finding])
  })
})

describe('numbers as people write them', () => {
  it.each([
    ['№4111111111111111', 'card: 4111111111111111'],
    ['№ 4111 1111 1111 1111', 'card: 4111 1111 1111 1111'],
    ['4111—1111—1111—1111', 'card: 4111—1111—1111—1111'],
    ['4111 — 1111 — 1111 — 1111', 'card: 4111 — 1111 — 1111 — 1111'],
    ['4 1 1 1 - 1 1 1 1 - 1 1 1 1 - 1 1 1 1', 'card: 4 1 1 1 - 1 1 1 1 - 1 1 1 1 - 1 1 1 1'],
    ['numéro 6 5 1 5 5 3 4 0 0 9 6 0 1 7 5 1.', 'card: 6 5 1 5 5 3 4 0 0 9 6 0 1 7 5 1'],
    ['iban=d e 8 9 3 7 0 4 0 0 4 4 0 5 3 2 0 1 3 0 0 0', 'iban: d e 8 9 3 7 0 4 0 0 4 4 0 5 3 2 0 1 3 0 0 0'],
    ['d e 8 9 3 7 0 4 0 0 4 4 0 5 3 2 0 1 3 0 0 0', 'iban: d e 8 9 3 7 0 4 0 0 4 4 0 5 3 2 0 1 3 0 0 0'],
  ])('%s', (text, finding) => {
    expect(found(text, text.includes('d e') ? profileOf(['iban']) : EVERYTHING)).toEqual([finding])
  })
})
