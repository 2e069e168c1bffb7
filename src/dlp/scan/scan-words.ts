import {
  ALPHANUMERIC, classAt, DASH, DIGIT, DOT, firstDigit, isDigitAt, isWordAt, LETTER, SLASH, UNDERSCORE, UPPER_LETTER,
} from '../detectors/characters.ts' // biome-ignore format: a list
import { isOfOtherColumn, isOtherNumber, isTimestamp } from '../detectors/context-words.ts'
import { isSolanaAddress, SOLANA, SOLANA_CONTEXT } from '../detectors/crypto-addresses.ts'
import { CARD, CARD_CONTEXT, IBAN, isCardNumber, readIban, startsIban } from '../detectors/financial.ts'
import { IP_ADDRESS, readIpv4 } from '../detectors/network.ts'
import { PHONE, phoneEdge, readPhone } from '../detectors/phone.ts'
import { edgeAfter, edgeBefore, type NumberEdge } from './number-edges.ts'
import { placeInRow } from './number-rows.ts'
import { readSpacedDigits, type ShapeMatch, walkShapes } from './number-shapes.ts'
import { LONGEST_WORD, type PlannedNumber, type PlannedWord } from './plan.ts'
import { reportMatch, type Scan } from './scan.ts'
import { scanKeys } from './scan-tokens.ts'

/** Taken from the score of a number after another name, or in the middle of something. */
const DOUBT = 0.36
const SLIGHT_DOUBT = 0.2
const STRONG_DOUBT = 0.45
/** A word is near a number within this many units before it. */
const NEAR = 32
const LONGEST_COIN = 110

const BLANK = 0x20

/** Whether one letter stands before a blank, which begins an IBAN written letter by letter (`d e 8 9 ...`). */
export const standsApart = (text: string, start: number, end: number): boolean =>
  end - start === 1 && text.charCodeAt(end) === BLANK && (classAt(text, start) & LETTER) !== 0

/** No detector reads more of a word; the rest is skipped. */
const LONGEST_READ = 64 * 1024

/**
 * Scans the runs of letters and digits, from `from` on, within a run that has other characters as well.
 * @returns where the scan stopped: at `limit` or after the word there.
 */
export function scanWords(scan: Scan, from: number, start: number, end: number, limit = end): number {
  const { text } = scan
  const length = end - start
  let index = from
  // The rest of a word that was longer than the part before, and was read at its beginning.
  if (from > start && (classAt(text, from - 1) & ALPHANUMERIC) !== 0) {
    while (index < limit && (classAt(text, index) & ALPHANUMERIC) !== 0) index++
  }
  while (index < end && index < limit) {
    const wordStart = index
    let classes = 0
    while (index < end) {
      const found = classAt(text, index)
      if ((found & ALPHANUMERIC) === 0 || index - wordStart >= LONGEST_READ) break
      classes |= found
      index++
    }
    if (index === wordStart) {
      index++
      continue
    }
    if (isDigitAt(text, wordStart)) scanNumber(scan, wordStart)
    else if ((classes & DIGIT) !== 0) scanGluedNumber(scan, wordStart)
    if ((classes & (DIGIT | UPPER_LETTER)) !== 0 || standsApart(text, wordStart, index))
      scanWord(scan, wordStart, index)
    if (length >= 14) scanKeys(scan, wordStart, end)
  }
  return index
}

function scanNumber(scan: Scan, start: number): void {
  const { text, plan } = scan
  if (plan.numbers !== null) {
    const before = edgeBefore(text, start)
    walkNumber(scan, start, before)
    if (before === 'free' && !isDigitAt(text, start + 1)) scanSpacedCard(scan, start)
  }
  if (scan.covers(PHONE.id)) scanPhone(scan, start)
  if (text[start + 1] === '.' || text[start + 2] === '.' || text[start + 3] === '.') {
    if (scan.covers(IP_ADDRESS.id)) reportMatch(scan, IP_ADDRESS, readIpv4(text, start))
  }
}

