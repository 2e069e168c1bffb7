import { scanJsonInSlices } from './json-scan.ts'
import { JsonSyntaxError, MAXIMUM_DEPTH } from './json-visitor.ts'
import type { Slices } from './slices.ts'

/**
 * Maximum number of values in a body that is parsed into a tree. A tree of empty arrays takes more than ten times the bytes of
 * its text.
 */
export const MOST_JSON_VALUES = 200_000
/** A value and what separates it from the next one. */
const LEAST_VALUE_BYTES = 2

class TooManyValues extends Error {}

/**
 * Whether a JSON text has more values than a tree may have, counted in slices. The result has no meaning for a text that is not
 * JSON.
 */
export function* hasTooManyValues(text: Uint8Array): Slices<boolean> {
  if (text.length <= MOST_JSON_VALUES * LEAST_VALUE_BYTES) return false
  let count = 0
  const visitor = {
    valueDepth: MAXIMUM_DEPTH,
    value() {
      if (++count > MOST_JSON_VALUES) throw new TooManyValues()
    },
  }
  try {
    yield* scanJsonInSlices(text, visitor)
    return false
  } catch (error) {
    if (error instanceof TooManyValues) return true
    if (error instanceof JsonSyntaxError) return false
    throw error
  }
}
