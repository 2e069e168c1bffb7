import type { Category } from '../types.ts'
import type { CharacterSet } from './characters.ts'

/** What a policy and its reader need to know of a detector. */
export interface DetectorDescription {
  /** What policies, spans and audit records call it. */
  id: string
  category: Category
  description: string
  /** Score of a finding in its clearest written form without a word around it that names it. */
  baseScore: number
}

/** Evidence beside the characters themselves. */
export interface Contextual {
  /** Words before a finding (in lower case; a space also stands for `-`, `_` and nothing) that raise its score. */
  context: readonly string[]
  /** The score with such a word. */
  contextScore: number
}

/** A number in a written form: `3-2-4` is three digits, a dash, two digits ... */
export interface NumberForm {
  shapes: readonly string[]
  /** Without a context word. */
  score: number
}

/** Digits alone, in groups. */
export interface NumberDetector extends DetectorDescription, Contextual {
  forms: readonly NumberForm[]
  /** Whether the digits (without their separators) can be such a number. */
  validate(digits: string): boolean
}

/** Letters and digits. */
export interface WordDetector extends DetectorDescription, Contextual {
  /** Sticky, without unbounded repetition, tried where a run of letters and digits starts. */
  pattern: RegExp
  /** What the first character of the run is. */
  first: 'letter' | 'digit'
  /** Lengths of that run. */
  lengths: readonly number[]
  validate(match: string): boolean
  /** Matches a text that breaks off inside of a form with spaces or dashes; ends in `$`, and bounded. */
  open?: RegExp
}

/** A key with a fixed beginning. */
export interface KeyForm {
  prefix: string
  body: CharacterSet
  shortest: number
  longest: number
  /** Less than usual when the prefix alone says little. */
  score?: number
  /** What the body must also be. */
  validate?(body: string): boolean
}

export interface KeyDetector extends DetectorDescription {
  forms: readonly KeyForm[]
}

/** A detector with a way of its own. `find` looks at the token `start`..`end` and answers with what it found. */
export interface TokenDetector extends DetectorDescription {
  find(text: string, start: number, end: number): Found | null
}

export interface Found {
  start: number
  end: number
  score: number
}

/**
 * Spellings of digit groups: `spaced('3 3 4', ' -')` is each separator used throughout, and the run without any.
 */
export function grouped(shape: string, separators: string): string[] {
  return [...separators].map((separator) => shape.replaceAll(' ', separator))
}
