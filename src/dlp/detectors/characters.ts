import type { Slices } from '../../lib/slices.ts'

/** Classes of characters, as bits, by which a scan finds the places for its detectors. */
export const LOWER_LETTER = 1
export const UPPER_LETTER = 2
export const DIGIT = 4
export const DOT = 8
export const AT = 16
export const COLON = 32
export const DASH = 64
export const UNDERSCORE = 128
export const SLASH = 256
export const EQUALS = 512
/** Other characters that stand inside of addresses, keys and passwords. */
export const GLUE = 1024
/** Letters beyond ASCII, as in international addresses. */
export const ACCENTED = 2048

export const LETTER = LOWER_LETTER | UPPER_LETTER
export const ALPHANUMERIC = LETTER | DIGIT

/** The last of the Latin, Greek and Cyrillic letters. Scripts without spaces are excluded: their texts would be one run. */
const LAST_ACCENTED = 0x52f
const table = new Uint16Array(LAST_ACCENTED + 1)

const fill = (characters: string, bit: number): void => {
  for (const character of characters) table[character.charCodeAt(0)] = bit
}
fill('abcdefghijklmnopqrstuvwxyz', LOWER_LETTER)
fill('ABCDEFGHIJKLMNOPQRSTUVWXYZ', UPPER_LETTER)
fill('0123456789', DIGIT)
fill('.', DOT)
fill('@', AT)
fill(':', COLON)
fill('-', DASH)
fill('_', UNDERSCORE)
fill('/', SLASH)
fill('=', EQUALS)
fill('+%~&#!$*?^\\', GLUE)
table.fill(ACCENTED, 0xc0, 0x250)
table.fill(ACCENTED, 0x386)
table[0xd7] = 0
table[0xf7] = 0

/** The index of a character from `start` on, before `end`; -1 if there is none. No more of the text is read. */
export function indexWithin(text: string, character: string, start: number, end: number): number {
  const found = text.slice(start, end).indexOf(character)
  return found < 0 ? -1 : start + found
}

/** The class of the unit at `index`; 0 for what separates tokens, and beyond the text's ends. */
export function classAt(text: string, index: number): number {
  const code = text.charCodeAt(index)
  return code <= LAST_ACCENTED ? (table[code] ?? 0) : 0
}

export function isAlphanumericAt(text: string, index: number): boolean {
  return (classAt(text, index) & ALPHANUMERIC) !== 0
}

/** Whether a letter, with accents or without, or a digit is there: no number or name ends before one. */
export function isWordAt(text: string, index: number): boolean {
  return (classAt(text, index) & (ALPHANUMERIC | ACCENTED)) !== 0
}

export function isDigitAt(text: string, index: number): boolean {
  const code = text.charCodeAt(index)
  return code >= 0x30 && code <= 0x39
}

/** Units of a token beside a value that are searched for a digit. */
const LONGEST_SEARCHED = 14

/** Whether the run of letters and digits that begins at `from`, and goes on in a direction, has a digit. */
export function digitIn(text: string, from: number, step: 1 | -1): boolean {
  let index = from
  for (let count = 0; count < LONGEST_SEARCHED && isAlphanumericAt(text, index); count++, index += step) {
    if (isDigitAt(text, index)) return true
  }
  return false
}

/** Letters right before a value that can be its name. */
const LONGEST_GLUED_NAME = 32

/** Where the first digit stands after the letters that begin a word at `start`; -1 if there is none near. */
export function firstDigit(text: string, start: number): number {
  let index = start
  while (index - start <= LONGEST_GLUED_NAME && (classAt(text, index) & LETTER) !== 0) index++
  return isDigitAt(text, index) ? index : -1
}

/** Where the letters start that a name is made of which ends right before `index`; -1 if a word starts otherwise. */
export function gluedNameStart(text: string, index: number): number {
  let start = index
  while (index - start <= LONGEST_GLUED_NAME && (classAt(text, start - 1) & LETTER) !== 0) start--
  return start < index && !isAlphanumericAt(text, start - 1) ? start : -1
}

/** Units of a run that are read in one slice. */
const PART_UNITS = 64 * 1024

/** A set of ASCII characters. */
export class CharacterSet {
  #members = new Uint8Array(128)

  constructor(members: string) {
    for (const member of members) this.#members[member.charCodeAt(0)] = 1
  }

  hasAt(text: string, index: number): boolean {
    const code = text.charCodeAt(index)
    return code < 128 && this.#members[code] === 1
  }

  /** The end of the run of members that starts at `index`. */
  runEnd(text: string, index: number, limit = text.length): number {
    let end = index
    while (end < limit && this.hasAt(text, end)) end++
    return end
  }

  /** `runEnd` in slices. */
  *runEndInSlices(text: string, index: number, limit = text.length): Slices<number> {
    for (let from = index; ; ) {
      const part = Math.min(limit, from + PART_UNITS)
      const end = this.runEnd(text, from, part)
      if (end < part || end >= limit) return end
      from = end
      yield
    }
  }

  /** The start of the run of members that ends before `index`. */
  runStart(text: string, index: number, limit = 0): number {
    let start = index
    while (start > limit && this.hasAt(text, start - 1)) start--
    return start
  }

  /** `runStart` in slices. */
  *runStartInSlices(text: string, index: number, limit = 0): Slices<number> {
    for (let from = index; ; ) {
      const part = Math.max(limit, from - PART_UNITS)
      const start = this.runStart(text, from, part)
      if (start > part || start <= limit) return start
      from = start
      yield
    }
  }
}

const LOWERCASE = 'abcdefghijklmnopqrstuvwxyz'
const UPPERCASE = LOWERCASE.toUpperCase()
const DIGITS = '0123456789'

export const LETTERS_AND_DIGITS = new CharacterSet(UPPERCASE + LOWERCASE + DIGITS)
export const UPPER_AND_DIGITS = new CharacterSet(UPPERCASE + DIGITS)
export const URL_SAFE = new CharacterSet(`${UPPERCASE}${LOWERCASE}${DIGITS}-_`)
export const BASE64_ANY = new CharacterSet(`${UPPERCASE}${LOWERCASE}${DIGITS}-_+/`)
export const BASE64 = new CharacterSet(`${UPPERCASE}${LOWERCASE}${DIGITS}+/`)
export const HEXADECIMAL = new CharacterSet(`${DIGITS}abcdefABCDEF`)
export const LOWER_HEXADECIMAL = new CharacterSet(`${DIGITS}abcdef`)
export const LOWER_AND_DIGITS = new CharacterSet(LOWERCASE + DIGITS)
export const URL_SAFE_AND_DOT = new CharacterSet(`${UPPERCASE}${LOWERCASE}${DIGITS}-_.`)
export const MACHINE_READABLE = new CharacterSet(`${UPPERCASE}${DIGITS}<`)
