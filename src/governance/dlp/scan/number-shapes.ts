import { classAt, DIGIT, isAlphanumericAt, isDigitAt, isWordAt } from '../detectors/characters.ts'
import type { PlannedNumber } from './plan.ts'

/** Written forms of numbers as a tree: from each group of digits, by separator and length, to the next. */
export interface ShapeNode {
  next: (ShapeNode | undefined)[]
  numbers: PlannedNumber[]
}

const LONGEST_GROUP = 19
const SEPARATORS = ' -./'
/** Separators and the start of the form. */
const WIDTH = LONGEST_GROUP + 1

export const newShapeNode = (): ShapeNode => ({ next: [], numbers: [] })

/** Adds a form such as `3-2-4`. */
export function addShape(root: ShapeNode, shape: string, number: PlannedNumber): void {
  let node = root
  let separator = 0
  for (const part of shape.split(/([ \-./])/)) {
    if (SEPARATORS.includes(part)) {
      separator = SEPARATORS.indexOf(part) + 1
      continue
    }
    const key = separator * WIDTH + Number(part)
    node.next[key] ??= newShapeNode()
    node = node.next[key]
  }
  node.numbers.push(number)
}

/**
 * Follows the forms from the group of digits at `start`, and calls `found` for each that is complete.
 * @param found takes the digits without separators, where they end, and whether they look cut out of a longer row
 */
export function walkShapes(
  root: ShapeNode,
  text: string,
  start: number,
  found: (numbers: readonly PlannedNumber[], digits: string, end: number, isCutOut: boolean) => void,
): void {
  let node: ShapeNode | undefined = root
  let index = start
  let separator = 0
  let digits = ''
  let groups = 0
  for (;;) {
    groups++
    let end = index
    while (isDigitAt(text, end) && end - index <= LONGEST_GROUP) end++
    node = end - index > LONGEST_GROUP ? undefined : node.next[separator * WIDTH + end - index]
    if (node === undefined || isWordAt(text, end)) return
    digits += text.slice(index, end)
    if (node.numbers.length > 0 && endsNumber(text, end)) {
      found(node.numbers, digits, end, groups > 1 && isCutOut(text, start, end, groups, index))
    }
    const next = separatorEnd(text, end)
    if (next < 0) return
    separator = separatorAt(text, end, next)
    index = next
  }
}

const EM_DASH = '\u2014'

/** The number of a separator in `SEPARATORS`: a line end counts as a blank, an em dash as a dash. */
function separatorAt(text: string, end: number, next: number): number {
  const sign = next - end === 3 || text[end] === EM_DASH ? '-' : text.charAt(end)
  return SEPARATORS.indexOf(sign === '\n' || sign === '\r' ? ' ' : sign) + 1
}

/**
 * Where the next group starts after a separator at `index`: one of them, two spaces, a line end, or a dash between
 * spaces.
 */
function separatorEnd(text: string, index: number): number {
  const first = text[index]
  if (first === undefined || !(SEPARATORS.includes(first) || /[\n\r\u2014]/.test(first))) return -1
  if (isDigitAt(text, index + 1)) return index + 1
  const second = text[index + 1]
  if (first === '\r' && second === '\n' && isDigitAt(text, index + 2)) return index + 2
  if (first !== ' ') return -1
  if ((second === ' ' || second === '\n') && isDigitAt(text, index + 2)) return index + 2
  const dashed = (second === '-' || second === EM_DASH) && text[index + 2] === ' '
  return dashed && isDigitAt(text, index + 3) ? index + 3 : -1
}

/** Groups that are counted on each side of a number, and the longest that count. They bound what a stream holds back. */
const MOST_NEIGHBOURS = 6
const LONGEST_NEIGHBOUR = 5
/** Columns of a table are so far apart at most. */
const WIDEST_COLUMN_GAP = 4

/** Groups of digits beside a number, with nothing but blanks between. */
interface Neighbours {
  /** How many of them are as long as the number's own groups. */
  alike: number
  /** Whether there is any. */
  any: boolean
  /** Whether more text could add to them. */
  open: boolean
}

/**
 * Whether a number of several groups looks cut out of a row of numbers: groups of digits stand on both sides, or such
 * as long as its own that are not a list of numbers like it (a list has a multiple of its groups).
 */
function isCutOut(text: string, start: number, end: number, groups: number, lastStart: number): boolean {
  const lines = isWrapped(text, start, end)
  const before = groupsBefore(text, start, lines)
  const after = neighboursAfter(text, end, end - lastStart, lines)
  if (!before.any && (!after.any || isExpiry(text, end))) return false
  if (lines || before.alike >= MOST_NEIGHBOURS || after.alike >= MOST_NEIGHBOURS) return true
  const isList = before.alike % groups === 0 && after.alike % groups === 0
  if (!isList) return true
  return before.any && after.any && (before.alike === 0 || after.alike === 0)
}

/** The month and year of expiry after a card, and its code. */
const EXPIRY = / (?:0[1-9]|1[0-2]) ?[2-4]\d (?:\d{3}(?!\d)|\d{4}(?! ?\d))/y

function isExpiry(text: string, end: number): boolean {
  EXPIRY.lastIndex = end
  return EXPIRY.test(text)
}

const isWrapped = (text: string, start: number, end: number): boolean => text.slice(start, end).includes('\n')

