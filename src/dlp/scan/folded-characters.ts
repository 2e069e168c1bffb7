const SAME = 1
export const DROPPED = 2
export const REPLACED = 3
export const MARK = 4

/** The treatment of each BMP character, computed when it first occurs; 0 before. */
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

/** The result for a UTF-16 unit that is no surrogate: unchanged, DROPPED, REPLACED or a combining MARK. */
export const fateOf = (code: number): number => fates[code] || learnFate(code)

/** The text in the place of a unit that is REPLACED. */
export const replacementOf = (code: number): string => replacements.get(code) ?? ''

/** The text in the place of a character beyond the BMP. */
export const foldPoint = (character: string): string =>
  INVISIBLE.test(character) ? '' : foldDigit(character.normalize('NFKC'))

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
  return fate
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

/** A text without invisible characters and marks, with all others folded. */
export function foldText(text: string): string {
  let folded = ''
  for (const character of text) {
    const code = character.charCodeAt(0)
    if (isControl(code) || INVISIBLE.test(character) || COMBINING.test(character)) continue
    folded += code < 0x80 ? character : foldCharacter(character)
  }
  return folded
}
