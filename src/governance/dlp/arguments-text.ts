import type { Segment, TextDetector, Verdict } from './text-stream.ts'
import { TextStream } from './text-stream.ts'

/** Strings and numbers of a JSON text. Every text has at most one way to be read so, hence linear time. */
const TOKENS = /"(?:[^"\\]|\\.)*"|-?\d[\d.eE+-]*/g

/**
 * What becomes of a text that is JSON by itself, such as the arguments of a tool: its strings, names and numbers are
 * looked at one by one, and what is put in their place leaves it valid. A text that is not JSON is looked at as it is.
 */
export function argumentsSegments(text: string, detector: TextDetector, verdict: Verdict): Segment[] {
  if (!isJson(text)) return wholeSegments(text, detector, verdict)
  const segments: Segment[] = []
  let at = 0
  for (const match of text.matchAll(TOKENS)) {
    const token = match[0]
    const replaced = token.startsWith('"')
      ? replacedString(token, detector, verdict)
      : replacedNumber(token, detector, verdict)
    if (replaced === null) continue
    if (match.index > at) segments.push({ units: match.index - at, replacement: null })
    segments.push({ units: token.length, replacement: replaced })
    at = match.index + token.length
  }
  if (at < text.length) segments.push({ units: text.length - at, replacement: null })
  return segments
}

/** What becomes of a text that is there as a whole. */
export function wholeSegments(text: string, detector: TextDetector, verdict: Verdict): Segment[] {
  const stream = new TextStream(detector, verdict)
  return stream.whole(text)
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text)
    return true
  } catch {
    return false
  }
}

function replacedString(token: string, detector: TextDetector, verdict: Verdict): string | null {
  const text = JSON.parse(token) as string
  const told = edited(text, wholeSegments(text, detector, verdict))
  return told === null ? null : JSON.stringify(told)
}

function replacedNumber(token: string, detector: TextDetector, verdict: Verdict): string | null {
  const told = edited(token, wholeSegments(token, detector, verdict))
  return told === null ? null : JSON.stringify(told)
}

/** @returns null when everything passes. */
function edited(text: string, segments: Segment[]): string | null {
  if (segments.every(({ replacement }) => replacement === null)) return null
  let at = 0
  let told = ''
  for (const { units, replacement } of segments) {
    told += replacement ?? text.slice(at, at + units)
    at += units
  }
  return told
}
