import { type ACTIONS, type CATEGORIES, DIRECTIONS } from '../wire/dlp.ts'

export type Direction = (typeof DIRECTIONS)[number]
export type Action = (typeof ACTIONS)[number]
export type Category = (typeof CATEGORIES)[number]
export type ByDirection<Value> = Readonly<Record<Direction, Value>>

export const byDirection = <Value>(valueFor: (direction: Direction) => Value): ByDirection<Value> =>
  Object.fromEntries(DIRECTIONS.map((direction) => [direction, valueFor(direction)])) as ByDirection<Value>

/** Place of a finding, in UTF-16 units of the original text. */
export interface Finding {
  start: number
  end: number
  /** Id of the detector, such as `card`, or of the custom pattern or dictionary. */
  detector: string
  category: Category
  /** 0 to 1. */
  score: number
}

/** The action on one detector's findings. */
export interface ProfileRule {
  detector: string
  minimumScore: number
  action: Action
}

/** A pattern or dictionary of the customer. */
export interface CustomDetector {
  id: string
  kind: 'pattern' | 'dictionary'
  /** A pattern in RE2 syntax. */
  pattern?: string
  ignoreCase?: boolean
  /** Words and phrases of a dictionary. */
  terms?: readonly string[]
  score: number
}

/** The policies that hold for one direction of one call, compiled. Immutable: scan plans are cached by its identity. */
export interface Profile {
  direction: Direction
  /** Names the version of every policy in it. */
  version: string
  rules: readonly ProfileRule[]
  custom: readonly CustomDetector[]
  /** Rule for images, sound and other content that no engine reads. */
  uninspectable: 'allow' | 'block'
}
