import type { Slices } from '../../../lib/slices.ts'
import { decodeEscape, ESCAPE_HINT, escapeLength } from './escapes.ts'
import type { ScanBudget } from './scan-budget.ts'

/**
 * A text normalised for the detectors: one spelling of what can be written in many ways (full-width digits, dashes,
 * invisible characters, escapes), with the place of each unit in the original.
 */
export interface Reading {
  text: string
  /** For each unit of `text`, where its source starts in the original, in parts; null when both are the same. */
  starts: readonly Int32Array[] | null
  /** For each unit of `text`, where its source ends in the original. */
  ends: readonly Int32Array[] | null
}

/** Units of a part, as a power of two. A text of 20 MB grows part by part, without being copied. */
const PART_BITS = 15
const PART_UNITS = 1 << PART_BITS

const placeAt = (parts: readonly Int32Array[], index: number): number | undefined =>
  parts[index >> PART_BITS]?.[index & (PART_UNITS - 1)]

const UNKNOWN = 0
const SAME = 1
const DROPPED = 2
const REPLACED = 3
const MARK = 4

/** The treatment of each BMP character, computed when it first occurs. */
const fates = new Uint8Array(65_536)
const replacements = new Map<number, string>()

const INVISIBLE = /^[\p{Default_Ignorable_Code_Point}\u200b-\u200f\u202a-\u202e\u180e]$/u
const COMBINING = /^\p{M}$/u
const DECIMAL = /^\p{Nd}$/u
/** Dashes that stand for a hyphen; the em dash separates clauses and stays. */
const DASH = /^[\u2010-\u2013\u2043\u2212\u058a\u05be\ufe58\ufe63\uff0d]$/u
/** Control characters but tabs and line ends are not shown, so they separate nothing. */
const isControl = (code: number): boolean =>
  (code < 0x20 && code !== 0x09 && code !== 0x0a && code !== 0x0d) ||
  (code >= 0x7f && code < 0xa0 && code !== 0x85)
// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
const FOLDED = /[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\uffff]/

/**
 * The ways to read a text: as it is written, with compatibility forms folded (NFKC), invisible characters and marks on
 * ASCII removed, and dashes, spaces, quotes and decimal digits of all scripts as ASCII; and, if it has percent encoding, HTML
 * entities or backslash escapes (nested up to three times), a second one with these decoded. Both are scanned, because
 * what looks like an escape may be none (`C:\new`).
 */
export function* readings(original: string, budget: ScanBudget): Slices<Reading[]> {
  const plain = (yield* hasIn(FOLDED, original)) ? yield* build(original, false, budget) : identity(original)
  const mayEscape = yield* hasIn(ESCAPE_HINT, original)
  if (!mayEscape) return [plain]
  const decoded = yield* build(original, true, budget)
  return decoded.text === plain.text ? [plain] : [plain, decoded]
}

/** Whether a pattern of at most three characters matches in a text; a long one is searched in parts. */
function* hasIn(pattern: RegExp, text: string): Slices<boolean> {
  if (text.length <= LONG_UNITS) return pattern.test(text)
  for (let at = 0; at < text.length; at += LONG_UNITS) {
    if (pattern.test(text.slice(at, at + LONG_UNITS + 2))) return true
    yield
  }
  return false
}

/** The text itself as a reading. */
export function identity(text: string): Reading {
  return { text, starts: null, ends: null }
}

/** Where in the original the unit at `index` of a reading starts; `length` is the original's length. */
export function originalStart(reading: Reading, index: number, length: number): number {
  return reading.starts === null ? index : (placeAt(reading.starts, index) ?? length)
}

/** Where in the original a run that ends before `index` of a reading ends. */
export function originalEnd(reading: Reading, index: number): number {
  return reading.ends === null ? index : index === 0 ? 0 : (placeAt(reading.ends, index - 1) ?? 0)
}

/** Where in a reading the source at `offset` of the original starts, or the next unit that starts after it. */
export function readingIndex(reading: Reading, offset: number): number {
  const { starts } = reading
  if (starts === null) return Math.min(offset, reading.text.length)
  let low = 0
  let high = reading.text.length
  while (low < high) {
    const middle = (low + high) >> 1
    if ((placeAt(starts, middle) ?? 0) < offset) low = middle + 1
    else high = middle
  }
  return low
}

