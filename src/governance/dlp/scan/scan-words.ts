import {
  ALPHANUMERIC, AT, classAt, DASH, DIGIT, DOT, GLUE, isDigitAt, isWordAt, LETTER, SLASH, UNDERSCORE, UPPER_LETTER,
} from '../detectors/characters.ts' // biome-ignore format: a list
import { isOfOtherColumn, isOtherNumber, isTimestamp } from '../detectors/context.ts'
import { isSolanaAddress, SOLANA, SOLANA_CONTEXT } from '../detectors/crypto-addresses.ts'
import { CARD, CARD_CONTEXT, IBAN, isCardNumber, readIban, startsIban } from '../detectors/financial.ts'
import { IP_ADDRESS, readIpv4 } from '../detectors/network.ts'
import { PHONE, readPhone } from '../detectors/phone.ts'
import { readSpacedDigits, startsNumber, walkShapes } from './number-shapes.ts'
import { LONGEST_WORD, type PlannedWord } from './plan.ts'
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
    if ((classes & (DIGIT | UPPER_LETTER)) !== 0 || standsApart(text, wordStart, index))
      scanWord(scan, wordStart, index)
    if (length >= 14) scanKeys(scan, wordStart, end)
  }
  return index
}

function scanNumber(scan: Scan, start: number): void {
  const { text, plan } = scan
  if (plan.numbers !== null) {
    const begins = startsNumber(text, start)
    if (begins !== 'no') walkNumber(scan, start, begins === 'doubtful')
    if (begins === 'yes' && !isDigitAt(text, start + 1)) scanSpacedCard(scan, start)
  }
  if (scan.covers(PHONE.id)) scanPhone(scan, start)
  if (text[start + 1] === '.' || text[start + 2] === '.' || text[start + 3] === '.') {
    if (scan.covers(IP_ADDRESS.id)) reportMatch(scan, IP_ADDRESS, readIpv4(text, start))
  }
}

/** Steps of the search for words before a value. */
const CONTEXT_STEPS = 512

function walkNumber(scan: Scan, start: number, doubtful: boolean): void {
  const { plan, surroundings } = scan
  if (plan.numbers === null) return
  walkShapes(plan.numbers, scan.text, start, (numbers, digits, end, isCutOut) => {
    for (const { detector, score, context } of numbers) {
      if (!detector.validate(digits)) continue
      scan.budget.spend(CONTEXT_STEPS)
      const before = surroundings.before(start)
      const named = context.test(before)
      // A word names the number that follows it next.
      const distant = named && !context.test(before.slice(-NEAR))
      let total = named ? Math.max(detector.contextScore - (distant ? 0.08 : 0), score) : score
      if (doubtful && !named) total -= DOUBT
      if (isCutOut) total -= STRONG_DOUBT
      if (isOtherNumber(before)) total -= named ? SLIGHT_DOUBT : DOUBT
      if (!named && isOrdinary(scan, start, end, detector.validate)) total -= STRONG_DOUBT
      scan.report(detector.id, start, end, total)
    }
  })
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
  if (!mayBePhone(text, start, digit)) return
  const follows = text[start - 1] === ' ' && isDigitAt(text, start - 2)
  if (text.startsWith('00', start) && isOfColumn(scan, start)) return
  reportMatch(scan, PHONE, readPhone(text, start, follows ? '' : scan.surroundings.before(start)))
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

/** Whether a group of digits can start a phone number: not inside of a token, of seven digits or more, and no date. */
function mayBePhone(text: string, start: number, digit: number): boolean {
  const before = classAt(text, start - 1)
  if ((before & (ALPHANUMERIC | UNDERSCORE | AT | SLASH)) !== 0) return false
  if ((before & (DOT | DASH)) !== 0 && (classAt(text, start - 2) & ALPHANUMERIC) !== 0) return false
  if (before === GLUE && /[$\\]/.test(text.charAt(start - 1))) return false
  if (text[digit] === '0' && text[digit + 1] === '.') return false
  if (text[digit + 4] === '-' && text[digit + 7] === '-' && isDigitAt(text, digit + 6)) return false
  let digits = 0
  let others = 0
  for (let index = digit; digits < 7 && others < 5; index++) {
    if (isDigitAt(text, index)) {
      digits++
      others = 0
    } else others += (classAt(text, index) & ~(DOT | DASH | SLASH)) === 0 || text[index] === '+' ? 1 : 5
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
  if ((length >= 4 || length === 1) && scan.covers(IBAN.id) && startsIban(text, start)) {
    const found = readIban(text, start)
    if (found !== 'open') reportMatch(scan, IBAN, found)
  }
  if (length >= 32 && length <= 44 && scan.covers(SOLANA.id) && isSolanaAddress(text.slice(start, end))) {
    const named = SOLANA_CONTEXT.test(scan.surroundings.before(start))
    scan.report(SOLANA.id, start, end, named ? 0.9 : 0.3)
  }
  if (length >= 25 && length <= LONGEST_COIN) {
    for (const coin of plan.coins) reportMatch(scan, coin, coin.find(text, start, end))
  }
}

function tryWord(scan: Scan, { detector, pattern, context }: PlannedWord, start: number): void {
  const { text } = scan
  pattern.lastIndex = start
  const match = pattern.exec(text)?.[0]
  if (match === undefined) return
  const before = text.charAt(start - 1)
  if (/[-_.]/.test(before) && (classAt(text, start - 2) & ALPHANUMERIC) !== 0) return
  const end = start + match.length
  if (isWordAt(text, end)) return
  if (/[-_]/.test(text.charAt(end)) && (classAt(text, end + 1) & ALPHANUMERIC) !== 0) return
  const words = scan.surroundings.before(start)
  const named = context.test(words)
  let score = named ? Math.max(detector.contextScore, detector.baseScore) : detector.baseScore
  if (score < (scan.plan.minimum.get(detector.id) ?? 2)) return
  if (!detector.validate(match)) return
  if (!named && isOtherNumber(words)) score -= DOUBT
  scan.report(detector.id, start, end, score)
}
