import { countrySpecs, isValidBIC } from 'ibantools'
import { classAt, gluedNameStart, isAlphanumericAt, isDigitAt, isWordAt, LETTER } from './characters.ts'
import { isArticleNumber, isUniform, luhn, remainder, weightedSum } from './checksums.ts'
import { contextPattern } from './context-words.ts'
import type { Match, NumberDetector, WordDetector } from './detector.ts'

/** Issuers' ranges: first digits from, to, and the lengths in use. Sources: the networks' own BIN rules; ISO/IEC 7812. */
const RANGES: readonly (readonly [from: string, to: string, lengths: string])[] = [
  ['4', '4', '13 16 18 19'], // Visa
  ['51', '55', '16'], // Mastercard
  ['2221', '2720', '16'],
  ['34', '34', '15'], // American Express
  ['37', '37', '15'],
  ['300', '305', '14 16 19'], // Diners Club
  ['3095', '3095', '14 16 19'],
  ['36', '36', '14 16 19'],
  ['38', '39', '14 16 19'],
  ['6011', '6011', '16 17 18 19'], // Discover
  ['644', '649', '16 17 18 19'],
  ['65', '65', '16 17 18 19'],
  ['62', '62', '16 17 18 19'], // UnionPay
  ['81', '82', '16 17 18 19'], // UnionPay, RuPay
  ['1800', '1800', '15'], // JCB
  ['2131', '2131', '15'],
  ['3528', '3589', '16 17 18 19'],
  ['3088', '3094', '16'], // JCB's older ranges
  ['3096', '3102', '16'],
  ['3112', '3120', '16'],
  ['3158', '3159', '15 16'],
  ['3337', '3349', '16'],
  ['2200', '2204', '16 17 18 19'], // Mir
  ['60', '60', '16'], // RuPay
  ['508', '508', '16'],
  ['9792', '9792', '16'], // Troy
  ['637', '639', '16'], // InstaPayment
  ['636', '636', '16 17 18 19'], // InterPayment
  ['357111', '357111', '16'], // LankaPay
  ['4571', '4571', '16'], // Dankort
  ['5019', '5019', '16'],
  ['506099', '506198', '16 18 19'], // Verve
  ['650002', '650027', '16 18 19'],
  ['606282', '606282', '16'], // Hipercard
  ['504175', '504175', '16'], // Elo
  ['636368', '636368', '16'],
  ['0604', '0604', '12 13 14 15 16 17 18 19'], // Maestro
  ['5018', '5018', '12 13 14 15 16 17 18 19'],
  ['5020', '5020', '12 13 14 15 16 17 18 19'],
  ['5038', '5038', '12 13 14 15 16 17 18 19'],
  ['5612', '5899', '12 13 14 15 16 17 18 19'],
  ['6304', '6304', '12 13 14 15 16 17 18 19'],
  ['6390', '6390', '12 13 14 15 16 17 18 19'],
  ['6703', '6709', '12 13 14 15 16 17 18 19'],
  ['6759', '6763', '12 13 14 15 16 17 18 19'],
  ['6771', '6771', '12 13 14 15 16 17 18 19'],
]

/** The ranges that start with each first digit. */
const rangesByDigit = Map.groupBy(
  RANGES.map(([from, to, lengths]) => ({
    low: Number(from),
    high: Number(to),
    size: from.length,
    from,
    lengths: lengths.split(' ').map(Number),
  })),
  (range) => range.from[0],
)

/** Whether digits have an issuer's prefix and length, and pass the Luhn formula. */
export function isCardNumber(digits: string): boolean {
  return isIssued(digits) && luhn(digits) && !isUniform(digits)
}

function isIssued(digits: string): boolean {
  for (const range of rangesByDigit.get(digits[0]) ?? []) {
    if (!range.lengths.includes(digits.length)) continue
    const prefix = Number(digits.slice(0, range.size))
    if (prefix >= range.low && prefix <= range.high) return true
  }
  return false
}

const CARD_GROUPS =
  '4 4 4 4, 4 6 5, 4 6 4, 4 4 4 4 3, 4 4 4 4 2, 4 4 4 4 1, 4 4 4, 4 4 4 1, 4 4 4 2, 4 4 4 3, ' +
  '4 4 5, 4 3 3 3, 4 5 4, 5 5 5, 4 4 7, 6 10, 6 13, 8 8, 3 3 3 4, 3 3 3 3, 6 6, 4 5 6, 5 4 5'

export const CARD = 'card'

const CARD_WORDS =
  'card, card number, card no, card num, credit, debit, visa, mastercard, amex, american express, ' +
  'discover, jcb, diners, maestro, unionpay, pan, cc, ccn, payment, kreditkarte, karte, ' +
  'kartennummer, carte, tarjeta, carta, cartao, cartão, kaart, cvv, cvc'
export const CARD_CONTEXT = contextPattern(CARD_WORDS)

const card: NumberDetector = {
  id: CARD,
  category: 'financial',
  description: 'Payment card number of 12 to 19 digits (issuer prefix, length, Luhn)',
  forms: {
    ...Object.fromEntries([...' -./'].map((sign) => [CARD_GROUPS.replace(/(?<!,) /g, sign), 0.9])),
    '14, 15, 16': 0.8,
    '12, 17, 18, 19': 0.6,
  },
  context: CARD_WORDS,
  contextScore: 0.98,
  validate: isCardNumber,
}

