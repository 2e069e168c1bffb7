import { classAt, DIGIT, isAlphanumericAt, isDigitAt, LETTER } from './detectors/characters.ts'
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
 * @param found gets the digits without separators, where they end, and whether a group like their last follows
 */
export function walkShapes(
  root: ShapeNode,
  text: string,
  start: number,
  found: (numbers: readonly PlannedNumber[], digits: string, end: number, goesOn: boolean) => void,
): void {
  let node: ShapeNode | undefined = root
  let index = start
  let separator = 0
  let digits = ''
  for (;;) {
    let end = index
    while (isDigitAt(text, end) && end - index <= LONGEST_GROUP) end++
    node = end - index > LONGEST_GROUP ? undefined : node.next[separator * WIDTH + end - index]
    if (node === undefined || (classAt(text, end) & LETTER) !== 0) return
    digits += text.slice(index, end)
    if (node.numbers.length > 0 && endsNumber(text, end)) {
      found(node.numbers, digits, end, separator > 0 && goesOn(text, index, end))
    }
    const next = separatorEnd(text, end)
    if (next < 0) return
    separator = SEPARATORS.indexOf(next - end === 3 ? '-' : text.charAt(end)) + 1
    index = next
  }
}

/** Where the next group starts after a separator at `index`: one of them, two spaces, or a dash between spaces. */
function separatorEnd(text: string, index: number): number {
  const first = text[index]
  if (first === undefined || !SEPARATORS.includes(first)) return -1
  if (isDigitAt(text, index + 1)) return index + 1
  if (first !== ' ') return -1
  if (text[index + 1] === ' ' && isDigitAt(text, index + 2)) return index + 2
  return text[index + 1] === '-' && text[index + 2] === ' ' && isDigitAt(text, index + 3) ? index + 3 : -1
}

/** Whether another group as long as the last follows: then this may be the start of a longer number. */
function goesOn(text: string, groupStart: number, end: number): boolean {
  const next = separatorEnd(text, end)
  if (next < 0) return false
  const nextEnd = next + end - groupStart
  for (let index = next; index < nextEnd; index++) if (!isDigitAt(text, index)) return false
  return !isDigitAt(text, nextEnd)
}

/** Whether a number can end here: no letter or digit adjoins, nor a sign that ties one to it. */
function endsNumber(text: string, end: number): boolean {
  const after = text[end]
  if (after === undefined) return true
  if (isAlphanumericAt(text, end) || after === '%') return false
  return !(
    (after === '-' || after === '_' || after === '.' || after === '@') &&
    isAlphanumericAt(text, end + 1)
  )
}

/** How freely a number may start at `start`: not inside of another token, or only with a doubt. */
export function startsNumber(text: string, start: number): 'yes' | 'doubtful' | 'no' {
  const before = text[start - 1]
  if (before === undefined) return 'yes'
  if (isAlphanumericAt(text, start - 1)) return 'no'
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
