import { joinBytes } from '../../lib/byte-edits.ts'
import { scanJsonInSlices } from '../../lib/json-scan.ts'
import { jsonContents, pieceEnd } from '../../lib/json-text.ts'
import { JsonSyntaxError } from '../../lib/json-visitor.ts'
import type { Slices } from '../../lib/slices.ts'
import type { ScanBudget } from '../scan/scan-budget.ts'
import {
  applyReleased,
  isUnchanged,
  type ReleasedText,
  type ReplaceFinding,
  type TextDetector,
  TextStream,
} from './text-stream.ts'

const LONGEST_CONTEXT_NAME = 64

/** The text before a member's value: names count as words before it, as in `"password": "`. */
export const memberContext = (name: string): string => `"${name.slice(-LONGEST_CONTEXT_NAME)}": "`

/**
 * Inspects a text that is JSON by itself, such as the arguments of a tool: strings, names and numbers one by one, each
 * after the name of its member. Replacements leave it valid JSON. A text that is not JSON is inspected as a whole.
 */
export function* releaseJson(
  text: string,
  detector: TextDetector,
  replace: ReplaceFinding,
  budget: ScanBudget,
): Slices<ReleasedText[]> {
  const stream = (context = '') => new TextStream(detector, replace, context, budget)
  if (!(yield* isJson(text, budget))) return yield* inPieces(stream(), text)
  const texts: ReleasedText[] = []
  let at = 0
  let context = ''
  for (let token = yield* nextToken(text, 0); token !== null; token = yield* nextToken(text, token.next)) {
    const { start, end, isName } = token
    budget.spend(end - start)
    budget.pace(TOKEN_STEPS)
    if (budget.endsSlice()) yield
    const contents = yield* contentsOf(text, start, end)
    const found = yield* inPieces(stream(isName ? '' : context), contents)
    if (isName) context = memberContext(contents)
    if (isUnchanged(found)) continue
    if (start > at) texts.push({ units: start - at, replacement: null })
    texts.push({ units: end - start, replacement: yield* stringOf(applyReleased(contents, found)) })
    at = end
  }
  if (at < text.length) texts.push({ units: text.length - at, replacement: null })
  return texts
}

/** Steps of inspecting a token, beside its units. */
const TOKEN_STEPS = 32

/** The text of a string with its quotes, or a number as it is written. */
function* contentsOf(text: string, start: number, end: number): Slices<string> {
  if (text.charCodeAt(start) !== QUOTE) return text.slice(start, end)
  if (end - start <= PIECE_UNITS) return JSON.parse(text.slice(start, end)) as string
  let contents = ''
  for (let at = start + 1; at < end - 1; ) {
    const stop = escapeBoundary(text, at, Math.min(end - 1, at + PIECE_UNITS))
    contents += JSON.parse(`"${text.slice(at, stop)}"`) as string
    at = stop
    yield
  }
  return contents
}

/** The last place up to `limit` at which no escape goes on. @param start where none does. */
function escapeBoundary(text: string, start: number, limit: number): number {
  let at = start
  for (;;) {
    const escaped = text[at + 1] === 'u' ? 6 : 2
    const next = at + (text.charCodeAt(at) === BACKSLASH ? escaped : 1)
    if (next > limit) return at
    at = next
  }
}

/** A text as a string of JSON. */
function* stringOf(text: string): Slices<string> {
  if (text.length <= PIECE_UNITS) return JSON.stringify(text)
  let string = '"'
  for (let at = 0; at < text.length; ) {
    const end = pieceEnd(text, at, PIECE_UNITS)
    string += jsonContents(text.slice(at, end))
    at = end
    yield
  }
  return `${string}"`
}

const encoder = new TextEncoder()

function* isJson(text: string, budget: ScanBudget): Slices<boolean> {
  try {
    let counted = 0
    const isDue = (at: number) => {
      budget.spend(at - counted)
      counted = at
      return budget.endsSlice()
    }
    yield* scanJsonInSlices(yield* encodedInSlices(text), {}, isDue)
    return true
  } catch (error) {
    if (error instanceof JsonSyntaxError) return false
    throw error
  }
}

function* encodedInSlices(text: string): Slices<Uint8Array> {
  if (text.length <= PIECE_UNITS) return encoder.encode(text)
  const pieces: Uint8Array[] = []
  for (let at = 0; at < text.length; ) {
    const end = pieceEnd(text, at, PIECE_UNITS)
    pieces.push(encoder.encode(text.slice(at, end)))
    at = end
    yield
  }
  return joinBytes(pieces)
}

const PIECE_UNITS = 64 * 1024

/** A long text is inspected in pieces, so that little of it is held at once. */
function* inPieces(stream: TextStream, text: string): Slices<ReleasedText[]> {
  if (text.length <= PIECE_UNITS) return yield* stream.wholeInSlices(text)
  const texts: ReleasedText[] = []
  for (let at = 0; at < text.length; at += PIECE_UNITS) {
    for (const part of yield* stream.pushInSlices(text.slice(at, at + PIECE_UNITS))) texts.push(part)
  }
  for (const part of yield* stream.endInSlices()) texts.push(part)
  return texts
}

interface Token {
  start: number
  end: number
  /** Whether it is the name of a member. */
  isName: boolean
  /** Where the search for the next one goes on. */
  next: number
}

const QUOTE = 0x22
const BACKSLASH = 0x5c
const COLON = 0x3a
const isBlank = (code: number): boolean => code === 0x20 || code === 0x0a || code === 0x0d || code === 0x09
const isNumeric = (code: number): boolean =>
  (code >= 0x30 && code <= 0x39) || code === 0x2d || code === 0x2b || code === 0x2e || (code | 0x20) === 0x65
const startsNumber = (code: number): boolean => (code >= 0x30 && code <= 0x39) || code === 0x2d

/** The next string or number of a JSON text. */
function* nextToken(text: string, from: number): Slices<Token | null> {
  let pause = from + PIECE_UNITS
  for (let start = from; start < text.length; start++) {
    if (start >= pause) {
      pause = start + PIECE_UNITS
      yield
    }
    const code = text.charCodeAt(start)
    if (code !== QUOTE && !startsNumber(code)) continue
    const end = code === QUOTE ? yield* stringEnd(text, start) : yield* endOfRun(text, start + 1, isNumeric)
    const next = yield* endOfRun(text, end, isBlank)
    return { start, end, isName: text.charCodeAt(next) === COLON, next }
  }
  return null
}

function* stringEnd(text: string, quote: number): Slices<number> {
  let pause = quote + PIECE_UNITS
  let end = quote + 1
  while (text.charCodeAt(end) !== QUOTE) {
    end += text.charCodeAt(end) === BACKSLASH ? 2 : 1
    if (end < pause) continue
    pause = end + PIECE_UNITS
    yield
  }
  return end + 1
}

function* endOfRun(text: string, from: number, isPart: (code: number) => boolean): Slices<number> {
  let end = from
  while (isPart(text.charCodeAt(end))) {
    end++
    if ((end - from) % PIECE_UNITS === 0) yield
  }
  return end
}
