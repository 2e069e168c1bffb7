import { digitIn, isAlphanumericAt, isDigitAt, isWordAt } from '../detectors/characters.ts'

/**
 * Kind of the text next to a number, on one side. `joined`: a sign ties it to another token, as in the name of a file.
 * `doubtful`: a sign makes it another kind of number. `glued`: a letter. `inside`: it is part of a decimal number or of
 * a code.
 */
export type NumberEdge = 'free' | 'joined' | 'doubtful' | 'glued' | 'inside'

/** The edge before the number at `start`. */
export function edgeBefore(text: string, start: number): NumberEdge {
  const before = text[start - 1]
  if (before === undefined) return 'free'
  if (isWordAt(text, start - 1)) return 'glued'
  if (before === '#' || before === '$' || before === '€' || before === '£' || before === '¥')
    return 'doubtful'
  if (before === '.') return isDigitAt(text, start - 2) ? 'inside' : 'doubtful'
  if (!isAlphanumericAt(text, start - 2)) return 'free'
  if (before === '/') return 'doubtful'
  // Letters before a sign name the number: `card-4111...`.
  return (before === '-' || before === '_') && digitIn(text, start - 2, -1) ? 'joined' : 'free'
}

/** Digits of the longest number that is written with a fraction. */
const LONGEST_AMOUNT = 11

/**
 * Classifies the text after the number that ends at `end`.
 * @param length its digits if it is one group, else 0
 */
export function edgeAfter(text: string, end: number, length: number): NumberEdge {
  const after = text[end]
  if (after === undefined) return 'free'
  if (isWordAt(text, end)) return digitIn(text, end, 1) ? 'inside' : 'glued'
  if (after === '%') return 'doubtful'
  if (!isAlphanumericAt(text, end + 1)) return 'free'
  if (after === '@') return 'doubtful'
  if (after === '.' && isDigitAt(text, end + 1) && length > 0 && length <= LONGEST_AMOUNT) return 'inside'
  return after === '.' || after === '-' || after === '_' ? 'joined' : 'free'
}
