/**
 * Classes of characters in the tokenizer's splitting rule. The lowest two bits are the halves of a word that a
 * character may belong to: the first half has upper-case letters, the second lower-case letters.
 */
export const OTHER = 0
export const UPPER = 1
export const LOWER = 2
/** Letters without case. Marks have these bits too. */
export const BOTH = 3
export const MARK = 7
export const NUMBER = 8
export const SPACE = 16
/** A carriage return or line feed. */
export const BREAK = 32
/** The end of the text. */
export const END = 64

const UNKNOWN = 255

/** By code point; filled on demand, because most texts use a few hundred characters. */
const classes = new Uint8Array(0x11_0000).fill(UNKNOWN)

/** @param codePoint of a character; any number from 0 to 0x10ffff. */
export function classOf(codePoint: number): number {
  const known = classes[codePoint] as number
  if (known !== UNKNOWN) return known
  const found = findClass(codePoint)
  classes[codePoint] = found
  return found
}

const TESTS: ReadonlyArray<[RegExp, number]> = [
  [/[\r\n]/u, BREAK],
  // Not `\s`, which has the byte order mark and lacks U+0085.
  [/\p{White_Space}/u, SPACE],
  [/[\p{Lu}\p{Lt}]/u, UPPER],
  [/\p{Ll}/u, LOWER],
  [/[\p{Lm}\p{Lo}]/u, BOTH],
  [/\p{M}/u, MARK],
  [/\p{N}/u, NUMBER],
]

function findClass(codePoint: number): number {
  const character = String.fromCodePoint(codePoint)
  return TESTS.find(([test]) => test.test(character))?.[1] ?? OTHER
}
