import { describe, expect, it } from 'vitest'
import { found } from './finding.ts'

// Numbers that the networks and their processors publish for tests; those of 12, 17 and more digits follow their rules.
const CARDS = [
  '4111111111111111', '4012888888881881', '4222222222222', '5555555555554444', '2223003122003222', '378282246310005',
  '371449635398431', '6011111111111117', '6011000990139424', '30569309025904', '38520000023237', '3530111333300000',
  '6200000000000005', '5019717010103742', '180000000000002', '213100000000001', '500000000000000000', '6304000000000000',
  '501800000009', '6759649826438453', '2200000000000004', '9792000000000001', '4000000000000000006', '6212345678901232',
] // biome-ignore format: a list

function withCheckDigit(prefix: string): string {
  let sum = 0
  for (let index = 0; index < prefix.length; index++) {
    const digit = Number(prefix[prefix.length - 1 - index])
    sum += index % 2 === 1 ? digit : digit > 4 ? digit * 2 - 9 : digit * 2
  }
  return prefix + ((10 - (sum % 10)) % 10)
}

describe('cards', () => {
  it.each(CARDS.filter((number) => withCheckDigit(number.slice(0, -1)) === number))('%s', (number) => {
    expect(found(`pay with card ${number}.`)).toEqual([`card: ${number}`])
  })

  it.each(['18000123456789', '21311234567890', '50181234567', '675912345678901234', '620012345678901'])(
    'of the range %s',
    (prefix) => {
      const number = withCheckDigit(prefix)
      expect(found(`Karte: ${number}`)).toEqual([`card: ${number}`])
    },
  )

  it.each([
    '4111 1111 1111 1111',
    '4111-1111-1111-1111',
    '4111.1111.1111.1111',
    '4111  1111  1111  1111',
    '4111 - 1111 - 1111 - 1111',
    '3782 822463 10005',
    '3056 930902 5904',
    '4 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1',
  ])('%s without a word', (number) => {
    expect(found(`(${number})`)).toEqual([`card: ${number}`])
  })

  it.each([
    ['a wrong check digit', 'card 4111 1111 1111 1112'],
    ['no issuer', 'card 9111111111111117'],
    ['a length that the issuer has not', 'card 41111111111116'],
    ['one digit only', 'card 0000 0000 0000 0000'],
    ['part of a longer number', 'card 94111111111111111'],
    ['part of a word', 'x4111111111111111'],
    ['a fraction', '0.4111111111111111'],
    ['an order', 'order number: 4111111111111111'],
    ['a group of a UUID', '550e8400-e29b-41d4-a716-446655440000'],
    ['a longer number in groups', '9400 1111 4111 1111 1111 1111 22'],
  ])('not %s', (_, text) => {
    expect(found(text).filter((each) => each.startsWith('card'))).toEqual([])
  })

  it('each of a list', () => {
    expect(found('4111 1111 1111 1111 5500 0000 0000 0004')).toEqual([
      'card: 4111 1111 1111 1111',
      'card: 5500 0000 0000 0004',
    ])
  })
})

// Examples of the registry (SWIFT, IBAN Registry).
const ACCOUNTS = [
  'AD1200012030200359100100', 'AE070331234567890123456', 'AT611904300234573201', 'BE68539007547034',
  'BR1800360305000010009795493C1', 'CH9300762011623852957', 'CZ6508000000192000145399', 'DE89370400440532013000',
  'DK5000400440116243', 'EE382200221020145685', 'ES9121000418450200051332', 'FI2112345600000785',
  'FR1420041010050500013M02606', 'GB29NWBK60161331926819', 'GR1601101250000000012300695', 'HU42117730161111101800000000',
  'IE29AIBK93115212345678', 'IL620108000000099999999', 'IT60X0542811101000000123456', 'LU280019400644750000',
  'MT84MALT011000012345MTLCAST001S', 'NL91ABNA0417164300', 'NO9386011117947', 'PL61109010140000071219812874',
  'PT50000201231234567890154', 'RO49AAAA1B31007593840000', 'SA0380000000608010167519', 'SE4550000000058398257466',
  'TR330006100519786457841326', 'VA59001123000012345678',
] // biome-ignore format: a list

describe('bank accounts', () => {
  it.each(ACCOUNTS)('%s', (account) => {
    expect(found(`to ${account}, please`)).toEqual([`iban: ${account}`])
    const spaced = account.replace(/(.{4})(?=.)/g, '$1 ')
    expect(found(`to ${spaced}, please`)).toEqual([`iban: ${spaced}`])
    expect(found(account.toLowerCase())).toEqual([`iban: ${account.toLowerCase()}`])
  })

  it.each([
    'DE88370400440532013000',
    'DE8937040044053201300',
    'XX89370400440532013000',
    'DE893704004405320130001',
    'DE89 but not',
  ])('not %s', (text) => {
    expect(found(text).filter((each) => each.startsWith('iban'))).toEqual([])
  })

  it('bank codes only where a word names them', () => {
    expect(found('BIC: DEUTDEFF500, SWIFT NEDSZAJJXXX')).toEqual(['bic: DEUTDEFF500', 'bic: NEDSZAJJXXX'])
    expect(found('ABSOLUTE COMMANDS')).toEqual([])
    expect(found('SWIFT: DEUTXXFF')).toEqual([])
  })

  it('routing numbers only where a word names them', () => {
    expect(found('routing number 021000021')).toEqual(['aba_routing: 021000021'])
    expect(found('routing number 021000022').filter((each) => each.startsWith('aba'))).toEqual([])
    expect(found('we counted 021000021 of them')).toEqual([])
  })
})
