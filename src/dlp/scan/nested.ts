import { Buffer } from 'node:buffer'
import type { Slices } from '../../lib/slices.ts'
import { SIX_BITS } from '../detectors/base64.ts'
import { BASE64_ANY } from '../detectors/characters.ts'
import { readings } from './normalise.ts'
import { type Report, type Scan, scanReading } from './scan.ts'
import { scanCustom } from './scan-custom.ts'

/** Levels of encoded texts that are scanned. JSON in strings is decoded by its escapes, to the same depth. */
const DEEPEST = 3
/** Shorter runs hold no finding: twelve bytes. */
const SHORTEST = 16
/** Bytes that distinguish text from other data. */
const SAMPLE = 24

const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: false })

/** A text that a run of base 64 encodes, with its padding. */
export interface DecodedText {
  text: string
  start: number
  end: number
}

/** Finds the texts that runs of base 64 between `start` and `end` encode, which are scanned next. */
export function* scanEncoded(scan: Scan, start: number, end: number): Slices<void> {
  if (scan.depth >= DEEPEST) return
  const { text } = scan
  let index = Math.max(start, scan.encodedEnd)
  while (index < end) {
    const stop = yield* BASE64_ANY.runEndInSlices(text, index, end)
    if (stop - index >= SHORTEST && !(yield* scanLines(scan, index, stop))) {
      yield* scanEncodedRun(scan, index, stop)
    }
    index = Math.max(stop, index + 1)
    scan.budget.pace(RUN_STEPS)
    if (scan.budget.endsSlice()) yield
  }
}

/** Steps of a run, beside its units. */
const RUN_STEPS = 16
/** Units that are joined, or decoded, in one slice; a multiple of four. */
const PART_UNITS = 64 * 1024

/**
 * Scans base 64 that is broken into lines (RFC 2045, 6.8): lines of one length, the last of which may be shorter.
 * Lines are joined once, so that many of them take linear time.
 * @returns whether they hold a text
 */
function* scanLines(scan: Scan, start: number, stop: number): Slices<boolean> {
  const { text } = scan
  const length = stop - start
  if (start < scan.linesEnd || length % 4 !== 0 || lineStart(text, stop) < 0) return false
  const parts: string[] = []
  let part = text.slice(start, stop)
  let end = stop
  for (let next = lineStart(text, end); next >= 0; next = lineStart(text, end)) {
    const lineStop = yield* BASE64_ANY.runEndInSlices(text, next, next + length)
    if (lineStop === next || BASE64_ANY.hasAt(text, lineStop)) break
    if (part.length >= PART_UNITS) {
      parts.push(part)
      part = ''
      yield
    }
    part += text.slice(next, lineStop)
    end = lineStop
    if (lineStop - next < length) break
  }
  parts.push(part)
  scan.linesEnd = end
  scan.budget.spend(parts.reduce((units, { length }) => units + length, 0))
  const decoded =
    end === stop ? null : yield* decodeText(parts.flatMap((each) => partsOf(each, 0, each.length)))
  if (decoded === null) return false
  scan.encodedEnd = end
  report(scan, decoded, start, end)
  return true
}

/** Where the line after the line end at `index` starts, or -1. */
function lineStart(text: string, index: number): number {
  if (text[index] === '\n') return index + 1
  return text[index] === '\r' && text[index + 1] === '\n' ? index + 2 : -1
}

/** The start of an unfinished run of base 64 in lines at the end of a text, or the text's length. */
export function* openLines(text: string): Slices<number> {
  let open = text.length
  let pause = open
  let lineStop = yield* BASE64_ANY.runStartInSlices(text, text.length)
  for (;;) {
    const lineEnd = text[lineStop - 1] === '\n' ? lineStop - 1 - Number(text[lineStop - 2] === '\r') : -1
    if (lineEnd < 0) return open
    const start = yield* BASE64_ANY.runStartInSlices(text, lineEnd)
    if (lineEnd - start < SHORTEST || (lineEnd - start) % 4 !== 0) return open
    open = start
    lineStop = start
    if (pause - start < RUN_PART) continue
    pause = start
    yield
  }
}

const RUN_PART = 64 * 1024

function* scanEncodedRun(scan: Scan, start: number, stop: number): Slices<void> {
  const { text } = scan
  scan.budget.spend(stop - start)
  let decoded = yield* decodeText(partsOf(text, start, stop))
  let first = start
  // A slash is of base 64 and also ends the part of a path before it.
  const slash = decoded === null ? yield* lastSlash(text, start, stop) : start
  if (slash > start && stop - slash > SHORTEST) {
    first = slash + 1
    decoded = yield* decodeText(partsOf(text, first, stop))
  }
  if (decoded !== null) report(scan, decoded, first, stop)
}