/** A part of the original and the text in its place. */
interface Replaced {
  text: string
  start: number
  end: number
}

/**
 * Collects the units of a reading with their sources. Nothing is stored until something differs from the original; from
 * then on, stretches that do not differ are copied.
 */
class Collector {
  readonly #original: string
  readonly #texts: string[] = []
  readonly #starts: Int32Array[] = []
  readonly #ends: Int32Array[] = []
  /** The part that is being filled, and its units. */
  #units = new Uint16Array(0)
  #partStarts = new Int32Array(0)
  #partEnds = new Int32Array(0)
  #length = 0
  /** The original before this index has been copied or replaced. */
  #taken = 0
  /** A replacement after a stretch that is too long to be copied at once. */
  #waiting: Replaced | null = null

  constructor(original: string) {
    this.#original = original
  }

  /** Whether `catchUp` must be called before the next replacement. */
  get isBehind(): boolean {
    return this.#waiting !== null
  }

  /** Puts a text in the place of a part of the original: every unit of it stems from the whole part. */
  replace(text: string, start: number, end: number): void {
    if (start - this.#taken > PART_UNITS) {
      this.#waiting = { text, start, end }
      return
    }
    this.#takeUntil(start)
    for (let index = 0; index < text.length; index++) this.#unit(start, end, text.charCodeAt(index))
    this.#taken = end
  }

  /** Copies the stretch before a replacement that waits for it, in slices. */
  *catchUp(): Slices<void> {
    const waiting = this.#waiting
    if (waiting === null) return
    yield* this.#takeInSlices(waiting.start)
    this.#waiting = null
    this.replace(waiting.text, waiting.start, waiting.end)
  }

  /**
   * Joins combining marks to the character before them, if there is one character for all and it stands as it was. Marks
   * on other ASCII characters, such as digits, are removed.
   */
  compose(marksStart: number, end: number): void {
    const start = marksStart - 1
    const stands = start >= this.#taken
    const composed = stands ? this.#original.slice(start, end).normalize('NFKC') : ''
    if (composed.length === 1) this.replace(composed, start, end)
    else if (stands ? this.#original.charCodeAt(start) < 0x80 : this.#endsInAscii(marksStart)) {
      this.replace('', marksStart, end)
    }
  }

  /** Whether the replacement right before a place ends in ASCII, or the marks before it were removed from such. */
  #endsInAscii(place: number): boolean {
    if (this.#taken !== place) return false
    const last =
      this.#length > 0 ? this.#units[this.#length - 1] : this.#texts.at(-1)?.charCodeAt(PART_UNITS - 1)
    return (last ?? 0x80) < 0x80
  }

  *reading(): Slices<Reading> {
    if (this.#units.length === 0) return identity(this.#original)
    yield* this.#takeInSlices(this.#original.length)
    this.#endPart()
    return { text: this.#texts.join(''), starts: this.#starts, ends: this.#ends }
  }

  *#takeInSlices(end: number): Slices<void> {
    while (end - this.#taken > PART_UNITS) {
      this.#takeUntil(this.#taken + PART_UNITS)
      yield
    }
    this.#takeUntil(end)
  }

  #takeUntil(end: number): void {
    for (let index = this.#taken; index < end; index++) {
      this.#unit(index, index + 1, this.#original.charCodeAt(index))
    }
    this.#taken = end
  }

  #unit(start: number, end: number, code: number): void {
    if (this.#length === this.#units.length) this.#makeRoom()
    this.#partStarts[this.#length] = start
    this.#partEnds[this.#length] = end
    this.#units[this.#length] = code
    this.#length++
  }

