import { digitIn, isAlphanumericAt, isDigitAt, isWordAt } from '../detectors/characters.ts'

/** The longest group of digits that a number has. */
export const LONGEST_GROUP = 19
/** Groups that are counted on each side of a number, and the longest that count. They bound what a stream holds back. */
const MOST_NEIGHBOURS = 6
const LONGEST_NEIGHBOUR = 5
/** Columns of a table are so far apart at most. */
const WIDEST_COLUMN_GAP = 4

/** Groups of digits beside a number, with nothing but blanks between. */
interface Neighbours {
  /** Number of groups that are as long as the number's own groups. */
  alike: number
  /** Whether there is any. */
  any: boolean
  /** Whether more text could add to them. */
  open: boolean
}

/**
 * Place of a number of several groups in its row: the whole row, perhaps part of a longer number (groups continue at
 * one end), or the middle of a longer number or of a table.
 */
type PlaceInRow = 'alone' | 'atAnEnd' | 'within'

/**
 * Reads what goes on with the number's own separator on either side: groups after the same blank, or a token with a digit
 * after the same sign. A list of numbers like it, which has a multiple of its groups, makes it no part of another.
 * @param lastStart where its last group starts
 */
export function placeInRow(
  text: string,
  start: number,
  end: number,
  groups: number,
  lastStart: number,
): PlaceInRow {
  if (groups === 1) return 'alone'
  if (!isBlankAt(text, lastStart - 1)) return placeBetweenSigns(text, start, end, lastStart)
  const gap = gapOf(text, start, lastStart)
  const before = groupsBefore(text, start, gap)
  const after = neighboursAfter(text, end, end - lastStart, gap)
  if (!before.any && (!after.any || isExpiry(text, end))) return 'alone'
  if (gap.lines || before.alike >= MOST_NEIGHBOURS || after.alike >= MOST_NEIGHBOURS) return 'within'
  const isList = before.alike % groups === 0 && after.alike % groups === 0
  if (before.any && after.any) return isList && before.alike > 0 && after.alike > 0 ? 'alone' : 'within'
  return isList ? 'alone' : 'atAnEnd'
}

function placeBetweenSigns(text: string, start: number, end: number, lastStart: number): PlaceInRow {
  let firstEnd = start
  while (isDigitAt(text, firstEnd)) firstEnd++
  const before = text[start - 1] === text[firstEnd] && digitIn(text, start - 2, -1)
  const after = text[end] === text[lastStart - 1] && digitIn(text, end + 1, 1)
  if (before && after) return 'within'
  return before || after ? 'atAnEnd' : 'alone'
}

/** The gap between the groups of a row. */
interface Gap {
  blank: ' ' | '\t'
  /** Whether a line end counts as one, as in a number that a line end parts. */
  lines: boolean
}

const isBlankAt = (text: string, index: number): boolean => /[ \t\r\n]/.test(text.charAt(index))

/** The gap of the row of a number from its own; null for one whose groups are separated by signs. */
export function rowGap(text: string, start: number, lastStart: number): Gap | null {
  return isBlankAt(text, lastStart - 1) ? gapOf(text, start, lastStart) : null
}

const gapOf = (text: string, start: number, lastStart: number): Gap => ({
  blank: text[lastStart - 1] === '\t' ? '\t' : ' ',
  lines: text.slice(start, lastStart).includes('\n'),
})

/** The month and year of expiry after a card, and its code. */
const EXPIRY = / (?:0[1-9]|1[0-2]) ?[2-4]\d (?:\d{3}(?!\d)|\d{4}(?! ?\d))/y

function isExpiry(text: string, end: number): boolean {
  EXPIRY.lastIndex = end
  return EXPIRY.test(text)
}

const isGapAt = (text: string, index: number, { blank, lines }: Gap): boolean =>
  text[index] === blank || (lines && /[\r\n]/.test(text.charAt(index)))

/** Where the gap that starts at `index` ends; `index` if there is none. */
function gapEnd(text: string, index: number, gap: Gap): number {
  let end = index
  while (end - index < WIDEST_COLUMN_GAP && isGapAt(text, end, gap)) end++
  return end
}

export function neighboursAfter(text: string, end: number, length: number, gap: Gap): Neighbours {
  const found = { alike: 0, any: false, open: false }
  let index = end
  while (found.alike < MOST_NEIGHBOURS) {
    const next = gapEnd(text, index, gap)
    let stop = next
    while (isDigitAt(text, stop) && stop - next <= LONGEST_GROUP) stop++
    if (stop >= text.length) found.open = true
    // A time, a date or an amount is no column of a table.
    if (next === index || stop === next || isWordAt(text, stop) || /[.,:/%-]/.test(text.charAt(stop))) break
    found.any = true
    if (stop - next !== length || length > LONGEST_NEIGHBOUR) break
    found.alike++
    index = stop
  }
  return found
}

/** Groups before `start`, the first of which may begin with letters as that of an account does. */
function groupsBefore(text: string, start: number, gap: Gap): Omit<Neighbours, 'open'> {
  let length = 0
  while (isDigitAt(text, start + length)) length++
  let index = start
  const found = { alike: 0, any: endsGroup(text, gapStart(text, start, gap), start) }
  while (length <= LONGEST_NEIGHBOUR && found.alike < MOST_NEIGHBOURS) {
    const stop = gapStart(text, index, gap)
    const first = stop - length
    let digits = 0
    for (let at = first; at < stop; at++) if (isDigitAt(text, at)) digits++
    if (stop === index || digits < 2 || !isAlphanumericAt(text, first) || isAlphanumericAt(text, first - 1))
      break
    found.alike++
    found.any = true
    index = first
  }
  return found
}

function gapStart(text: string, index: number, gap: Gap): number {
  let start = index
  while (index - start < WIDEST_COLUMN_GAP && isGapAt(text, start - 1, gap)) start--
  return start
}

/** Whether a group of digits alone ends at `stop`, before the blanks that end at `start`. */
function endsGroup(text: string, stop: number, start: number): boolean {
  if (stop === start) return false
  let first = stop
  while (isDigitAt(text, first - 1) && stop - first <= LONGEST_GROUP) first--
  const before = text.charAt(first - 1)
  return first < stop && !isWordAt(text, first - 1) && !/[.,:/#+-]/.test(before)
}
