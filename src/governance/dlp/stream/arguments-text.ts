import {
  applySegments,
  isUnchanged,
  type ReleasedText,
  type ReplaceFinding,
  type TextDetector,
  TextStream,
} from './text-stream.ts'

/** Strings and numbers of a JSON text. Every text matches in one way at most, hence linear time. */
const TOKENS = /"(?:[^"\\]|\\.)*"|-?\d[\d.eE+-]*/g
/** Follows the name of a member. */
const COLON = /[ \t\r\n]*:/y
const LONGEST_CONTEXT_NAME = 64

/** The text before a member's value: names count as words before it, as in `"password": "`. */
export const memberContext = (name: string): string => `"${name.slice(-LONGEST_CONTEXT_NAME)}": "`

/**
 * Inspects a text that is JSON by itself, such as the arguments of a tool: strings, names and numbers one by one, each
 * after the name of its member. Replacements leave it valid JSON. A text that is not JSON is inspected as a whole.
 */
export function segmentsOfJson(
  text: string,
  detector: TextDetector,
  replace: ReplaceFinding,
): ReleasedText[] {
  if (!isJson(text)) return new TextStream(detector, replace).whole(text)
  const segments: ReleasedText[] = []
  let at = 0
  let context = ''
  for (const match of text.matchAll(TOKENS)) {
    const token = match[0]
    const contents = token.startsWith('"') ? (JSON.parse(token) as string) : token
    COLON.lastIndex = match.index + token.length
    const isName = COLON.test(text)
    const replaced = replacedToken(contents, isName ? '' : context, detector, replace)
    if (isName) context = memberContext(contents)
    if (replaced === null) continue
    if (match.index > at) segments.push({ units: match.index - at, replacement: null })
    segments.push({ units: token.length, replacement: replaced })
    at = match.index + token.length
  }
  if (at < text.length) segments.push({ units: text.length - at, replacement: null })
  return segments
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text)
    return true
  } catch {
    return false
  }
}

/** The replacement of a string or number, which is a string; null when it passes. */
function replacedToken(
  contents: string,
  context: string,
  detector: TextDetector,
  replace: ReplaceFinding,
): string | null {
  const segments = new TextStream(detector, replace, context).whole(contents)
  return isUnchanged(segments) ? null : JSON.stringify(applySegments(contents, segments))
}
