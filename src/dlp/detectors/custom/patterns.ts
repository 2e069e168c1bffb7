import { RE2JS } from 're2js'
import type { Slices } from '../../../lib/slices.ts'
import { extentOf } from './pattern-extent.ts'

/**
 * A pattern that this engine does not support; the message is for its author.
 * @internal Tests expect it.
 */
export class PatternError extends Error {
  constructor(message: string) {
    super(message)
    this.name = 'PatternError'
  }
}

export interface CompiledPattern {
  matcher: RE2JS
  /** Most UTF-16 units of a match; null without a bound: then a stream is held back to its end. */
  longest: number | null
  /** Matches a text whose end can begin a match; null where no such pattern could be derived. */
  beginning: RE2JS | null
  /** Whether each match ends where its last repeated character does, so that finding all matches takes linear time. */
  endsItself: boolean
}

const LONGEST_SOURCE = 512
/** A state machine of this many instructions is still small; `(a{1000}){1000}` is not. */
const LARGEST_PROGRAM = 5000

/** Syntax of JavaScript and Perl that RE2 lacks, with the message for it. */
const UNSUPPORTED: readonly (readonly [RegExp, string])[] = [
  [
    /\(\?<?[=!]/,
    'look-ahead and look-behind are not supported, because they cannot be matched in linear time',
  ],
  [
    /(?:^|[^\\])(?:\\\\)*\\[1-9]|\\k[<{]/,
    'back-references are not supported, because they cannot be matched in linear time',
  ],
  [
    /\(\?>|[*+?}]\+/,
    'atomic groups and possessive quantifiers are not supported; matching never backtracks, so they are not needed',
  ],
  [/\(\?(?:\(|R|0|&|P[>=])/, 'conditions and recursion are not supported'],
]

/**
 * Compiles a customer's pattern (RE2 syntax, matched in linear time).
 * @param flags `i` for either case; `m` and `s` as in RE2
 * @throws PatternError with what is wrong, in words for the pattern's author
 */
export function compilePattern(source: string, flags = ''): CompiledPattern {
  if (source === '') throw new PatternError('the pattern is empty')
  if (source.length > LONGEST_SOURCE)
    throw new PatternError(`the pattern is longer than ${LONGEST_SOURCE} characters`)
  if (/[^ims]/.test(flags)) throw new PatternError('the flags of a pattern are i, m and s')
  for (const [sign, reason] of UNSUPPORTED) if (sign.test(source)) throw new PatternError(reason)
  const matcher = compile(source, flags)
  if (matcher.programSize() > LARGEST_PROGRAM)
    throw new PatternError('the pattern is too large; use smaller repetitions')
  if (matcher.matches(''))
    throw new PatternError('the pattern matches the empty text, so it would match everywhere')
  const { longest, endsItself, beginnings } = extentOf(source)
  // A combining mark can change the letter before it, which does not matter to patterns of ASCII only.
  const known = longest !== null && beginnings !== '' && /^[\x20-\x7e]*$/.test(source)
  const beginning = known ? compileBeginning(beginnings, flags) : null
  return { matcher, longest, beginning, endsItself }
}

function compileBeginning(beginnings: string, flags: string): RE2JS | null {
  try {
    const matcher = compile(`(?:${beginnings})\\z`, flags)
    return matcher.programSize() > 4 * LARGEST_PROGRAM ? null : matcher
  } catch {
    return null
  }
}

/**
 * The first unit of a text from which more text can make a match; the text's length if there is none. For a pattern
 * without bound, 0.
 */
export function openMatch({ longest, beginning }: CompiledPattern, text: string): number {
  if (longest === null) return 0
  // `longest` units are one more than an open match has: a condition such as \b at its end depends on the next unit.
  const from = Math.max(0, text.length - longest)
  if (beginning === null) return from
  const matcher = beginning.matcher(text.slice(from))
  return matcher.find() ? from + matcher.start() : text.length
}

function compile(source: string, flags: string): RE2JS {
  let bits = 0
  if (flags.includes('i')) bits |= RE2JS.CASE_INSENSITIVE
  if (flags.includes('m')) bits |= RE2JS.MULTILINE
  if (flags.includes('s')) bits |= RE2JS.DOTALL
  try {
    return RE2JS.compile(source, bits)
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error)
    throw new PatternError(`the pattern is not valid: ${reason.replace(/^error parsing regexp: /, '')}`)
  }
}

/** Matches of a pattern whose searches may each read to the text's end; more where the text is short. */
const MOST_FAR_READING_MATCHES = 32
const MOST_READING = 4_000_000

/** Where matches of a pattern begin and end. */
interface FoundMatch {
  start: number
  end: number
}

/** Units that are searched in one slice, for patterns whose matches have a bound. */
const PART_UNITS = 16 * 1024

/**
 * All matches from `from` on, left to right. A pattern whose every search may read to the text's end would take
 * quadratic time for many matches; after 32 (in short texts more) all from the next match on counts as one.
 * @param most matches that are found; then the search ends.
 */
export function* findMatches(
  pattern: CompiledPattern,
  text: string,
  from: number,
  most = Number.POSITIVE_INFINITY,
): Slices<FoundMatch[]> {
  const { longest } = pattern
  if (longest === null || text.length - from <= PART_UNITS) return yield* matchesIn(pattern, text, from, most)
  const units = Math.max(PART_UNITS, longest)
  const found: FoundMatch[] = []
  for (let position = from; position < text.length && found.length < most; ) {
    const limit = Math.min(text.length, position + units)
    // The characters before and after a match decide conditions such as \b and ^. They have up to two units.
    const first = contextStart(text, position)
    const part = text.slice(first, limit + longest + 2)
    const searched = position
    position = limit
    for (const { start, end } of yield* matchesIn(pattern, part, searched - first, most)) {
      if (first + start >= limit) break
      found.push({ start: first + start, end: first + end })
      position = Math.max(limit, first + end)
    }
    yield
  }
  return found
}

/** Where the character before a place begins. */
function contextStart(text: string, place: number): number {
  const before = text.charCodeAt(place - 1)
  return Math.max(0, before >= 0xdc00 && before <= 0xdfff ? place - 2 : place - 1)
}

/** One search is one slice: re2js cannot pause in it. */
function* matchesIn(
  pattern: CompiledPattern,
  text: string,
  from: number,
  most: number,
): Slices<FoundMatch[]> {
  if (!pattern.matcher.test(text)) return []
  const found: FoundMatch[] = []
  const matcher = pattern.matcher.matcher(text)
  const linear = pattern.longest !== null || pattern.endsItself
  const limit = linear ? Infinity : Math.max(MOST_FAR_READING_MATCHES, MOST_READING / text.length)
  let position = from
  let pause = from + PART_UNITS
  while (found.length < most && position <= text.length && matcher.find(position)) {
    const start = matcher.start()
    const end = matcher.end()
    if (found.length >= limit) {
      found.push({ start, end: text.length })
      break
    }
    if (end > start) found.push({ start, end })
    position = end > start ? end : end + 1
    if (position < pause) continue
    pause = position + PART_UNITS
    yield
  }
  return found
}
