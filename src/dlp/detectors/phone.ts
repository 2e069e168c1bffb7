import { type CountryCode, parsePhoneNumberFromString } from 'libphonenumber-js/min'
import { digitIn, isAlphanumericAt, isDigitAt, isWordAt } from './characters.ts'
import { contextPattern, isOtherNumber } from './context-words.ts'
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
/**
 * Groups separated by underscores too, as in the name of a file. Tabs are in international numbers only: between others they
 * separate columns.
 */
const WITH_UNDERSCORES = /\(?\d{1,5}\)?(?:[ .\-/_]{0,3}\(?\d{1,12}\)?){0,9}/y
const WITH_TABS = /\+\d{1,5}(?:[ \t.\-/_]{0,3}\(?\d{1,12}\)?){0,9}/y
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
  /^(?:\d{4}[-/._]\d{1,2}[-/._]\d{1,2}|\d{1,2}[-/._]\d{1,2}[-/._]\d{2,4})(?:[ _-]\d{1,2})?$|^(?:19|20)\d{2}[ _-]+(?:19|20)\d{2}$/
const MONEY_OR_DECIMAL = /^\d{1,3}(?:[.,_]\d{3})+$|^\d+\.\d+$/

/** Countries whose national numbers have no leading 0, by number of digits. With a leading 0 the length suffices. */
const REGIONS: Record<number, readonly CountryCode[]> = {
  8: ['NO', 'DK', 'SG'],
  9: ['ES', 'PL', 'PT'],
  10: ['US', 'IN', 'MX', 'BR'],
  11: ['US', 'CN', 'BR'],
}

/**
 * Classifies the text before a phone number at `start`. `joined`: a letter or a sign ties it to another token, so that
 * its form alone does not make it one. `within`: it is part of another number, of an amount or of a path of code.
 */
export function phoneEdge(text: string, start: number): 'free' | 'joined' | 'within' {
  const before = text.charAt(start - 1)
  if (before === '') return 'free'
  if (isDigitAt(text, start - 1) || before === '$' || before === '\\') return 'within'
  if (isWordAt(text, start - 1) || before === '_' || before === '@' || before === '/') return 'joined'
  if ((before !== '.' && before !== '-') || !isAlphanumericAt(text, start - 2)) return 'free'
  return isDigitAt(text, start - 2) && text[start] !== '+' ? 'within' : 'joined'
}

/**
 * Reads the phone number that starts at `start`: a digit, `+` or `(` with no digit before it.
 * @param before the words before it, in lower case; none if they are about another number
 * @param joined whether it adjoins another token: then it is one with `+`, or if a word right before names it
 */
export function readPhone(text: string, start: number, before: string, joined = false): Match | null {
  const candidate = matchAt(CANDIDATE, text, start)
  if (candidate === '') return null
  const evidence = evidenceOf(candidate, before)
  if (evidence === 'none' || (joined && evidence !== 'international' && !isNamedNext(before))) return null
  const found =
    (evidence === 'form' ? null : readGroups(text, start, candidate.length, evidence)) ??
    (isStrong(evidence) ? readJoinedGroups(text, start, evidence) : null) ??
    (joined ? null : readForm(text, start))
  return found === null ? null : { ...found, end: withExtension(text, found.end) }
}

/** Whether a word names a number that adjoins a token: the token itself where letters adjoin, as in `tel030...`. */
const isNamedNext = (before: string): boolean =>
  NAMING.test((/[^\s,;:"'=|]{1,24}(?<=\p{L})$/u.exec(before) ?? [before.slice(-24)])[0] ?? '')

function matchAt(pattern: RegExp, text: string, start: number): string {
  pattern.lastIndex = start
  return pattern.exec(text)?.[0] ?? ''
}

const isStrong = (evidence: Evidence): boolean => evidence === 'international' || evidence === 'named'

/** A number whose groups are joined by what joins fields and names. */
function readJoinedGroups(text: string, start: number, evidence: Evidence): Match | null {
  const match = matchAt(evidence === 'international' ? WITH_TABS : WITH_UNDERSCORES, text, start)
  return /[_\t]/.test(match) ? readGroups(text, start, match.length, evidence) : null
}

/** The longest prefix of a run of groups that is a phone number; at most three groups are left out. */
function readGroups(text: string, start: number, length: number, evidence: Evidence): Match | null {
  let end = start + Math.min(length, LONGEST)
  if (isDigitAt(text, end)) while (end > start && isDigitAt(text, end - 1)) end--
  for (let attempt = 0; attempt < 4; attempt++) {
    end = trimEnd(text, start, end)
    if (end - start < 7) return null
    const score = scoreOf(text.slice(start, end), evidence)
    // A valid international number has its length.
    const isWhole = isBounded(text, end, isStrong(evidence)) || score === VALID_SCORE
    if (score > 0 && isWhole) return { start, end, score }
    while (end > start && isDigitAt(text, end - 1)) end--
  }
  return null
}

function readForm(text: string, start: number): Match | null {
  for (const form of [NORTH_AMERICAN, FRENCH, BRITISH]) {
    form.lastIndex = start
    if (form.test(text) && isBounded(text, form.lastIndex, false) && !isInRow(text, start, form.lastIndex)) {
      return { start, end: form.lastIndex, score: text[start] === '(' ? 0.75 : 0.6 }
    }
  }
  return null
}

/** Whether groups of digits go on after the same blank or sign, on either side: a row of numbers. */
const isInRow = (text: string, start: number, end: number): boolean =>
  (/[ .-]/.test(text.charAt(end)) && isDigitAt(text, end + 1)) ||
  (/[ .-]/.test(text.charAt(start - 1)) && isDigitAt(text, start - 2) && isDigitAt(text, start - 3))

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

/**
 * Whether a number can end here: it does not go on with digits after a sign.
 * @param strong whether more than its form makes it a number: then a token that adjoins it does not count
 */
function isBounded(text: string, end: number, strong: boolean): boolean {
  const after = text.charAt(end)
  if (/[._-]/.test(after) && isDigitAt(text, end + 1)) return strong && after === '_'
  if (isWordAt(text, end)) return strong && !digitIn(text, end, 1)
  // The ending of a file.
  if (strong || after === '.') return true
  return after !== '%' && !(/[_@-]/.test(after) && isAlphanumericAt(text, end + 1))
}

function withExtension(text: string, end: number): number {
  EXTENSION.lastIndex = end
  return EXTENSION.test(text) ? EXTENSION.lastIndex : end
}

function scoreOf(written: string, evidence: Evidence): number {
  const digits = written.replace(/\D/g, '')
  if (digits.length < 7 || digits.length > 15 || DATE_LIKE.test(written) || /^(\d)\1*$/.test(digits)) return 0
  const candidate = written.replace(/[_\t]/g, ' ')
  if (evidence === 'international') return scoreInternational(candidate, digits)
  if (candidate.startsWith('00') && digits.length > 9) {
    const parsed = parsePhoneNumberFromString(`+${digits.replace(/^00/, '')}`)
    if (parsed?.isValid()) return PHONE.baseScore
  }
  if (evidence === 'prefixed' || MONEY_OR_DECIMAL.test(written)) return 0
  if (evidence === 'named') return isPlausible(candidate, digits) ? 0.85 : 0
  return isKnownNational(candidate, digits) ? 0.7 : 0
}

/** The score of a valid number with `+`. */
const VALID_SCORE = 0.95

function scoreInternational(candidate: string, digits: string): number {
  if (digits.length < 8) return 0
  const parsed = parsePhoneNumberFromString(candidate.replace('(0)', ''))
  if (parsed?.isValid()) return VALID_SCORE
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
