/** Words of data-loss prevention. What a policy says in them is compiled into a profile for one direction of one call. */

/** What a call carries where: what the caller sent, what a model or tool answers, what a tool is called with. */
export type Direction = 'request' | 'response' | 'tool_arguments' | 'tool_result'

/** From mildest to most severe; where several rules meet, the most severe counts. */
export const ACTIONS = ['allow', 'warn', 'mask', 'redact', 'tokenise', 'block'] as const
export type Action = (typeof ACTIONS)[number]

export type Category = 'secret' | 'financial' | 'government' | 'contact' | 'network' | 'crypto' | 'custom'

/** A finding, in UTF-16 units of the text as it was given. */
export interface Span {
  start: number
  end: number
  /** Id of the detector, such as `card`, or of the custom pattern or dictionary. */
  detector: string
  category: Category
  /** 0 to 1. */
  score: number
}

/** What to do about one detector's findings. */
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

/** Everything that holds for one direction of one call. Immutable; compiled detectors are cached by identity. */
export interface Profile {
  direction: Direction
  /** Names every version that went into it. */
  version: string
  rules: readonly ProfileRule[]
  custom: readonly CustomDetector[]
  /** For images, sound and other content that no text engine reads. */
  uninspectable: 'allow' | 'block'
}
