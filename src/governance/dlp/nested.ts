import { BASE64_ANY } from './detectors/characters.ts'
import { decodeBase64 } from './detectors/secrets.ts'
import { readings } from './normalise.ts'
import { type Report, type Scan, scanReading } from './scan.ts'
import { scanCustom } from './scan-custom.ts'

/** Encoded texts in encoded texts are looked into so deep. JSON in strings is read through its escapes, to the same depth. */
export const DEEPEST = 3
/** Shorter runs hold no finding: twelve bytes. */
const SHORTEST = 16
/** So many bytes tell text from other data. */
const SAMPLE = 24

const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: false })

/** Looks into the runs of base 64 between `start` and `end`; what is found there spans its whole run. */
export function scanEncoded(scan: Scan, start: number, end: number): void {
  if (scan.depth >= DEEPEST) return
  const { text } = scan
  let index = start
  while (index < end) {
    const stop = BASE64_ANY.runEnd(text, index, end)
    if (stop - index >= SHORTEST) scanEncodedRun(scan, index, stop)
    index = Math.max(stop, index + 1)
  }
}

function scanEncodedRun(scan: Scan, start: number, stop: number): void {
  const { text } = scan
  let decoded = decodeText(text, start, stop)
  let first = start
  // A slash is of base 64 and also ends the part of a path before it.
  const slash = start + text.slice(start, stop).lastIndexOf('/')
  if (decoded === null && slash > start && stop - slash > SHORTEST) {
    first = slash + 1
    decoded = decodeText(text, first, stop)
  }
  if (decoded === null) return
  let end = stop
  while (text[end] === '=' && end - stop < 2) end++
  const report: Report = (detector, _start, _end, score) => scan.report(detector, first, end, score)
  for (const reading of readings(decoded)) scanReading(reading, scan.plan, scan.depth + 1, report)
  scanCustom(decoded, scan.plan, 0, report)
}

/** @returns the text that a run of base 64 encodes, or null if it encodes anything else */
function decodeText(text: string, start: number, stop: number): string | null {
  const sample = decodeBase64(text.slice(start, Math.min(stop, start + (SAMPLE / 3) * 4)))
  if (sample === null || !isText(sample)) return null
  const bytes = decodeBase64(text.slice(start, stop))
  if (bytes === null) return null
  try {
    return utf8.decode(Uint8Array.from(bytes, (byte) => byte.charCodeAt(0)))
  } catch {
    return null
  }
}

/** Whether bytes are UTF-8 without control characters other than blanks; the last character may be cut. */
function isText(bytes: string): boolean {
  let index = 0
  while (index < bytes.length) {
    const code = bytes.charCodeAt(index++)
    if (code < 128) {
      if (code === 127 || (code < 32 && code !== 9 && code !== 10 && code !== 13)) return false
      continue
    }
    if (code < 0xc2 || code > 0xf4) return false
    const more = code >= 0xf0 ? 3 : code >= 0xe0 ? 2 : 1
    for (let count = 0; count < more && index < bytes.length; count++) {
      if ((bytes.charCodeAt(index++) & 0xc0) !== 0x80) return false
    }
  }
  return true
}
