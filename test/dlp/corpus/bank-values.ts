import { ibanCheckDigits, luhnDigit, mod11And10Digit, remainder, weightedSum } from './check-digits.ts'
import type { SeededRandom } from './seeded-random.ts'
import type { Names, SensitiveValue, ValueMakers } from './values.ts'

/** Cards, accounts and banks. Issuer ranges: ISO/IEC 7812 as the networks publish them. */

const CARD_NAMES: Names = {
  en: ['card number', 'credit card', 'card', 'debit card number'],
  de: ['Kreditkartennummer', 'Kartennummer'],
  fr: ['numéro de carte', 'carte bancaire'],
  es: ['número de tarjeta', 'tarjeta de crédito'],
  it: ['numero della carta', 'carta di credito'],
  pt: ['número do cartão', 'cartão de crédito'],
  nl: ['kaartnummer', 'creditcard'],
  pl: ['numer karty'],
  ja: ['カード番号'],
  zh: ['信用卡号'],
}

interface Issuer {
  prefix: (random: SeededRandom) => string
  length: number
  groups: readonly number[]
}

const FOURS = [4, 4, 4, 4] as const
const issuer = (prefix: Issuer['prefix'], length = 16, groups: readonly number[] = FOURS): Issuer => ({
  prefix,
  length,
  groups,
})

const ISSUERS: Record<string, Issuer> = {
  visa: issuer(() => '4'),
  mastercard: issuer((random) => String(random.integer(51, 55))),
  mastercard_2: issuer((random) => String(random.integer(2221, 2720))),
  amex: issuer((random) => random.pick(['34', '37']), 15, [4, 6, 5]),
  discover: issuer((random) => random.pick(['6011', '65', '644', '648'])),
  diners: issuer((random) => random.pick(['36', '38', '300', '305']), 14, [4, 6, 4]),
  jcb: issuer((random) => String(random.integer(3528, 3589))),
  unionpay: issuer((random) => `62${random.integer(10, 28)}`),
  maestro: issuer((random) => random.pick(['5018', '5020', '5038', '6304', '6759', '6761', '6763'])),
}

const cardOf =
  (kind: string, { prefix, length, groups }: Issuer) =>
  (random: SeededRandom): SensitiveValue => {
    const head = prefix(random)
    const payload = head + random.digits(length - head.length - 1)
    const number = payload + luhnDigit(payload)
    const separator = random.pick(['', '', ' ', ' ', '-'])
    return value('card', kind, grouped(number, groups, separator), CARD_NAMES, [
      'card_number',
      'pan',
      'cardNumber',
    ])
  }

export const CARDS: ValueMakers = Object.fromEntries(
  Object.entries(ISSUERS).map(([kind, found]) => [kind, cardOf(kind, found)]),
)

function grouped(text: string, groups: readonly number[], separator: string): string {
  const starts = groups.map((_, index) => groups.slice(0, index).reduce((sum, size) => sum + size, 0))
  return groups.map((size, index) => text.slice(starts[index], (starts[index] ?? 0) + size)).join(separator)
}

function value(
  type: SensitiveValue['type'],
  kind: string,
  text: string,
  names: Names,
  keys: readonly string[],
  needsName = false,
): SensitiveValue {
  return { type, kind, text, names, keys, needsName }
}

const IBAN_NAMES: Names = {
  en: ['IBAN', 'bank account', 'account'],
  de: ['IBAN', 'Kontoverbindung'],
  fr: ['IBAN', 'compte bancaire'],
  es: ['IBAN', 'cuenta bancaria'],
  it: ['IBAN', 'coordinate bancarie'],
  pt: ['IBAN', 'conta bancária'],
  nl: ['IBAN', 'rekeningnummer'],
  pl: ['IBAN', 'numer rachunku'],
}

