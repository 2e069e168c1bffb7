/** The contents of a JSON string as text, with the source offset of each of its UTF-16 units. */
export interface JsonText {
  text: string
  /** Source offset of each UTF-16 unit, and of the end; null when every unit is one byte. */
  offsets: Uint32Array | null
}

const BACKSLASH = 0x5c
const REPLACEMENT = '\ufffd'
const decoder = new TextDecoder('utf-8', { ignoreBOM: true, fatal: false })
const SHORT_ESCAPES: Record<string, string> = { b: '\b', f: '\f', n: '\n', r: '\r', t: '\t' }

/** @param source contents of a valid JSON string, escapes untouched. */
export function readJsonText(source: Uint8Array): JsonText {
  const text = decoder.decode(source)
  if (text.length === source.length && !source.includes(BACKSLASH)) return { text, offsets: null }
  // Invalid UTF-8 became a replacement character, which has another length than its source.
  const isBroken = text.includes(REPLACEMENT)
  const offsets = new Uint32Array(text.length + 1)
  const units: string[] = []
  let count = 0
  let byte = 0
  let plain = 0
  for (let at = 0; at < text.length; ) {
    offsets[count++] = byte
    if (text[at] !== '\\') {
      byte += isBroken && text[at] === REPLACEMENT ? replacedLength(source, byte) : utf8Length(text, at)
      at++
      continue
    }
    units.push(text.slice(plain, at))
    const length = text[at + 1] === 'u' ? 6 : 2
    units.push(unescaped(text, at))
    at += length
    byte += length
    plain = at
  }
  offsets[count] = byte
  return { text: units.join('') + text.slice(plain), offsets: offsets.subarray(0, count + 1) }
}

function unescaped(text: string, at: number): string {
  const kind = text[at + 1] ?? ''
  if (kind === 'u') return String.fromCharCode(Number.parseInt(text.slice(at + 2, at + 6), 16))
  return SHORT_ESCAPES[kind] ?? kind
}

/** Bytes of one unit; those of a surrogate pair count at its first unit. */
function utf8Length(text: string, at: number): number {
  const unit = text.charCodeAt(at)
  if (unit < 0x80) return 1
  if (unit < 0x800) return 2
  if (unit < 0xd800 || unit > 0xdfff) return 3
  return unit < 0xdc00 ? 4 : 0
}

/**
 * Source bytes of one replacement character: its own three, or the incomplete character that it replaces
 * (https://www.unicode.org/versions/latest/core-spec/chapter-3/#G66453, maximal subparts).
 */
function replacedLength(source: Uint8Array, at: number): number {
  const first = source[at] ?? 0
  if (first === 0xef && source[at + 1] === 0xbf && source[at + 2] === 0xbd) return 3
  if (first < 0xc2 || first > 0xf4) return 1
  const length = first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4
  // Shortest form, no surrogates, nothing beyond the last code point.
  const lowest = first === 0xe0 ? 0xa0 : first === 0xf0 ? 0x90 : 0x80
  const highest = first === 0xed ? 0x9f : first === 0xf4 ? 0x8f : 0xbf
  let count = 1
  for (; count < length; count++) {
    const next = source[at + count] ?? 0
    if (next < (count === 1 ? lowest : 0x80) || next > (count === 1 ? highest : 0xbf)) break
  }
  return count
}

/** The source offset of a unit. */
export const offsetOf = ({ offsets }: JsonText, unit: number): number =>
  offsets === null ? unit : (offsets[unit] ?? 0)

/** Text as the contents of a JSON string. */
export const jsonContents = (text: string): string => JSON.stringify(text).slice(1, -1)

/** The end of a piece of a text: at most so many units after its start, and never within a pair of surrogates. */
export function pieceEnd(text: string, start: number, units: number): number {
  const end = Math.min(text.length, start + units)
  const last = text.charCodeAt(end - 1)
  return end < text.length && last >= 0xd800 && last <= 0xdbff ? end - 1 : end
}
