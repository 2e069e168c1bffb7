import { scanJsonInSlices } from '../../../lib/json-scan.ts'
import { JsonSyntaxError } from '../../../lib/json-visitor.ts'
import type { Slices } from '../../../lib/slices.ts'
import type { ScanBudget } from '../scan/scan-budget.ts'
import {
  applySegments,
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
export function* segmentsOfJson(
  text: string,
  detector: TextDetector,
  replace: ReplaceFinding,
  budget: ScanBudget,
): Slices<ReleasedText[]> {
  const stream = (context = '') => new TextStream(detector, replace, context, budget)
  if (!(yield* isJson(text, budget))) return yield* inPieces(stream(), text)
  const segments: ReleasedText[] = []
  let at = 0
  let context = ''
  for (const { start, end, isName } of tokensOf(text)) {
    budget.spend(end - start)
    if (budget.endsSlice()) yield
    const token = text.slice(start, end)
    const contents = token.startsWith('"') ? (JSON.parse(token) as string) : token
    const found = yield* inPieces(stream(isName ? '' : context), contents)
    if (isName) context = memberContext(contents)
    if (isUnchanged(found)) continue
    if (start > at) segments.push({ units: start - at, replacement: null })
    segments.push({ units: end - start, replacement: JSON.stringify(applySegments(contents, found)) })
    at = end
  }
  if (at < text.length) segments.push({ units: text.length - at, replacement: null })
  return segments
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
    yield* scanJsonInSlices(encoder.encode(text), {}, isDue)
    return true
  } catch (error) {
    if (error instanceof JsonSyntaxError) return false
    throw error
  }
}

const PIECE_UNITS = 64 * 1024

/** A long text is inspected in pieces, so that little of it is held at once. */
function* inPieces(stream: TextStream, text: string): Slices<ReleasedText[]> {
  if (text.length <= PIECE_UNITS) return yield* stream.wholeInSlices(text)
  const segments: ReleasedText[] = []
  for (let at = 0; at < text.length; at += PIECE_UNITS) {
    for (const segment of yield* stream.pushInSlices(text.slice(at, at + PIECE_UNITS))) segments.push(segment)
  }
  for (const segment of yield* stream.endInSlices()) segments.push(segment)
  return segments
}

interface Token {
  start: number
  end: number
  /** Whether it is the name of a member. */
  isName: boolean
}

const QUOTE = 0x22
const BACKSLASH = 0x5c
const COLON = 0x3a
const isBlank = (code: number): boolean => code === 0x20 || code === 0x0a || code === 0x0d || code === 0x09
const isNumeric = (code: number): boolean =>
  (code >= 0x30 && code <= 0x39) || code === 0x2d || code === 0x2b || code === 0x2e || (code | 0x20) === 0x65
const startsNumber = (code: number): boolean => (code >= 0x30 && code <= 0x39) || code === 0x2d

/** The strings and numbers of a JSON text. */
function* tokensOf(text: string): Generator<Token> {
  for (let start = 0; start < text.length; start++) {
    const code = text.charCodeAt(start)
    let end = start + 1
    if (code === QUOTE) {
      while (text.charCodeAt(end) !== QUOTE) end += text.charCodeAt(end) === BACKSLASH ? 2 : 1
      end++
    } else if (startsNumber(code)) {
      while (isNumeric(text.charCodeAt(end))) end++
    } else continue
    let next = end
    while (isBlank(text.charCodeAt(next))) next++
    yield { start, end, isName: text.charCodeAt(next) === COLON }
    start = next - 1
  }
}