/** Where the blanks that start at `index` end, a line end counting as one if `lines` is set; `index` if there are none. */
function gapEnd(text: string, index: number, lines: boolean): number {
  let end = index
  while (end - index < WIDEST_COLUMN_GAP && (text[end] === ' ' || (lines && /[\r\n]/.test(text.charAt(end)))))
    end++
  return end
}

function neighboursAfter(text: string, end: number, length: number, lines: boolean): Neighbours {
  const found = { alike: 0, any: false, open: false }
  let index = end
  while (found.alike < MOST_NEIGHBOURS) {
    const next = gapEnd(text, index, lines)
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
function groupsBefore(text: string, start: number, lines: boolean): Omit<Neighbours, 'open'> {
  let length = 0
  while (isDigitAt(text, start + length)) length++
  let index = start
  const found = { alike: 0, any: endsGroup(text, gapStart(text, start, lines), start) }
  while (length <= LONGEST_NEIGHBOUR && found.alike < MOST_NEIGHBOURS) {
    const stop = gapStart(text, index, lines)
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

function gapStart(text: string, index: number, lines: boolean): number {
  let start = index
  while (
    index - start < WIDEST_COLUMN_GAP &&
    (text[start - 1] === ' ' || (lines && /[\r\n]/.test(text.charAt(start - 1))))
  )
    start--
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

/** Blanks between digits written one by one; a group's end may be wider, and have a dash. */
const GAP = /(?: {0,2}[-.] {0,2}| {1,3})/y

/**
 * Digits one by one with the same sign between them, but for the gaps between groups: `4 1 1 1 - 1 1 ...`.
 * @returns null unless there are 12 to 19, or more text could make it so (`open`)
 */
export function readSpacedDigits(
  text: string,
  start: number,
): { digits: string; end: number; open: boolean } | null {
  const sign = text.charAt(start + 1)
  if (sign !== '' && !/[ .-]/.test(sign)) return null
  if (/[ .-]/.test(text.charAt(start - 1)) && isDigitAt(text, start - 2)) return null
  let index = start
  let digits = ''
  let others = 0
  let open = false
  while (digits.length <= LONGEST_GROUP && isDigitAt(text, index) && !isDigitAt(text, index + 1)) {
    digits += text[index]
    GAP.lastIndex = index + 1
    const gap = GAP.exec(text)?.[0] ?? ''
    const next = index + 1 + gap.length
    open = next >= text.length && gap.length < MOST_GAP
    if (gap === '' || !isDigitAt(text, next)) break
    if (gap !== sign && ++others > MOST_GAPS_OF_GROUPS) return null
    index = next
  }
  const whole = digits.length >= 12 && digits.length <= LONGEST_GROUP && endsNumber(text, index + 1)
  return whole || open ? { digits: whole ? digits : '', end: index + 1, open } : null
}

const MOST_GAP = 5
const MOST_GAPS_OF_GROUPS = 5

/** Whether more text could complete a form from the group of digits at `start`, or show that it is cut out of a row. */
export function isOpenShape(root: ShapeNode, text: string, start: number): boolean {
  let node: ShapeNode | undefined = root
  let index = start
  let separator = 0
  let digits = ''
  for (let groups = 1; ; groups++) {
    let end = index
    while (isDigitAt(text, end) && end - index <= LONGEST_GROUP) end++
    const key: number = separator * WIDTH + end - index
    if (end >= text.length)
      return node.next.some((_, other) => other >= key && other < (separator + 1) * WIDTH)
    node = end - index > LONGEST_GROUP ? undefined : node.next[key]
    if (node === undefined) return false
    digits += text.slice(index, end)
    const { numbers } = node
    if (
      groups > 1 &&
      numbers.some(({ detector }) => detector.validate(digits)) &&
      neighboursAfter(text, end, end - index, isWrapped(text, start, end)).open
    ) {
      return true
    }
    const next = separatorEnd(text, end)
    if (next < 0) return node.next.length > 0 && OPEN_SEPARATOR.test(text.slice(end, end + 4))
    separator = separatorAt(text, end, next)
    index = next
  }
}

const OPEN_SEPARATOR = /^(?:[-./\n\u2014]| {1,2}| ?\r?\n| \r| [-\u2014] ?|\r)$/

/** Whether a number can end here: no letter or digit adjoins, nor a sign that ties one to it. */
function endsNumber(text: string, end: number): boolean {
  const after = text[end]
  if (after === undefined) return true
  if (isWordAt(text, end) || after === '%') return false
  return !(
    (after === '-' || after === '_' || after === '.' || after === '@') &&
    isAlphanumericAt(text, end + 1)
  )
}

/** Whether a number can start at `start`: not inside of another token; doubtful after a sign. */
export function startsNumber(text: string, start: number): 'yes' | 'doubtful' | 'no' {
  const before = text[start - 1]
  if (before === undefined) return 'yes'
  if (isWordAt(text, start - 1)) return 'no'
  if (before === '#' || before === '$' || before === '€' || before === '£' || before === '¥')
    return 'doubtful'
  if (!isAlphanumericAt(text, start - 2)) return before === '.' ? 'doubtful' : 'yes'
  if (before === '.') return (classAt(text, start - 2) & DIGIT) !== 0 ? 'no' : 'doubtful'
  if (before === '/') return 'doubtful'
  if (before !== '-' && before !== '_') return 'yes'
  for (let index = start - 2; index >= 0 && start - index < 14 && isAlphanumericAt(text, index); index--) {
    if ((classAt(text, index) & DIGIT) !== 0) return 'no'
  }
  return 'yes'
}
