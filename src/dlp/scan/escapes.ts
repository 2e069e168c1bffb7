/** Escapes: percent encoding, HTML entities, and the backslashes of JSON and of code. */

/** Whether a text may have an escape at all. */
export const ESCAPE_HINT = /%[0-9a-f]{2}|&(?:#|[a-z])|\\[nrtbfux"'/\\]/i

/** An incomplete escape at the end of a text. */
export const OPEN_ESCAPE =
  /(?:(?:%(?:25){0,2}[0-9a-f]{2}){0,8}%(?:25){0,2}[0-9a-f]{0,2}|&(?:amp;){0,2}#?[0-9a-z]{0,8}|\\{1,8}(?:[ux][0-9a-f]{0,4})?|[\ud800-\udbff])$/i

const ENTITIES: Record<string, string> = {
  quot: '"', apos: "'", lt: '<', gt: '>', amp: '&', nbsp: ' ', ensp: ' ', emsp: ' ', thinsp: ' ', Tab: '\t',
  NewLine: '\n', commat: '@', period: '.', colon: ':', semi: ';', comma: ',', sol: '/', bsol: '\\', hyphen: '-',
  dash: '-', ndash: '-', shy: '', zwnj: '', zwj: '', lowbar: '_', UnderBar: '_', plus: '+', equals: '=',
  num: '#', percnt: '%', dollar: '$', excl: '!', ast: '*', lpar: '(', rpar: ')', quest: '?', verbar: '|',
  lsqb: '[', rsqb: ']', lcub: '{', rcub: '}', Hat: '^', grave: '`',
} // biome-ignore format: one name after another

const SINGLE: Record<string, string> = {
  n: '\n',
  r: '\n',
  t: '\t',
  b: ' ',
  f: ' ',
  '"': '"',
  "'": "'",
  '/': '/',
}

/** More backslashes than three levels of JSON need (1, 3, 7) are no escape. */
const MOST_BACKSLASHES = 7

let consumed = 0

/** Number of units of the last escape that `decodeEscape` found. */
export function escapeLength(): number {
  return consumed
}

/**
 * Decodes the escape that starts at `index`, which holds `%`, `&` or a backslash.
 * @returns the decoded text (`escapeLength` gives the length of the escape), or '' if there is none or it is invalid
 */
export function decodeEscape(text: string, index: number): string {
  const first = text.charCodeAt(index)
  if (first === 0x25) return decodePercent(text, index)
  return first === 0x26 ? decodeEntity(text, index) : decodeBackslash(text, index)
}

/** The value of two hexadecimal digits, or -1. */
function hexByte(text: string, index: number): number {
  const high = hexDigit(text.charCodeAt(index))
  const low = hexDigit(text.charCodeAt(index + 1))
  return high < 0 || low < 0 ? -1 : high * 16 + low
}

function hexDigit(code: number): number {
  if (code >= 0x30 && code <= 0x39) return code - 0x30
  const lower = code | 0x20
  return lower >= 0x61 && lower <= 0x66 ? lower - 0x57 : -1
}

/** Reads one encoded byte; `%25` before two more digits is a percent sign that was itself encoded. */
function percentByte(text: string, index: number): { value: number; end: number } | null {
  if (text.charCodeAt(index) !== 0x25) return null
  let position = index + 1
  for (let level = 0; level < 2 && text.startsWith('25', position); level++) {
    if (hexByte(text, position + 2) < 0) break
    position += 2
  }
  const value = hexByte(text, position)
  return value < 0 ? null : { value, end: position + 2 }
}

function decodePercent(text: string, index: number): string {
  const first = percentByte(text, index)
  if (first === null) return ''
  const { value } = first
  const more = value < 0x80 ? 0 : value >= 0xf0 ? 3 : value >= 0xe0 ? 2 : value >= 0xc2 ? 1 : -1
  if (more < 0 || value > 0xf4) return ''
  let point = more === 0 ? value : value & (0x3f >> more)
  let end = first.end
  for (let count = 0; count < more; count++) {
    const next = percentByte(text, end)
    if (next === null || (next.value & 0xc0) !== 0x80) return ''
    point = point * 64 + (next.value & 0x3f)
    end = next.end
  }
  return point > 0x10ffff ? '' : finish(index, end, String.fromCodePoint(point))
}

const NUMERIC = /#(?:x([0-9a-f]{1,6})|([0-9]{1,7}));?/iy
const NAMED = /([a-z]{2,8});/iy

function decodeEntity(text: string, index: number): string {
  let position = index + 1
  while (text.startsWith('amp;', position) && position - index < 12) position += 4
  NUMERIC.lastIndex = position
  const numeric = NUMERIC.exec(text)
  if (numeric !== null) {
    const point = numeric[1] === undefined ? Number(numeric[2]) : Number.parseInt(numeric[1], 16)
    if (point === 0 || point > 0x10ffff) return ''
    return finish(index, NUMERIC.lastIndex, String.fromCodePoint(point))
  }
  NAMED.lastIndex = position
  const named = NAMED.exec(text)
  if (named !== null) {
    const character = ENTITIES[named[1] ?? '']
    if (character !== undefined) return finish(index, NAMED.lastIndex, character || '\u200b')
  }
  return position > index + 1 ? finish(index, position, '&') : ''
}

function decodeBackslash(text: string, index: number): string {
  let end = index
  while (text.charCodeAt(end) === 0x5c && end - index <= MOST_BACKSLASHES) end++
  if (end - index > MOST_BACKSLASHES) return ''
  const letter = text.charAt(end)
  const single = SINGLE[letter]
  if (single !== undefined) return finish(index, end + 1, single)
  if (letter === 'x') {
    const value = hexByte(text, end + 1)
    return value < 0 ? '' : finish(index, end + 3, String.fromCharCode(value))
  }
  if (letter !== 'u') return ''
  const high = hexByte(text, end + 1)
  const low = hexByte(text, end + 3)
  return high < 0 || low < 0 ? '' : finish(index, end + 5, String.fromCharCode(high * 256 + low))
}

function finish(start: number, end: number, text: string): string {
  consumed = end - start
  return text
}
