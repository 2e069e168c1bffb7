import { classAt, DIGIT, isAlphanumericAt, isDigitAt, isWordAt } from './detectors/characters.ts'
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
 * Follows the forms from the group of digits at `start`, and shows each that is complete.
 * @param found gets the digits without separators, where they end, and whether they look cut out of more
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
    const sign = next - end === 3 ? '-' : text.charAt(end)
    separator = SEPARATORS.indexOf(sign === '\n' || sign === '\r' ? ' ' : sign) + 1
    index = next
  }
}

/**
 * Where the next group starts after a separator at `index`: one of them, two spaces, a line end, or a dash between
 * spaces.
 */
function separatorEnd(text: string, index: number): number {
  const first = text[index]
  if (first === undefined || !(SEPARATORS.includes(first) || first === '\n' || first === '\r')) return -1
  if (isDigitAt(text, index + 1)) return index + 1
  const second = text[index + 1]
  if (first === '\r' && second === '\n' && isDigitAt(text, index + 2)) return index + 2
  if (first !== ' ') return -1
  if ((second === ' ' || second === '\n') && isDigitAt(text, index + 2)) return index + 2
  return second === '-' && text[index + 2] === ' ' && isDigitAt(text, index + 3) ? index + 3 : -1
}

/** Groups that are counted on each side of a number, and the longest that are: so far a stream has to look. */
const MOST_NEIGHBOURS = 6
const LONGEST_NEIGHBOUR = 5

/**
 * Whether groups as long as the first and last stand beside a number of several groups, so that it looks cut out of
 * a longer one. A list of such numbers does not: it has a multiple of their groups.
 */
function isCutOut(text: string, start: number, end: number, groups: number, lastStart: number): boolean {
  const length = end - lastStart
  if (length > LONGEST_NEIGHBOUR) return false
  let others = groupsBefore(text, start)
  let index = end
  for (let after = 0; after < MOST_NEIGHBOURS; after++) {
    const next = separatorEnd(text, index)
    if (next < 0 || text[index] === '/') break
    let stop = next
    while (isDigitAt(text, stop) && stop - next <= length) stop++
    if (stop - next !== length) break
    others++
    index = stop
  }
  return others % groups !== 0
}

/** Groups of the same length before `start`, the first of which may begin with letters as that of an account does. */
function groupsBefore(text: string, start: number): number {
  let length = 0
  while (isDigitAt(text, start + length)) length++
  if (length > LONGEST_NEIGHBOUR) return 0
  let count = 0
  let index = start
  while (count < MOST_NEIGHBOURS && text[index - 1] === ' ') {
    const first = index - 1 - length
    let digits = 0
    for (let at = first; at < index - 1; at++) if (isDigitAt(text, at)) digits++
    if (digits < 2 || !isAlphanumericAt(text, first) || isAlphanumericAt(text, first - 1)) break
    count++
    index = first
  }
  return count
}

/** Blanks between digits written one by one; a group's end may be wider. */
const WIDEST_GAP = 3

/**
 * Digits one by one with the same sign between them: `4 1 1 1 ...`.
 * @returns null unless there are 12 to 19, or `open` if the text ends before that is known
 */
export function readSpacedDigits(
  text: string,
  start: number,
): { digits: string; end: number } | 'open' | null {
  const sign = text.charAt(start + 1)
  if (sign !== '' && !/[ .-]/.test(sign)) return null
  if (text[start - 1] === sign && isDigitAt(text, start - 2)) return null
  let index = start
  let digits = ''
  while (digits.length <= LONGEST_GROUP && isDigitAt(text, index) && !isDigitAt(text, index + 1)) {
    digits += text[index]
    let next = index + 1
    while (text[next] === sign && next - index <= (sign === ' ' ? WIDEST_GAP : 1)) next++
    if (next >= text.length) return 'open'
    if (next === index + 1 || !isDigitAt(text, next)) break
    index = next
  }
  const whole = digits.length >= 12 && digits.length <= LONGEST_GROUP && endsNumber(text, index + 1)
  return whole ? { digits, end: index + 1 } : null
}

/** Whether more text could complete a form from the group of digits at `start`, or show that one was cut out. */
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
      mayHaveNeighbours(text, end, end - index)
    ) {
      return true
    }
    const next = separatorEnd(text, end)
    if (next < 0) return node.next.length > 0 && OPEN_SEPARATOR.test(text.slice(end, end + 4))
    const sign = next - end === 3 ? '-' : text.charAt(end)
    separator = SEPARATORS.indexOf(sign === '\n' || sign === '\r' ? ' ' : sign) + 1
    index = next
  }
}

const OPEN_SEPARATOR = /^(?:[-./\n]| {1,2}| ?\r?\n| \r| - ?|\r)$/

/** Whether groups as long as the one that ends at `end` follow up to the end of the text. */
function mayHaveNeighbours(text: string, end: number, length: number): boolean {
  let index = end
  for (let count = 0; count < MOST_NEIGHBOURS && length <= LONGEST_NEIGHBOUR; count++) {
    const next = separatorEnd(text, index)
    if (next < 0) return OPEN_SEPARATOR.test(text.slice(index, index + 4))
    let stop = next
    while (isDigitAt(text, stop) && stop - next <= length) stop++
    if (stop >= text.length) return true
    if (stop - next !== length) return false
    index = stop
  }
  return false
}

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

/** How freely a number may start at `start`: not inside of another token, or only with a doubt. */
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
