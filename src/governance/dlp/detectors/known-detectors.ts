import type { Category } from '../types.ts'
import { DETECTORS } from './registry.ts'

/** What policies have to know of a detector of the engine. */
export interface KnownDetector {
  id: string
  category: Category
  description: string
  /** Holds for rules that name no score of their own. */
  minimumScore: number
}

/**
 * Scores are made for this line: a finding whose form or surroundings speak for it lies above, digits that merely
 * could be such a number lie below.
 */
const USUAL_MINIMUM_SCORE = 0.5

/** Every detector of the engine, in order of the ids. */
export const KNOWN_DETECTORS: readonly KnownDetector[] = DETECTORS.map(({ id, category, description }) => ({
  id,
  category,
  description,
  minimumScore: USUAL_MINIMUM_SCORE,
})).sort((left, right) => (left.id < right.id ? -1 : 1))