/** The last slash of a run, or its start. */
function* lastSlash(text: string, start: number, stop: number): Slices<number> {
  for (let end = stop; end > start; end -= PART_UNITS) {
    const from = Math.max(start, end - PART_UNITS)
    const found = text.slice(from, end).lastIndexOf('/')
    if (found >= 0) return from + found
    if (from > start) yield
  }
  return start
}

function partsOf(text: string, start: number, stop: number): string[] {
  if (stop - start <= PART_UNITS) return [text.slice(start, stop)]
  const parts: string[] = []
  for (let at = start; at < stop; at += PART_UNITS)
    parts.push(text.slice(at, Math.min(stop, at + PART_UNITS)))
  return parts
}

function report(scan: Scan, text: string, start: number, stop: number): void {
  let end = stop
  while (scan.text[end] === '=' && end - stop < 2) end++
  scan.decoded.push({ text, start, end })
}

/** Scans a decoded text. Each finding spans the whole run that encodes it; the highest score of a detector counts. */
export function* scanDecoded(scan: Scan, { text, start, end }: DecodedText): Slices<void> {
  const scores = new Map<string, number>()
  const keep: Report = (detector, _start, _end, score) =>
    scores.set(detector, Math.max(score, scores.get(detector) ?? 0))
  for (const reading of yield* readings(text, scan.budget)) {
    yield* scanReading(reading, scan.plan, scan.depth + 1, keep, scan.budget)
  }
  yield* scanCustom(text, scan.plan, 0, keep, scan.budget)
  for (const [detector, score] of scores) scan.report(detector, start, end, score)
}

/**
 * @param parts of a run of base 64, each but the last of a length that is a multiple of four
 * @returns the text that it encodes, or null if it encodes anything else
 */
function* decodeText(parts: readonly string[]): Slices<string | null> {
  const [first = ''] = parts
  if (!beginsAsText(first, 0, first.length) || (parts.at(-1) ?? '').length % 4 === 1) return null
  if (parts.length === 1) return decodePart(utf8, first, false)
  const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: false })
  let text = ''
  for (const [index, part] of parts.entries()) {
    const decoded = decodePart(decoder, part, index < parts.length - 1)
    if (decoded === null) return null
    text += decoded
    yield
  }
  return text
}

function decodePart(decoder: TextDecoder, part: string, stream: boolean): string | null {
  // `Buffer` takes either alphabet, also mixed.
  const bytes = Buffer.from(part, 'base64')
  if (bytes.includes(0)) return null
  try {
    return decoder.decode(bytes, { stream })
  } catch {
    return null
  }
}

const sample = new Uint8Array(SAMPLE)

/** Whether the first bytes of a run are UTF-8 without control characters, which costs less than to decode it all. */
function beginsAsText(text: string, start: number, stop: number): boolean {
  let length = 0
  for (let index = start; index + 4 <= stop && length < SAMPLE; index += 4) {
    const group =
      ((SIX_BITS[text.charCodeAt(index)] ?? 0) << 18) |
      ((SIX_BITS[text.charCodeAt(index + 1)] ?? 0) << 12) |
      ((SIX_BITS[text.charCodeAt(index + 2)] ?? 0) << 6) |
      (SIX_BITS[text.charCodeAt(index + 3)] ?? 0)
    sample[length++] = group >> 16
    sample[length++] = group >> 8
    sample[length++] = group
    if (!isText(sample, length - 3, length)) return false
  }
  return isUtf8(sample, length)
}

/** No control characters but blanks, and no byte that UTF-8 has not. */
function isText(bytes: Uint8Array, start: number, end: number): boolean {
  for (let index = start; index < end; index++) {
    const code = bytes[index] ?? 0
    if (code < 32 && code !== 9 && code !== 10 && code !== 13) return false
    if (code === 127 || code === 0xc0 || code === 0xc1 || code > 0xf4) return false
  }
  return true
}

/** Whether bytes are UTF-8; the last character may be cut. */
function isUtf8(bytes: Uint8Array, length: number): boolean {
  let index = 0
  while (index < length) {
    const code = bytes[index++] ?? 0
    if (code < 128) continue
    if (code < 0xc2) return false
    const more = code >= 0xf0 ? 3 : code >= 0xe0 ? 2 : 1
    for (let count = 0; count < more && index < length; count++) {
      if (((bytes[index++] ?? 0) & 0xc0) !== 0x80) return false
    }
  }
  return true
}
