import type { Slices } from '../../lib/slices.ts'
import {
  ALPHANUMERIC, AT, COLON, classAt, DASH, DIGIT, DOT, EQUALS, GLUE, indexWithin, LETTER, LOWER_LETTER, SLASH, UNDERSCORE, UPPER_LETTER,
} from '../detectors/characters.ts' // biome-ignore format: a list
import { Surroundings } from '../detectors/context-words.ts'
import type { Match } from '../detectors/detector.ts'
import { EMAIL, readEmail } from '../detectors/network.ts'
import { SecretHints } from '../detectors/secrets.ts'
import { type DecodedText, scanDecoded, scanEncoded } from './nested.ts'
import type { Plan } from './plan.ts'
import type { Reading } from './reading.ts'
import { scanBlocks } from './scan-blocks.ts'
import type { ScanBudget } from './scan-budget.ts'
import {
  CLOSING_MARKS,
  lookForHints,
  OPENING_MARKS,
  scanAssignment,
  scanColons,
  scanNames,
  scanSignedTokens,
  scanToken,
} from './scan-tokens.ts'
import { scanWord, scanWords, standsApart } from './scan-words.ts'

/** Receives a finding, in units of the reading. */
export type Report = (detector: string, start: number, end: number, score: number) => void

/** A scan of one reading. */
export interface Scan {
  text: string
  plan: Plan
  surroundings: Surroundings
  report: Report
  /** Whether the profile has a rule for a detector. */
  covers(detector: string): boolean
  /** Levels of encoded texts around this one. */
  depth: number
  budget: ScanBudget
  /** Encoded texts that were found, and are scanned next. */
  decoded: DecodedText[]
  /** Encoded texts before this index have been scanned. */
  encodedEnd: number
  /** Whether the text has a word for secrets; undefined until it is needed. */
  mentionsSecrets: boolean | undefined
  /** Finds such words from left to right. */
  hints: SecretHints
  /** Lines of encoded text before this index have been joined. */
  linesEnd: number
  /** Where signed tokens may start, which are read next. */
  signedTokens: number[]
  /** Addresses before this index have been read. */
  addressesEnd: number
  /** Whether the search for names is within a run that is too long for one. */
  isInLongName: boolean
}

/** Reports what a detector read, if it read anything. */
export function reportMatch(scan: Scan, { id }: { id: string }, match: Match | null): void {
  if (match !== null) scan.report(id, match.start, match.end, match.score)
}

/** Shorter tokens hold no key, address or encoded text. */
const SHORTEST_TOKEN = 16
const SPECIAL = DIGIT | DOT | AT | COLON | DASH | UNDERSCORE | SLASH | EQUALS | GLUE

/** Units after which steps are counted. */
const COUNTED_UNITS = 1024
/** Steps of processing a finding, which takes about as long as reading so many units. */
const FINDING_STEPS = 32

/** Walks over a reading once, and passes each part to the detectors that can match there. */
export function* scanReading(
  reading: Reading,
  plan: Plan,
  depth: number,
  report: Report,
  budget: ScanBudget,
): Slices<void> {
  const scan: Scan = {
    text: reading.text,
    plan,
    surroundings: new Surroundings(reading),
    report(detector, start, end, score) {
      budget.pace(FINDING_STEPS)
      report(detector, start, end, score)
    },
    depth,
    budget,
    decoded: [],
    encodedEnd: 0,
    linesEnd: 0,
    signedTokens: [],
    addressesEnd: 0,
    isInLongName: false,
    mentionsSecrets: undefined,
    hints: new SecretHints(reading.text),
    covers: (detector) => plan.minimum.has(detector),
  }
  yield* scanBlocks(scan)
  const { text, decoded } = scan
  let index = 0
  let counted = 0
  while (index < text.length) {
    if (index - counted >= COUNTED_UNITS) {
      budget.spend(index - counted)
      counted = index
      if (budget.endsSlice()) yield
    }
    const start = index
    let classes = 0
    for (;;) {
      const found = classAt(text, index)
      if (found === 0) break
      classes |= found
      index++
      if (index - counted < LONG_RUN) continue
      budget.spend(index - counted)
      counted = index
      if (budget.endsSlice()) yield
    }
    if (index === start) {
      index++
      continue
    }
    if (index - start >= LONG_RUN) yield* scanLongRun(scan, start, index, classes)
    else if ((classes & SPECIAL) !== 0 || index - start >= SHORTEST_TOKEN) {
      if ((classes & (COLON | EQUALS)) !== 0) yield* lookForHints(scan)
      scanRun(scan, start, index, classes)
      if (mayEncode(start, index, classes)) yield* scanEncoded(scan, start, index)
    } else if ((classes & LOWER_LETTER) === 0 || standsApart(text, start, index)) scanWord(scan, start, index)
    if (scan.signedTokens.length > 0) yield* scanSignedTokens(scan)
    for (let next = decoded.pop(); next !== undefined; next = decoded.pop()) yield* scanDecoded(scan, next)
  }
  budget.spend(index - counted + SCAN_STEPS)
}