/** A number right after its name: `card4111...`. The first digits of the word only, so that each word is tried once. */
function scanGluedNumber(scan: Scan, wordStart: number): void {
  const { text } = scan
  const start = firstDigit(text, wordStart)
  if (start < 0) return
  walkNumber(scan, start, 'glued')
  if (scan.covers(PHONE.id)) scanPhone(scan, start)
  if (scan.covers(IP_ADDRESS.id)) reportMatch(scan, IP_ADDRESS, readIpv4(text, start))
}

/** Steps of the search for words before a value. */
const CONTEXT_STEPS = 512

function walkNumber(scan: Scan, start: number, before: NumberEdge): void {
  const { plan, text } = scan
  if (plan.numbers === null) return
  for (const match of walkShapes(plan.numbers, text, start)) {
    const { end, digits, groups } = match
    const after = edgeAfter(text, end, groups === 1 ? digits.length : 0)
    if (groups === 1 && (before === 'inside' || after === 'inside')) continue
    for (const number of match.numbers) {
      if (number.detector.validate(digits)) reportNumber(scan, start, number, match, [before, after])
    }
  }
}

/**
 * Reports digits that pass the check of a detector. Their own groups, or a word that names them, decide: what adjoins
 * them counts only against digits in one group that no word names, and where it makes them part of a longer number.
 */
function reportNumber(
  scan: Scan,
  start: number,
  { detector, score, context }: PlannedNumber,
  { end, groups, lastStart, joinsFields }: ShapeMatch,
  edges: readonly NumberEdge[],
): void {
  const { text, surroundings } = scan
  scan.budget.spend(CONTEXT_STEPS)
  const words = surroundings.before(start)
  const named = context.test(words)
  // A word names the number that follows it next.
  const distant = named && !context.test(words.slice(-NEAR))
  const place = placeInRow(text, start, end, groups, lastStart)
  let total = named ? Math.max(detector.contextScore - (distant ? 0.08 : 0), score) : score
  if (place === 'within') total -= STRONG_DOUBT
  if (isOtherNumber(words)) total -= named ? SLIGHT_DOUBT : DOUBT
  if (named) total -= groups === 1 && edges.includes('glued') ? DOUBT : 0
  else {
    if (place === 'atAnEnd') total -= DOUBT
    if (edges.some((edge) => edge !== 'free' && (groups === 1 || edge !== 'joined'))) total -= DOUBT
    if (joinsFields) total -= groups === 2 ? STRONG_DOUBT : SLIGHT_DOUBT
    if (isOrdinary(scan, start, end, detector.validate)) total -= STRONG_DOUBT
  }
  scan.report(detector.id, start, end, total)
}

/** Whether digits are a timestamp, or look like others around them that fail the check of the detector. */
function isOrdinary(
  { text, surroundings }: Scan,
  start: number,
  end: number,
  validate: (digits: string) => boolean,
): boolean {
  const number = text.slice(start, end)
  return (
    isTimestamp(number) || isOfOtherColumn(text, surroundings.windowStart(start), start, number, validate)
  )
}

/** A card written digit by digit: `4 1 1 1 - 1 1 ...`. */
function scanSpacedCard(scan: Scan, start: number): void {
  const { text, surroundings } = scan
  const found = scan.covers(CARD) ? readSpacedDigits(text, start) : null
  if (found === null || !isCardNumber(found.digits)) return
  if (isOrdinary(scan, start, found.end, isCardNumber)) return
  // A higher score than that of a phone number in the first digits.
  scan.report(CARD, start, found.end, CARD_CONTEXT.test(surroundings.before(start)) ? 0.96 : 0.75)
}

function scanPhone(scan: Scan, digit: number): void {
  const { text } = scan
  let start = digit
  if (text[start - 1] === '(') start--
  if (text[start - 1] === '+') start--
  const before = phoneEdge(text, start)
  if (before === 'within' || !mayBePhone(text, digit)) return
  const follows = text[start - 1] === ' ' && isDigitAt(text, start - 2)
  if (text.startsWith('00', start) && isOfColumn(scan, start)) return
  const words = follows ? '' : scan.surroundings.before(start)
  reportMatch(scan, PHONE, readPhone(text, start, words, before === 'joined'))
}

/** ITU-T E.164, with the prefix of an international call. */
const MOST_PHONE_DIGITS = 20

