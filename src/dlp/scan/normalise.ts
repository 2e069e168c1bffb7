import type { Slices } from '../../lib/slices.ts'
import { decodeEscape, ESCAPE_HINT, escapeLength } from './escapes.ts'
import { DROPPED, fateOf, foldPoint, foldText, MARK, REPLACED, replacementOf } from './folded-characters.ts'
import { identity, PART_UNITS, type Reading } from './reading.ts'
import type { ScanBudget } from './scan-budget.ts'

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

/** Built in chunks, because a text that grows by single units takes long to be read for the first time. */
function textOf(units: Uint16Array): string {
  const chunks: string[] = []
  for (let at = 0; at < units.length; at += CHUNK_UNITS) {
    const chunk = units.subarray(at, at + CHUNK_UNITS)
    // V8 takes six times as long to spread a typed array.
    chunks.push(String.fromCharCode.apply(null, chunk as unknown as number[]))
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
  const fate = fateOf(code)
  if (fate === MARK) return foldMarks(original, index, collector)
  const end = index + 1
  if (fate === DROPPED) collector.replace('', index, end)
  else if (fate === REPLACED) collector.replace(replacementOf(code), index, end)
  return end
}

/** No single character composes with more marks than this. */
const MOST_MARKS = 4

function foldMarks(original: string, index: number, collector: Collector): number {
  let end = index + 1
  while (end - index < MOST_MARKS) {
    const code = original.charCodeAt(end)
    if (!(code >= 0x300) || fateOf(code) !== MARK) break
    end++
  }
  collector.compose(index, end)
  return end
}

function foldAstral(original: string, index: number, collector: Collector): number {
  const point = original.codePointAt(index) ?? 0
  if (point < 0x10000) return index + 1
  const character = String.fromCodePoint(point)
  const folded = foldPoint(character)
  if (folded !== character) collector.replace(folded, index, index + 2)
  return index + 2
}
