import { isDigitAt, isWordAt } from '../detectors/characters.ts'
import { LONGEST_GROUP, neighboursAfter, rowGap } from './number-rows.ts'
import type { PlannedNumber } from './plan.ts'

/** Written forms of numbers as a tree: from each group of digits, by separator and length, to the next. */
export interface ShapeNode {
  next: (ShapeNode | undefined)[]
  numbers: PlannedNumber[]
}

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

/** A form that digits complete. */
export interface ShapeMatch {
  numbers: readonly PlannedNumber[]
  /** Digits without separators. */
  digits: string
  end: number
  groups: number
  /** Where the last group starts. */
  lastStart: number
  /** Whether a tab or `_` stands between groups, which join fields and names more often than parts of a number. */
  joinsFields: boolean
}

const NOTHING: readonly ShapeMatch[] = []

/** Follows the forms from the group of digits at `start`. @returns those that are complete, the shorter ones first */
export function walkShapes(root: ShapeNode, text: string, start: number): readonly ShapeMatch[] {
  let found = NOTHING
  let node: ShapeNode | undefined = root
  let index = start
  let separator = 0
  let digits = ''
  let joinsFields = false
  for (let groups = 1; ; groups++) {
    let end = index
    while (isDigitAt(text, end) && end - index <= LONGEST_GROUP) end++
    node = end - index > LONGEST_GROUP ? undefined : node.next[separator * WIDTH + end - index]
    if (node === undefined) return found
    digits += text.slice(index, end)
    if (node.numbers.length > 0) {
      const match = { numbers: node.numbers, digits, end, groups, lastStart: index, joinsFields }
      found = found === NOTHING ? [match] : [...found, match]
    }
    const next = isWordAt(text, end) ? -1 : separatorEnd(text, end)
    if (next < 0) return found
    joinsFields ||= text[end] === '\t' || text[end] === '_'
    separator = separatorAt(text, end, next)
    index = next
  }
}

const EM_DASH = '\u2014'
/** Signs that separate groups as one of `SEPARATORS` does. */
const EQUIVALENTS: Readonly<Record<string, string>> = {
  '\n': ' ', '\r': ' ', '\t': ' ', _: '-', [EM_DASH]: '-',
} // biome-ignore format: a list

/** The number of a separator in `SEPARATORS`. */
function separatorAt(text: string, end: number, next: number): number {
  const sign = next - end === 3 ? '-' : text.charAt(end)
  return SEPARATORS.indexOf(EQUIVALENTS[sign] ?? sign) + 1
}

const FIRST_OF_SEPARATOR = /[ \-./\n\r\t_\u2014]/

/**
 * Where the next group starts after a separator at `index`: one of them, two spaces, a line end, or a dash between
 * spaces.
 */
function separatorEnd(text: string, index: number): number {
  const first = text[index]
  if (first === undefined || !FIRST_OF_SEPARATOR.test(first)) return -1
  if (isDigitAt(text, index + 1)) return index + 1
  const second = text[index + 1]
  if (first === '\r' && second === '\n' && isDigitAt(text, index + 2)) return index + 2
  if (first !== ' ') return -1
  if ((second === ' ' || second === '\n') && isDigitAt(text, index + 2)) return index + 2
  const dashed = (second === '-' || second === EM_DASH) && text[index + 2] === ' '
  return dashed && isDigitAt(text, index + 3) ? index + 3 : -1
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
  const whole = digits.length >= 12 && digits.length <= LONGEST_GROUP && !isDigitAt(text, index + 1)
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
  for (;;) {
    let end = index
    while (isDigitAt(text, end) && end - index <= LONGEST_GROUP) end++
    const key: number = separator * WIDTH + end - index
    if (end >= text.length)
      return node.next.some((_, other) => other >= key && other < (separator + 1) * WIDTH)
    node = end - index > LONGEST_GROUP ? undefined : node.next[key]
    if (node === undefined) return false
    digits += text.slice(index, end)
    if (isOpenRow(node.numbers, text, start, end, digits, index)) return true
    const next = separatorEnd(text, end)
    if (next < 0) return node.next.length > 0 && OPEN_SEPARATOR.test(text.slice(end, end + 4))
    separator = separatorAt(text, end, next)
    index = next
  }
}

/** Whether more text could show that a complete number is cut out of a row. */
function isOpenRow(
  numbers: readonly PlannedNumber[],
  text: string,
  start: number,
  end: number,
  digits: string,
  lastStart: number,
): boolean {
  const gap = lastStart > start ? rowGap(text, start, lastStart) : null
  if (gap === null || !numbers.some(({ detector }) => detector.validate(digits))) return false
  return neighboursAfter(text, end, end - lastStart, gap).open
}

const OPEN_SEPARATOR = /^(?:[-./\n\t_\u2014]| {1,2}| ?\r?\n| \r| [-\u2014] ?|\r)$/
