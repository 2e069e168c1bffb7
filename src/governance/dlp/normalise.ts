import { decodeEscape, ESCAPE_HINT, escapeLength } from './escapes.ts'

/**
 * A text as the detectors read it. Detectors see one spelling of things that can be written in many ways (full-width
 * digits, dashes, invisible characters, escapes); what they find is carried back to the text as it was given.
 */
export interface Reading {
  text: string
  /** For each unit of `text`, where its source starts in the original; null when both are the same. */
  starts: Int32Array | null
  /** For each unit of `text`, where its source ends in the original. */
  ends: Int32Array | null
}

const UNKNOWN = 0
const SAME = 1
const DROPPED = 2
const REPLACED = 3
const MARK = 4

/** What becomes of each BMP character, found out when it is first met. */
const fates = new Uint8Array(65_536)
const replacements = new Map<number, string>()

const INVISIBLE = /^[\p{Default_Ignorable_Code_Point}\u200b-\u200f\u202a-\u202e\u180e]$/u
const COMBINING = /^\p{M}$/u
const DECIMAL = /^\p{Nd}$/u
/** Dashes that stand for a hyphen; the em dash separates clauses and stays. */
const DASH = /^[\u2010-\u2013\u2043\u2212\u058a\u05be\ufe58\ufe63\uff0d]$/u
const BEYOND_ASCII = /[\u0080-\uffff]/

/**
 * The ways to read a text: as it is written, with compatibility forms folded (NFKC), invisible characters removed,
 * and dashes, spaces, quotes and decimal digits of all scripts as ASCII; and, if it has percent encoding, HTML
 * entities or backslash escapes (nested up to three times), a second one with these decoded. Both are looked at,
 * because what looks like an escape may be none (`C:\new`).
 */
export function readings(original: string): Reading[] {
  const plain = BEYOND_ASCII.test(original) ? build(original, false) : identity(original)
  if (!ESCAPE_HINT.test(original)) return [plain]
  const decoded = build(original, true)
  return decoded.text === plain.text ? [plain] : [plain, decoded]
}

/** The text itself as a reading. */
export function identity(text: string): Reading {
  return { text, starts: null, ends: null }
}

/** Where in the original the unit at `index` of a reading starts; `length` is the original's length. */
export function originalStart(reading: Reading, index: number, length: number): number {
  return reading.starts === null ? index : (reading.starts[index] ?? length)
}

/** Where in the original a run that ends before `index` of a reading ends. */
export function originalEnd(reading: Reading, index: number): number {
  return reading.ends === null ? index : index === 0 ? 0 : (reading.ends[index - 1] ?? 0)
}

/** Where in a reading the source at `offset` of the original starts, or the next unit that starts after it. */
export function readingIndex(reading: Reading, offset: number): number {
  const { starts } = reading
  if (starts === null) return Math.min(offset, reading.text.length)
  let low = 0
  let high = reading.text.length
  while (low < high) {
    const middle = (low + high) >> 1
    if ((starts[middle] ?? 0) < offset) low = middle + 1
    else high = middle
  }
  return low
}

/** Collects the units of a reading with their sources. */
class Collector {
  #units: Uint16Array<ArrayBuffer>
  #starts: Int32Array
  #ends: Int32Array
  #length = 0
  changed = false

  constructor(capacity: number) {
    this.#units = new Uint16Array(capacity)
    this.#starts = new Int32Array(capacity)
    this.#ends = new Int32Array(capacity)
  }

