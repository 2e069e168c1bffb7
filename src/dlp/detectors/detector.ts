import type { Category } from '../types.ts'
import type { CharacterSet } from './characters.ts'

/** A detector as policies and consoles name it. */
export interface DetectorDescription {
  /** Name of the detector in policies, findings and audit records. */
  id: string
  category: Category
  description: string
}

export interface ScoredDetector extends DetectorDescription {
  /** Score of a finding in its clearest written form without a word around it that names it. */
  baseScore: number
}

/** Evidence beside the characters themselves. */
interface Contextual {
  /** Words before a finding that raise its score, as `contextPattern` takes them. */
  context: string
  /** Score with a word that names the value. */
  contextScore: number
}

/** Digits alone, in groups. */
export interface NumberDetector extends DetectorDescription, Contextual {
  /**
   * Written forms, separated by commas, with the score of a finding without a context word: `3-2-4` is three digits, a
   * dash, two digits, a dash, four digits.
   */
  forms: Readonly<Record<string, number>>
  /** Whether the digits (without their separators) can be such a number. */
  validate(digits: string): boolean
}

/** Letters and digits. */
export interface WordDetector extends ScoredDetector, Contextual {
  /** Sticky, without unbounded repetition, tried where a run of letters and digits starts. */
  pattern: RegExp
  first: 'letter' | 'digit'
  /** Lengths of the run of letters and digits that the pattern is tried at. */
  lengths: readonly number[]
  validate(match: string): boolean
  /** Matches a text that ends inside of a form with spaces or dashes; ends in `$`, and bounded. */
  open?: RegExp
}

/** A key with a fixed beginning. */
export interface KeyForm {
  prefix: string
  body: CharacterSet
  shortest: number
  longest: number
  /** Given where the prefix is a common one. */
  score?: number
  /** A further condition on the body. */
  validate?(body: string): boolean
}

export interface KeyDetector extends ScoredDetector {
  forms: readonly KeyForm[]
}

/** A detector of whole tokens. */
export interface TokenDetector extends DetectorDescription {
  /** Checks the token from `start` to `end`. */
  find(text: string, start: number, end: number): Match | null
}

export interface Match {
  start: number
  end: number
  score: number
}
