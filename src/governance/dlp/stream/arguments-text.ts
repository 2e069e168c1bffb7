import type { ReleasedText, ReplaceFinding, TextDetector } from './text-stream.ts'
import { TextStream } from './text-stream.ts'

/** Strings and numbers of a JSON text. Every text has at most one way to be read so, hence linear time. */
const TOKENS = /"(?:[^"\\]|\\.)*"|-?\d[\d.eE+-]*/g
/** What makes a string before it a name. */
const COLON = /[ \t\r\n]*:/y
const LONGEST_CONTEXT_NAME = 64

/** A value is told by the name of its member as by the words before it: `"password": "`. */
export const memberContext = (name: string): string => `"${name.slice(-LONGEST_CONTEXT_NAME)}": "`

/**
 * What becomes of a text that is JSON by itself, such as the arguments of a tool: its strings, names and numbers are
 * looked at one by one, each after the name of its member, and what is put in their place leaves it valid. A text that
 * is not JSON is looked at as it is.
 */
export function segmentsOfJson(
  text: string,
  detector: TextDetector,
  verdict: ReplaceFinding,
): ReleasedText[] {
  if (!isJson(text)) return segmentsOfText(text, detector, verdict)
  const segments: ReleasedText[] = []
  let at = 0
  let context = ''
  for (const match of text.matchAll(TOKENS)) {
    const token = match[0]
    const contents = token.startsWith('"') ? (JSON.parse(token) as string) : token
    COLON.lastIndex = match.index + token.length
    const isName = COLON.test(text)
    const replaced = replacedToken(contents, isName ? '' : context, detector, verdict)
    if (isName) context = memberContext(contents)
    if (replaced === null) continue
    if (match.index > at) segments.push({ units: match.index - at, replacement: null })
    segments.push({ units: token.length, replacement: replaced })
    at = match.index + token.length
  }
  if (at < text.length) segments.push({ units: text.length - at, replacement: null })
  return segments
}

/** What becomes of a text that is there as a whole. */
export function segmentsOfText(
  text: string,
  detector: TextDetector,
  verdict: ReplaceFinding,
): ReleasedText[] {
  return new TextStream(detector, verdict).whole(text)
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text)
    return true
  } catch {
    return false
  }
}

/** Also a number gives way to a string. */
function replacedToken(
  contents: string,
  context: string,
  detector: TextDetector,
  verdict: ReplaceFinding,
): string | null {
  const told = edited(contents, new TextStream(detector, verdict, context).whole(contents))
  return told === null ? null : JSON.stringify(told)
}

/** @returns null when everything passes. */
function edited(text: string, segments: ReleasedText[]): string | null {
  if (segments.every(({ replacement }) => replacement === null)) return null
  let at = 0
  let told = ''
  for (const { units, replacement } of segments) {
    told += replacement ?? text.slice(at, at + units)
    at += units
  }
  return told
}