/** Accounts without check digits of the country's own (SWIFT IBAN registry): `#` digit, `@` letter, `*` either. */
const PLAIN_ACCOUNTS: Record<string, string> = {
  DE: '#'.repeat(18),
  AT: '#'.repeat(16),
  CH: `${'#'.repeat(5)}${'*'.repeat(12)}`,
  GB: `@@@@${'#'.repeat(14)}`,
  IE: `@@@@${'#'.repeat(14)}`,
  NL: `@@@@${'#'.repeat(10)}`,
  SE: '#'.repeat(20),
  DK: '#'.repeat(14),
  LU: `###${'*'.repeat(13)}`,
  GR: `${'#'.repeat(7)}${'*'.repeat(16)}`,
  RO: `@@@@${'*'.repeat(16)}`,
  BG: `@@@@######${'*'.repeat(8)}`,
  LT: '#'.repeat(16),
  LV: `@@@@${'*'.repeat(13)}`,
  CY: `${'#'.repeat(8)}${'*'.repeat(16)}`,
  MT: `@@@@#####${'*'.repeat(18)}`,
  TR: `#####0${'*'.repeat(16)}`,
  SA: `##${'*'.repeat(18)}`,
  AE: '#'.repeat(19),
  IL: '#'.repeat(19),
  UA: `######${'*'.repeat(19)}`,
  KZ: `###${'*'.repeat(13)}`,
  LI: `#####${'*'.repeat(12)}`,
}

/** Accounts with check digits of their own, as the banks of the country describe them. */
const CHECKED_ACCOUNTS: Record<string, (random: SeededRandom) => string> = {
  BE: (random) => {
    const head = random.digits(10)
    return head + String(remainder(head, 97) || 97).padStart(2, '0')
  },
  ES: (random) => {
    const [bank, account] = [random.digits(8), random.digits(10)]
    const weights = [1, 2, 4, 8, 5, 10, 9, 7, 3, 6]
    const digit = (digits: string): number => {
      const left = 11 - (weightedSum(digits, weights) % 11)
      return left === 11 ? 0 : left === 10 ? 1 : left
    }
    return `${bank}${digit(`00${bank}`)}${digit(account)}${account}`
  },
  FR: frenchAccount,
  MC: frenchAccount,
  IT: italianAccount,
  SM: italianAccount,
  NO: (random) =>
    retry(() => {
      const head = random.digits(10)
      const left = 11 - (weightedSum(head, [5, 4, 3, 2, 7, 6, 5, 4, 3, 2]) % 11)
      return left === 10 ? null : head + String(left % 11)
    }),
  PT: (random) => {
    const head = random.digits(19)
    return head + String(98 - remainder(`${head}00`, 97)).padStart(2, '0')
  },
  FI: (random) => {
    const head = random.digits(13)
    return head + luhnDigit(head)
  },
  HU: (random) => {
    const check = (digits: string): number =>
      (10 - (weightedSum(digits, [9, 7, 3, 1, 9, 7, 3, 1, 9, 7, 3, 1, 9, 7, 3]) % 10)) % 10
    const [bank, account] = [random.digits(7), random.digits(15)]
    return `${bank}${check(bank)}${account}${check(account)}`
  },
  PL: (random) => {
    const bank = random.digits(7)
    const check = (10 - (weightedSum(bank, [3, 9, 7, 1, 3, 9, 7]) % 10)) % 10
    return `${bank}${check}${random.digits(16)}`
  },
  CZ: czechAccount,
  SK: czechAccount,
  SI: (random) => {
    const head = random.digits(13)
    return head + String(98 - remainder(`${head}00`, 97)).padStart(2, '0')
  },
  HR: (random) => {
    const [bank, account] = [random.digits(6), random.digits(9)]
    return bank + mod11And10Digit(bank) + account + mod11And10Digit(account)
  },
  EE: (random) => {
    const head = random.digits(15)
    const check = (10 - (weightedSum(head.slice(2), [7, 1, 3, 7, 1, 3, 7, 1, 3, 7, 1, 3, 7]) % 10)) % 10
    return head + String(check)
  },
}

function frenchAccount(random: SeededRandom): string {
  const [bank, branch, account] = [random.digits(5), random.digits(5), random.digits(11)]
  const key = 97 - ((89 * remainder(bank, 97) + 15 * remainder(branch, 97) + 3 * remainder(account, 97)) % 97)
  return `${bank}${branch}${account}${String(key).padStart(2, '0')}`
}