  unit(code: number, start: number, end: number): void {
    if (this.#length === this.#units.length) this.#grow()
    this.#units[this.#length] = code
    this.#starts[this.#length] = start
    this.#ends[this.#length] = end
    this.#length++
  }

  /** A replacement: every unit of it stems from the whole source. */
  text(text: string, start: number, end: number): void {
    this.changed = true
    for (let index = 0; index < text.length; index++) this.unit(text.charCodeAt(index), start, end)
  }

  /** Joins a combining mark to the unit before it, if there is one character for both. */
  compose(mark: number, start: number, end: number): void {
    const last = this.#length - 1
    const base = this.#units[last]
    const composed =
      base === undefined ? '' : (String.fromCharCode(base) + String.fromCharCode(mark)).normalize('NFKC')
    if (composed.length !== 1) {
      this.unit(mark, start, end)
      return
    }
    this.changed = true
    this.#units[last] = composed.charCodeAt(0)
    this.#ends[last] = end
  }

  reading(original: string): Reading {
    if (!this.changed) return identity(original)
    return {
      text: textOf(this.#units.subarray(0, this.#length)),
      starts: this.#starts.subarray(0, this.#length),
      ends: this.#ends.subarray(0, this.#length),
    }
  }

  #grow(): void {
    const capacity = Math.max(64, this.#units.length * 2)
    const larger = <Kind extends Uint16Array | Int32Array>(old: Kind, fresh: Kind): Kind => {
      fresh.set(old)
      return fresh
    }
    this.#units = larger(this.#units, new Uint16Array(capacity))
    this.#starts = larger(this.#starts, new Int32Array(capacity))
    this.#ends = larger(this.#ends, new Int32Array(capacity))
  }
}

function build(original: string, decode: boolean): Reading {
  const collector = new Collector(original.length)
  let index = 0
  while (index < original.length) {
    const code = original.charCodeAt(index)
    if (decode && (code === 0x25 || code === 0x26 || code === 0x5c)) {
      const decoded = decodeEscape(original, index)
      if (decoded !== '') {
        const end = index + escapeLength()
        collector.text(foldText(decoded), index, end)
        index = end
        continue
      }
    }
    if (code < 0x80) {
      collector.unit(code, index, index + 1)
      index++
    } else index = foldAt(original, index, code, collector)
  }
  return collector.reading(original)
}

/** Reads one character beyond ASCII. @returns the index after it */
function foldAt(original: string, index: number, code: number, collector: Collector): number {
  if (code >= 0xd800 && code <= 0xdfff) return foldAstral(original, index, collector)
  const fate = fates[code] || learnFate(code)
  const end = index + 1
  if (fate === SAME) collector.unit(code, index, end)
  else if (fate === DROPPED) collector.changed = true
  else if (fate === MARK) collector.compose(code, index, end)
  else collector.text(replacements.get(code) ?? '', index, end)
  return end
}

function foldAstral(original: string, index: number, collector: Collector): number {
  const point = original.codePointAt(index) ?? 0
  if (point < 0x10000) {
    collector.unit(point, index, index + 1)
    return index + 1
  }
  const character = String.fromCodePoint(point)
  const end = index + 2
  if (INVISIBLE.test(character)) collector.changed = true
  else {
    const folded = foldDigit(character.normalize('NFKC'))
    if (folded !== character) collector.text(folded, index, end)
    else {
      collector.unit(original.charCodeAt(index), index, end)
      collector.unit(original.charCodeAt(index + 1), index, end)
    }
  }
  return end
}

function learnFate(code: number): number {
  const character = String.fromCharCode(code)
  let fate = SAME
  if (INVISIBLE.test(character)) fate = DROPPED
  else if (COMBINING.test(character)) fate = MARK
  else {
    const folded = foldCharacter(character)
    if (folded !== character) {
      fate = REPLACED
      replacements.set(code, folded)
    }
  }
  fates[code] = fate
  return fate === UNKNOWN ? SAME : fate
}

function foldCharacter(character: string): string {
  if (DASH.test(character)) return '-'
  if (/^[\u2028\u2029\u0085]$/.test(character)) return '\n'
  if (/^\p{Zs}$/u.test(character)) return ' '
  if (/^[\u2018\u2019\u201a\u201b\u2032]$/.test(character)) return "'"
  if (/^[\u201c-\u201f\u2033]$/.test(character)) return '"'
  return foldDigit(character.normalize('NFKC'))
}

/** Unicode keeps the ten decimal digits of a script together and in order, each block ending in a 9. */
function foldDigit(character: string): string {
  if (character.length > 2 || !DECIMAL.test(character)) return character
  const point = character.codePointAt(0) ?? 0
  if (point < 0x80) return character
  let value = 0
  while (value < 9 && DECIMAL.test(String.fromCodePoint(point - value - 1))) value++
  return String(value)
}

function foldText(text: string): string {
  let folded = ''
  for (const character of text) {
    const ascii = character.length === 1 && character.charCodeAt(0) < 0x80
    folded += ascii ? character : INVISIBLE.test(character) ? '' : foldCharacter(character)
  }
  return folded
}

function textOf(units: Uint16Array): string {
  let text = ''
  for (let index = 0; index < units.length; index += 8192) {
    text += String.fromCharCode(...units.subarray(index, index + 8192))
  }
  return text
}