/** Article numbers (EAN) have 13 digits too, and some start like a card. */
const cardOfThirteenDigits = (score: number, isArticle: boolean): NumberDetector => ({
  ...card,
  forms: { '13': score },
  validate: (digits) => isCardNumber(digits) && isArticleNumber(digits) === isArticle,
})

export const cards: readonly NumberDetector[] = [
  card,
  cardOfThirteenDigits(0.6, false),
  cardOfThirteenDigits(0.35, true),
]

/** ABA routing numbers: the first two digits name the Federal Reserve district or kind; weights 3, 7, 1. */
export const routingNumber: NumberDetector = {
  id: 'aba_routing',
  category: 'financial',
  description: 'US bank routing number (ABA, nine digits with check digit), near a word that names it',
  forms: { '9': 0.35, '4-4-1': 0.55 },
  context: 'routing, aba, rtn, aba rtn, transit, wire, ach, routing transit',
  contextScore: 0.9,
  validate(digits) {
    const district = Number(digits.slice(0, 2))
    const known =
      (district >= 1 && district <= 12) ||
      (district >= 21 && district <= 32) ||
      (district >= 61 && district <= 72) ||
      district === 80
    return known && weightedSum(digits, [3, 7, 1, 3, 7, 1, 3, 7, 1]) % 10 === 0
  },
}

export const bic: WordDetector = {
  id: 'bic',
  category: 'financial',
  description: 'Bank identifier code (SWIFT, ISO 9362), near a word that names it',
  baseScore: 0.3,
  first: 'letter',
  lengths: [8, 11],
  pattern: /[A-Z]{4}[A-Z]{2}[A-Z0-9]{2}(?:[A-Z0-9]{3})?(?![A-Za-z0-9])/y,
  context: 'bic, swift, swift bic, bic code, swift code, swiftcode, bank identifier',
  contextScore: 0.9,
  validate: isValidBIC,
}

export const IBAN = {
  id: 'iban',
  category: 'financial',
  description: 'International bank account number of every country in the registry (ISO 13616, MOD 97-10)',
  baseScore: 0.95,
} as const

/** Longest IBAN, with three blanks in each gap. */
const LONGEST_IBAN = 34 * 4

/** Two letters and two digits, together or with blanks in each gap. */
const IBAN_START = /(?:[A-Z]{2}\d{2}|[A-Z] {1,3}[A-Z] {1,3}\d {1,3}\d)/iy
const GLUED_START = /[A-Z]{2}\d{2}/iy

/**
 * Whether an account number can start at `start`, also one that the text's end cuts, and also after its name in the
 * same word (`IBANDE89...`).
 */
export function startsIban(text: string, start: number): boolean {
  if (!isAsciiLetter(text, start)) return false
  if (isAlphanumericAt(text, start - 1)) {
    GLUED_START.lastIndex = start
    return GLUED_START.test(text) && gluedNameStart(text, start) >= 0
  }
  IBAN_START.lastIndex = start
  return IBAN_START.test(text) || (text.length - start < 12 && OPEN_IBAN_START.test(text.slice(start)))
}

const isAsciiLetter = (text: string, index: number): boolean => (classAt(text, index) & LETTER) !== 0

const OPEN_IBAN_START = /^[A-Z] {1,3}(?:[A-Z] {0,3}(?:\d {0,3})?)?$/i

/**
 * Reads an account number with or without separators where two letters and two digits start.
 * @returns the finding; `open` if the text ends before the country's length does; null for neither
 */
export function readIban(text: string, start: number): Match | 'open' | null {
  let length = 0
  let compact = ''
  let index = start
  while (index < text.length && index - start < LONGEST_IBAN) {
    compact += text[index]
    if (compact.length === 2) length = countrySpecs[compact.toUpperCase()]?.chars ?? 0
    if (compact.length === length || (compact.length >= 2 && length === 0)) break
    const next = separatorsEnd(text, ++index)
    if (next >= text.length) return 'open'
    if (!isAlphanumericAt(text, next)) return null
    index = next
  }
  const end = index + 1
  if (compact.length < length || length === 0 || isDigitAt(text, end)) return null
  const isGlued = isWordAt(text, end) || isWordAt(text, start - 1)
  return isIban(compact.toUpperCase()) ? { start, end, score: isGlued ? GLUED_SCORE : IBAN.baseScore } : null
}

/** The score of a number that letters adjoin: still more than that of a card in its groups. */
const GLUED_SCORE = 0.92

/**
 * The country's form and MOD 97-10. Check digits inside of the national part are not verified: issuers leave them out,
 * and a number that fails only these is still most likely an account.
 */
function isIban(compact: string): boolean {
  const form = countrySpecs[compact.slice(0, 2)]?.bban_regexp
  if (form === undefined || !new RegExp(form).test(compact.slice(4))) return false
  const digits = (compact.slice(4) + compact.slice(0, 4)).replace(
    /[A-Z]/g,
    (letter) => `${letter.charCodeAt(0) - 55}`,
  )
  return remainder(digits, 97) === 1
}

/** Up to three blanks, signs or line ends in a gap. */
function separatorsEnd(text: string, index: number): number {
  let end = index
  while (end - index < 3 && /[ \t\r\n._/-]/.test(text.charAt(end))) end++
  return end
}