/** Steps that a scan takes before its first unit. */
const SCAN_STEPS = 16

const mayEncode = (start: number, end: number, classes: number): boolean =>
  (classes & (UPPER_LETTER | DIGIT)) !== 0 && end - start >= SHORTEST_TOKEN

/** A run of characters without blanks, quotes or brackets. */
function scanRun(scan: Scan, start: number, end: number, classes: number): void {
  const { text } = scan
  // The last word of a sentence.
  if (
    (classes & ~(LETTER | DOT)) === 0 &&
    end - start < SHORTEST_TOKEN &&
    firstDot(text, start, end) === end - 1
  ) {
    if ((classes & LOWER_LETTER) === 0) scanWord(scan, start, end - 1)
    return
  }
  scanWordsOrLast(scan, start, end, classes)
  for (const { classes: needed, scan: search } of SEARCHES) {
    if ((classes & needed) !== 0) search(scan, start, end, end)
  }
  if (end - start >= 6) scanToken(scan, start, end, classes)
}

/** @returns where the search stopped: at `limit` or after what it read there. */
type Search = (scan: Scan, from: number, end: number, limit: number) => number

/** The searches in a run, one after another, by the characters of which it has to have one. */
const SEARCHES: ReadonlyArray<{ classes: number; scan: Search }> = [
  { classes: AT, scan: scanEmails },
  { classes: COLON, scan: scanColons },
  { classes: COLON | EQUALS, scan: scanAssignment },
  { classes: DOT, scan: scanNames },
]

function scanWordsOrLast(scan: Scan, start: number, end: number, classes: number): void {
  if ((classes & (DIGIT | UPPER_LETTER)) !== 0) scanWords(scan, start, start, end)
  else if ((classAt(scan.text, end - 2) & ALPHANUMERIC) === 0 && standsApart(scan.text, end - 1, end)) {
    scanWord(scan, end - 1, end)
  }
}

/** A run of more than a slice, such as an encoded file: other requests have their turn within each search. */
function* scanLongRun(scan: Scan, start: number, end: number, classes: number): Slices<void> {
  const { text } = scan
  yield* lookForHints(scan)
  if ((classes & (DIGIT | UPPER_LETTER)) === 0) scanWordsOrLast(scan, start, end, classes)
  else yield* inParts(scan, start, end, (from, limit) => scanWords(scan, from, start, end, limit))
  for (const { classes: needed, scan: search } of SEARCHES) {
    if ((classes & needed) === 0) continue
    yield* inParts(scan, start, end, (from, limit) => search(scan, from, end, limit))
  }
  const tokenStart = yield* OPENING_MARKS.runEndInSlices(text, start, end)
  const tokenEnd = yield* CLOSING_MARKS.runStartInSlices(text, end, tokenStart)
  scanToken(scan, tokenStart, tokenEnd, classes)
  if (mayEncode(start, end, classes)) yield* scanEncoded(scan, start, end)
  yield
}

/** Repeats a search that stops at a limit, until it has come to the end. */
function* inParts(
  scan: Scan,
  start: number,
  end: number,
  search: (from: number, limit: number) => number,
): Slices<void> {
  const { budget } = scan
  for (let from = start; from < end; ) {
    const next = search(from, Math.min(end, from + PART_UNITS))
    budget.pace(next - from)
    from = next
    if (scan.signedTokens.length > 0) yield* scanSignedTokens(scan)
    if (budget.endsSlice()) yield
  }
}

const LONG_RUN = 8 * 1024
/** Units that one search reads before the steps are looked at. */
const PART_UNITS = 4 * 1024

/** Searched within the run only: the next dot of the text may be far away. */
function firstDot(text: string, start: number, end: number): number {
  let index = start
  while (index < end && text[index] !== '.') index++
  return index
}

/** Steps of reading what is around an at sign. */
const EMAIL_STEPS = 128

function scanEmails(scan: Scan, from: number, end: number, limit: number): number {
  if (!scan.covers(EMAIL.id)) return end
  const { text } = scan
  for (let at = indexWithin(text, '@', from, limit); at >= 0; at = indexWithin(text, '@', at + 1, limit)) {
    scan.budget.pace(EMAIL_STEPS)
    reportMatch(scan, EMAIL, readEmail(text, at))
  }
  return limit
}