/** Whether the lines before have numbers of as many digits that do not start with 00. */
function isOfColumn({ text, surroundings }: Scan, start: number): boolean {
  let end = start
  while (isDigitAt(text, end) && end - start <= MOST_PHONE_DIGITS) end++
  if (end - start > MOST_PHONE_DIGITS) return false
  const isForeign = (digits: string): boolean => digits.startsWith('00')
  return isOfOtherColumn(text, surroundings.windowStart(start), start, text.slice(start, end), isForeign)
}

/** Whether a group of digits can start a phone number: of seven digits or more, and no date. */
function mayBePhone(text: string, digit: number): boolean {
  if (text[digit] === '0' && text[digit + 1] === '.') return false
  if (text[digit + 4] === '-' && text[digit + 7] === '-' && isDigitAt(text, digit + 6)) return false
  let digits = 0
  let others = 0
  for (let index = digit; digits < 7 && others < 5; index++) {
    if (isDigitAt(text, index)) {
      digits++
      others = 0
    } else
      others +=
        (classAt(text, index) & ~(DOT | DASH | SLASH | UNDERSCORE)) === 0 || text[index] === '+' ? 1 : 5
  }
  return digits >= 7
}

/** A run of letters and digits alone. */
export function scanWord(scan: Scan, start: number, end: number): void {
  const { text, plan } = scan
  const length = end - start
  if (plan.words !== null && length <= LONGEST_WORD) {
    const byFirst = plan.words[isDigitAt(text, start) ? 1 : 0]
    for (const word of byFirst?.[length] ?? []) tryWord(scan, word, start)
  }
  if ((length >= 4 || length === 1) && scan.covers(IBAN.id)) scanIban(scan, start)
  if (length >= 32 && length <= 44 && scan.covers(SOLANA.id) && isSolanaAddress(text.slice(start, end))) {
    const named = SOLANA_CONTEXT.test(scan.surroundings.before(start))
    scan.report(SOLANA.id, start, end, named ? 0.9 : 0.3)
  }
  if (length >= 25 && length <= LONGEST_COIN) {
    for (const coin of plan.coins) reportMatch(scan, coin, coin.find(text, start, end))
  }
}

/** An account number at the beginning of a word, or after the letters of its name there. */
function scanIban(scan: Scan, wordStart: number): void {
  const { text } = scan
  for (const start of [wordStart, firstDigit(text, wordStart) - 2]) {
    if (start < wordStart || !startsIban(text, start)) continue
    const found = readIban(text, start)
    if (found === null) continue
    if (found !== 'open') reportMatch(scan, IBAN, found)
    return
  }
}

function tryWord(scan: Scan, { detector, pattern, context }: PlannedWord, start: number): void {
  const { text } = scan
  pattern.lastIndex = start
  const match = pattern.exec(text)?.[0]
  if (match === undefined) return
  const end = start + match.length
  const words = scan.surroundings.before(start)
  const named = context.test(words)
  let score = named ? Math.max(detector.contextScore, detector.baseScore) : detector.baseScore
  if (score < (scan.plan.minimum.get(detector.id) ?? 2)) return
  const edge = wordEdge(text, start, end, match)
  if (!named && edge === 'within') return
  if (!detector.validate(match)) return
  if (!named && (edge !== 'free' || isOtherNumber(words))) score -= DOUBT
  scan.report(detector.id, start, end, score)
}

/** Whether a sign or an accented letter ties a value to other tokens; `within`: a sign that it has itself. */
function wordEdge(text: string, start: number, end: number, match: string): 'free' | 'joined' | 'within' {
  const [before, after] = [text.charAt(start - 1), text.charAt(end)]
  const joinedBefore = /[-_.]/.test(before) && (classAt(text, start - 2) & ALPHANUMERIC) !== 0
  const joinedAfter = /[-_]/.test(after) && (classAt(text, end + 1) & ALPHANUMERIC) !== 0
  if ((joinedBefore && match.includes(before)) || (joinedAfter && match.includes(after))) return 'within'
  return joinedBefore || joinedAfter || isWordAt(text, end) ? 'joined' : 'free'
}