  /** Every part but the last has the same length; the first begins small, because most texts are short. */
  #makeRoom(): void {
    if (this.#length === PART_UNITS) {
      this.#endPart()
      this.#units = new Uint16Array(PART_UNITS)
      this.#partStarts = new Int32Array(PART_UNITS)
      this.#partEnds = new Int32Array(PART_UNITS)
      return
    }
    const capacity = Math.min(PART_UNITS, Math.max(this.#original.length + 16, 2 * this.#length))
    this.#units = copyOf(this.#units, new Uint16Array(capacity))
    this.#partStarts = copyOf(this.#partStarts, new Int32Array(capacity))
    this.#partEnds = copyOf(this.#partEnds, new Int32Array(capacity))
  }

  #endPart(): void {
    if (this.#length === 0) return
    this.#texts.push(textOf(this.#units.subarray(0, this.#length)))
    this.#starts.push(this.#partStarts.subarray(0, this.#length))
    this.#ends.push(this.#partEnds.subarray(0, this.#length))
    this.#length = 0
  }
}

function copyOf<Units extends Uint16Array | Int32Array>(units: Units, copy: Units): Units {
  copy.set(units)
  return copy
}

const CHUNK_UNITS = 8192
const LONG_UNITS = 64 * 1024

/** In chunks, because a text that grows by single units takes long to be read for the first time. */
function textOf(units: Uint16Array): string {
  const chunks: string[] = []
  for (let at = 0; at < units.length; at += CHUNK_UNITS) {
    chunks.push(String.fromCharCode(...units.subarray(at, at + CHUNK_UNITS)))
  }
  return chunks.join('')
}

/** Units after which steps are counted. */
const COUNTED_UNITS = 1024

function* build(original: string, decode: boolean, budget: ScanBudget): Slices<Reading> {
  const collector = new Collector(original)
  let index = 0
  let counted = 0
  while (index < original.length) {
    if (index - counted >= COUNTED_UNITS) {
      budget.spend(index - counted)
      counted = index
      if (budget.endsSlice()) yield
    }
    const code = original.charCodeAt(index)
    const isEscape = decode && (code === 0x25 || code === 0x26 || code === 0x5c)
    const escapeEnd = isEscape ? decodeAt(original, index, collector) : index
    if (escapeEnd > index) index = escapeEnd
    else index = code >= 0x20 && code < 0x7f ? index + 1 : foldAt(original, index, code, collector)
    if (collector.isBehind) yield* collector.catchUp()
  }
  return yield* collector.reading()
}

/** Decodes the escape at a place. @returns its end, or the place itself if there is none. */
function decodeAt(original: string, index: number, collector: Collector): number {
  const decoded = decodeEscape(original, index)
  if (decoded === '') return index
  const end = index + escapeLength()
  collector.replace(isPlain(decoded) ? decoded : foldText(decoded), index, end)
  return end
}

/** Whether folding does not change a text: one character of ASCII, as nearly all escapes are. */
const isPlain = (text: string): boolean =>
  text.length === 1 && text.charCodeAt(0) >= 0x20 && text.charCodeAt(0) < 0x7f

/** Reads one character beyond ASCII. @returns the index after it */
function foldAt(original: string, index: number, code: number, collector: Collector): number {
  if (code >= 0xd800 && code <= 0xdfff) return foldAstral(original, index, collector)
  const fate = fates[code] || learnFate(code)
  if (fate === MARK) return foldMarks(original, index, collector)
  const end = index + 1
  if (fate === DROPPED) collector.replace('', index, end)
  else if (fate === REPLACED) collector.replace(replacements.get(code) ?? '', index, end)
  return end
}

/** No single character composes with more marks than this. */
const MOST_MARKS = 4

function foldMarks(original: string, index: number, collector: Collector): number {
  let end = index + 1
  while (end - index < MOST_MARKS) {
    const code = original.charCodeAt(end)
    if (!(code >= 0x300) || (fates[code] || learnFate(code)) !== MARK) break
    end++
  }
  collector.compose(index, end)
  return end
}

function foldAstral(original: string, index: number, collector: Collector): number {
  const point = original.codePointAt(index) ?? 0
  if (point < 0x10000) return index + 1
  const character = String.fromCodePoint(point)
  const folded = INVISIBLE.test(character) ? '' : foldDigit(character.normalize('NFKC'))
  if (folded !== character) collector.replace(folded, index, index + 2)
  return index + 2
}

function learnFate(code: number): number {
  const character = String.fromCharCode(code)
  let fate = SAME
  if (isControl(code) || INVISIBLE.test(character)) fate = DROPPED
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
  const folded = foldDigit(character.normalize('NFKC'))
  // Signs such as № stand before a number, and the letters they fold to are not of it.
  return /^\p{S}$/u.test(character) && /[A-Za-z]$/.test(folded) ? `${folded} ` : folded
}

/** The ten decimal digits of a script adjoin in Unicode, in order. */
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
    const code = character.charCodeAt(0)
    if (isControl(code) || INVISIBLE.test(character) || COMBINING.test(character)) continue
    folded += code < 0x80 ? character : foldCharacter(character)
  }
  return folded
}
