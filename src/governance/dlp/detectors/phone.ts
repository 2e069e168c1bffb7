import { type CountryCode, parsePhoneNumberFromString } from 'libphonenumber-js/min'
import { isAlphanumericAt, isDigitAt, isWordAt } from './characters.ts'
import { contextPattern, isOtherNumber } from './context.ts'
import type { Match, ScoredDetector } from './detector.ts'

export const PHONE: ScoredDetector = {
  id: 'phone',
  category: 'contact',
  description: 'Phone number with +, in a common written form, or near a word that names it',
  baseScore: 0.9,
}

/** Words that name phone numbers only. The long ones also match at the end of a word, as in `contactPhone`. */
const NAMING = new RegExp(
  `(?:phone|mobile|telefon|telefone|téléphone|teléfono|telemóvel|telemovel|telefoon|whatsapp)(?:s|no|nr|num|number|nummer)?(?![a-z]{2})|${
    contextPattern(
      'phones, telephone, tel, tel no, tél, mob, cell, cellphone, cellular, fax, sms, landline, ' +
        'hotline, helpline, telefonnummer, handy, handynummer, mobil, mobilnummer, rufnummer, ' +
        'festnetz, portable, telefono, móvil, movil, celular, cellulare, telefoonnummer, mobiel, ' +
        'puhelin, telefonnr, komórka, phone number, contact number, my number, ph, callback, ' +
        'voicemail, pager, toll free, nr tel, numer telefonu, 电话, 手机, 電話, 携帯, 전화, 휴대폰, телефон, тел',
    ).source
  }`,
)
/** Words that have other uses too, so the number has to be a valid one of a country. */
const SUGGESTING = contextPattern(
  'call, calls, called, calling, dial, text, ring, contact, reach, reached, number, ext, numéro, ' +
    'número, numero, nummer, anrufen, erreichbar, erreichen, llamar, appeler, phoned, texted, line, ' +
    'reply, tollfree, support, customer service, hit me up, give me a, message me, verify, office',
)

