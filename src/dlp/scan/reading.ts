/**
 * A text normalised for the detectors: one spelling of what can be written in many ways (full-width digits, dashes,
 * invisible characters, escapes), with the place of each unit in the original.
 */
export interface Reading {
  text: string
  /** For each unit of `text`, where its source starts in the original, in parts; null when both are the same. */
  starts: readonly Int32Array[] | null
  /** For each unit of `text`, where its source ends in the original. */
  ends: readonly Int32Array[] | null
}

/** Units of a part, as a power of two. A text of 20 MB grows part by part, without being copied. */
const PART_BITS = 15
export const PART_UNITS = 1 << PART_BITS

const placeAt = (parts: readonly Int32Array[], index: number): number | undefined =>
  parts[index >> PART_BITS]?.[index & (PART_UNITS - 1)]

/** The text itself as a reading. */
export function identity(text: string): Reading {
  return { text, starts: null, ends: null }
}

/** Where in the original the unit at `index` of a reading starts; `length` is the original's length. */
export function originalStart(reading: Reading, index: number, length: number): number {
  return reading.starts === null ? index : (placeAt(reading.starts, index) ?? length)
}

/** Where in the original a run that ends before `index` of a reading ends. */
export function originalEnd(reading: Reading, index: number): number {
  return reading.ends === null ? index : index === 0 ? 0 : (placeAt(reading.ends, index - 1) ?? 0)
}

/** Where in a reading the source at `offset` of the original starts, or the next unit that starts after it. */
export function readingIndex(reading: Reading, offset: number): number {
  const { starts } = reading
  if (starts === null) return Math.min(offset, reading.text.length)
  let low = 0
  let high = reading.text.length
  while (low < high) {
    const middle = (low + high) >> 1
    if ((placeAt(starts, middle) ?? 0) < offset) low = middle + 1
    else high = middle
  }
  return low
}
