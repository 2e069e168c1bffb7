import type { NumberDetector, WordDetector } from '../detector.ts'

/** A detector of a number that a state gives to persons or companies. */
export type NationalDetector = NumberDetector | WordDetector

type Given<Detector extends NationalDetector> = Omit<Detector, 'category' | 'contextScore'> & {
  /** 0.95 unless given. */
  contextScore?: number
}

export const nationalNumber = (given: Given<NumberDetector>): NumberDetector => ({
  category: 'government',
  contextScore: 0.95,
  ...given,
})

export const nationalWord = (given: Given<WordDetector>): WordDetector => ({
  category: 'government',
  contextScore: 0.95,
  ...given,
})