const CANDIDATE = /(?:\+|00|011[ -]?)?\(?\d{1,5}\)?(?:[ .\-/]{0,3}\(?\d{1,12}\)?){0,9}/y
const EXTENSION = /(?: ?(?:x|ext\.?|extension|#) ?)\d{1,6}(?![A-Za-z0-9])/iy
/** Matches a text that more text can continue as an extension. */
export const OPEN_EXTENSION =
  /\d\)? ?(?:x|e|ex|ext\.?|exte|exten|extens|extensi|extensio|extension|#)? ?\d{0,6}$/i

const LONGEST = 30
/** Forms that need no word before them; sticky. */
const NORTH_AMERICAN = /(?:1[ .-]?)?(?:\([2-9]\d{2}\) ?|[2-9]\d{2}[.-])[2-9]\d{2}[ .-]\d{4}/y
const FRENCH = /0[1-79]([ .-])\d{2}(?:\1\d{2}){3}/y
const BRITISH = /(?:0(?:20|1\d1|11\d) \d{3,4} \d{4}|0[17]\d{3} \d{3} ?\d{3}|\(0\d{2,4}\) ?\d{3,4} ?\d{4})/y
const DATE_LIKE =
  /^(?:\d{4}[-/.]\d{1,2}[-/.]\d{1,2}|\d{1,2}[-/.]\d{1,2}[-/.]\d{2,4})(?:[ -]\d{1,2})?$|^(?:19|20)\d{2}[ -]+(?:19|20)\d{2}$/
const MONEY_OR_DECIMAL = /^\d{1,3}(?:[.,]\d{3})+$|^\d+\.\d+$/

/** By number of digits: countries whose national numbers have no leading 0. With a leading 0 the length suffices. */
const REGIONS: Record<number, readonly CountryCode[]> = {
  8: ['NO', 'DK', 'SG'],
  9: ['ES', 'PL', 'PT'],
  10: ['US', 'IN', 'MX', 'BR'],
  11: ['US', 'CN', 'BR'],
}

/**
 * Reads the phone number that starts at `start`: a digit, `+` or `(` with no digit before it.
 * @param before the words before it, in lower case; none if they are about another number
 */
export function readPhone(text: string, start: number, before: string): Match | null {
  CANDIDATE.lastIndex = start
  const match = CANDIDATE.exec(text)
  if (match === null || digitsIn(match[0]) < 7) return null
  const evidence = evidenceOf(match[0], before)
  if (evidence === 'none') return null
  const found = evidence === 'form' ? null : readGroups(text, start, match[0].length, evidence)
  const seen = found ?? readForm(text, start)
  return seen === null ? null : { ...seen, end: withExtension(text, seen.end) }
}

/** The longest prefix of a run of groups that is a phone number; at most three groups are left out. */
function readGroups(text: string, start: number, length: number, evidence: Evidence): Match | null {
  let end = start + Math.min(length, LONGEST)
  if (isDigitAt(text, end)) while (end > start && isDigitAt(text, end - 1)) end--
  for (let attempt = 0; attempt < 4; attempt++) {
    end = trimEnd(text, start, end)
    if (end - start < 7) return null
    const score = isBounded(text, end) ? scoreOf(text.slice(start, end), evidence) : 0
    if (score > 0) return { start, end, score }
    while (end > start && isDigitAt(text, end - 1)) end--
  }
  return null
}

function readForm(text: string, start: number): Match | null {
  for (const form of [NORTH_AMERICAN, FRENCH, BRITISH]) {
    form.lastIndex = start
    if (form.test(text) && isBounded(text, form.lastIndex) && !isInRow(text, start, form.lastIndex)) {
      return { start, end: form.lastIndex, score: text[start] === '(' ? 0.75 : 0.6 }
    }
  }
  return null
}

/** Whether groups of digits go on after the same blank or sign, on either side: a row of numbers. */
const isInRow = (text: string, start: number, end: number): boolean =>
  (/[ .-]/.test(text.charAt(end)) && isDigitAt(text, end + 1)) ||
  (/[ .-]/.test(text.charAt(start - 1)) && isDigitAt(text, start - 2) && isDigitAt(text, start - 3))

function digitsIn(text: string): number {
  let count = 0
  for (let index = 0; index < text.length; index++) if (isDigitAt(text, index)) count++
  return count
}

type Evidence = 'international' | 'prefixed' | 'named' | 'suggested' | 'form' | 'none'

function evidenceOf(candidate: string, before: string): Evidence {
  if (candidate.startsWith('+')) return 'international'
  if (isOtherNumber(before) && !NAMING.test(before.slice(-24))) return 'none'
  if (NAMING.test(before.slice(-60))) return 'named'
  if (SUGGESTING.test(before.slice(-40))) return 'suggested'
  if (candidate.startsWith('00')) return 'prefixed'
  return /[ .()-]/.test(candidate) ? 'form' : 'none'
}

/** Whether words before a number name it, or suggest, a phone number. */
export const announcesPhone = (before: string): boolean =>
  NAMING.test(before.slice(-60)) || SUGGESTING.test(before.slice(-40))

function trimEnd(text: string, start: number, end: number): number {
  while (end > start && !isDigitAt(text, end - 1)) end--
  const opened = text.slice(start, end).lastIndexOf('(')
  if (opened > 0 && !text.slice(start + opened, end + 1).includes(')'))
    return trimEnd(text, start, start + opened)
  return end
}

const isBounded = (text: string, end: number): boolean =>
  !isWordAt(text, end) &&
  !(/[._@-]/.test(text.charAt(end)) && isAlphanumericAt(text, end + 1)) &&
  text[end] !== '%'

function withExtension(text: string, end: number): number {
  EXTENSION.lastIndex = end
  return EXTENSION.test(text) ? EXTENSION.lastIndex : end
}

function scoreOf(candidate: string, evidence: Evidence): number {
  const digits = candidate.replace(/\D/g, '')
  if (digits.length < 7 || digits.length > 15 || DATE_LIKE.test(candidate) || /^(\d)\1*$/.test(digits))
    return 0
  if (evidence === 'international') return scoreInternational(candidate, digits)
  if (candidate.startsWith('00') && digits.length > 9) {
    const parsed = parsePhoneNumberFromString(`+${digits.replace(/^00/, '')}`)
    if (parsed?.isValid()) return PHONE.baseScore
  }
  if (evidence === 'prefixed' || MONEY_OR_DECIMAL.test(candidate)) return 0
  if (evidence === 'named') return isPlausible(candidate, digits) ? 0.85 : 0
  return isKnownNational(candidate, digits) ? 0.7 : 0
}

function scoreInternational(candidate: string, digits: string): number {
  if (digits.length < 8) return 0
  const parsed = parsePhoneNumberFromString(candidate.replace('(0)', ''))
  if (parsed?.isValid()) return 0.95
  return parsed?.isPossible() || /^\+1\D/.test(candidate) ? 0.75 : 0
}

/** Seven digits need a separator: `555-1234`. */
function isPlausible(candidate: string, digits: string): boolean {
  if (digits.length < 8) return /^\d{3}[ .-]\d{4}$/.test(candidate)
  return !/^(?:19|20)\d{6}$/.test(candidate)
}

function isKnownNational(candidate: string, digits: string): boolean {
  if (digits.startsWith('0')) return digits.length >= 9 && digits.length <= 12
  const regions = REGIONS[digits.length] ?? []
  return regions.some((region) => parsePhoneNumberFromString(candidate, region)?.isValid() === true)
}