function italianAccount(random: SeededRandom): string {
  const odd = [1, 0, 5, 7, 9, 13, 15, 17, 19, 21]
  const numbers = random.digits(22)
  const sum = [...numbers].reduce(
    (total, digit, index) => total + (index % 2 === 0 ? (odd[Number(digit)] ?? 0) : Number(digit)),
    0,
  )
  return String.fromCharCode(65 + (sum % 26)) + numbers
}

/** Bank, prefix and account; the latter two have a weighted sum that 11 divides. */
function czechAccount(random: SeededRandom): string {
  const weights = [6, 3, 7, 9, 10, 5, 8, 4, 2, 1]
  const divisible = (width: number): string =>
    retry(() => {
      const digits = random.digits(width)
      return weightedSum(digits, weights.slice(-width)) % 11 === 0 ? digits : null
    })
  return random.digits(4) + divisible(6) + divisible(10)
}

function retry<Result>(attempt: () => Result | null): Result {
  for (let count = 0; count < 1_000; count++) {
    const result = attempt()
    if (result !== null) return result
  }
  throw new Error('no value fits')
}

const plainAccount = (form: string) => (random: SeededRandom) =>
  random.fill(form.replace(/\*/g, '[0123456789ABCDEFGHJKLMNPQRSTUVWXYZ]'))

const accounts: Record<string, (random: SeededRandom) => string> = {
  ...Object.fromEntries(
    Object.entries(PLAIN_ACCOUNTS).map(([country, form]) => [country, plainAccount(form)]),
  ),
  ...CHECKED_ACCOUNTS,
}

export const IBANS: ValueMakers = Object.fromEntries(
  Object.entries(accounts).map(([country, account]) => [
    country,
    (random: SeededRandom) => {
      const body = account(random)
      const compact = `${country}${ibanCheckDigits(country, body)}${body}`
      const spaced = compact.replace(/(.{4})(?=.)/g, '$1 ')
      const text = random.pick([compact, compact, spaced, spaced, spaced, compact.toLowerCase()])
      return value('iban', country, text, IBAN_NAMES, ['iban', 'bank_account', 'accountIban'])
    },
  ]),
)

const BIC_NAMES: Names = {
  en: ['BIC', 'SWIFT code', 'BIC/SWIFT', 'SWIFT'],
  de: ['BIC', 'SWIFT-Code'],
  fr: ['BIC', 'code SWIFT'],
  es: ['BIC', 'código SWIFT'],
  it: ['BIC', 'codice SWIFT'],
  pt: ['BIC', 'código SWIFT'],
  nl: ['BIC', 'SWIFT-code'],
  pl: ['BIC', 'kod SWIFT'],
}
const BIC_COUNTRIES = [
  'DE',
  'FR',
  'GB',
  'US',
  'ES',
  'IT',
  'NL',
  'BE',
  'CH',
  'AT',
  'PL',
  'SE',
  'JP',
  'SG',
  'BR',
]

export const BICS: ValueMakers = Object.fromEntries(
  BIC_COUNTRIES.map((country) => [
    country,
    (random: SeededRandom) => {
      const text = `${random.fill('@@@@')}${country}${random.fill('[2356789ABCDEFGHLMNPQRSTUVWXYZ][23456789ABCDEFGHLMNPQRSTUVWXYZ]')}`
      const branch = random.pick(['', '', 'XXX', random.fill('###')])
      return value('bic', country, text + branch, BIC_NAMES, ['bic', 'swift', 'swift_code'], true)
    },
  ]),
)

const ROUTING_NAMES: Names = { en: ['routing number', 'ABA', 'ABA routing number', 'routing no.'] }

/** Federal Reserve districts and the check of the American Bankers Association. */
export const ROUTING_NUMBERS: ValueMakers = {
  us: (random) => {
    const district = random.pick([
      '01',
      '02',
      '03',
      '04',
      '06',
      '07',
      '09',
      '10',
      '11',
      '12',
      '21',
      '26',
      '31',
      '32',
    ])
    const head = district + random.digits(6)
    const check = (10 - (weightedSum(head, [3, 7, 1, 3, 7, 1, 3, 7]) % 10)) % 10
    return value('us_routing', 'us', `${head}${check}`, ROUTING_NAMES, ['routing_number', 'aba'], true)
  },
}
