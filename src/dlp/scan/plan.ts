import { ACTIONS } from '../../wire/dlp.ts'
import { contextPattern } from '../detectors/context-words.ts'
import { COINS, WALLET_KEY } from '../detectors/crypto-addresses.ts'
import { compileDictionary, type Dictionary } from '../detectors/custom/dictionary.ts'
import { type CompiledPattern, compilePattern } from '../detectors/custom/patterns.ts'
import type { KeyForm, NumberDetector, TokenDetector, WordDetector } from '../detectors/detector.ts'
import { BUILT_IN_DETECTORS, NUMBER_DETECTORS, WORD_DETECTORS } from '../detectors/registry.ts'
import { SPECIAL_KEYS } from '../detectors/special-keys.ts'
import { VENDOR_KEYS } from '../detectors/vendor-keys.ts'
import type { Category, CustomDetector, Profile } from '../types.ts'
import { addShape, newShapeNode, type ShapeNode } from './number-shapes.ts'

/** A profile compiled for scanning: the detectors that it has rules for, indexed by where a scan tries them. */
export interface Plan {
  /** The lowest score that counts, for each detector with a rule. */
  minimum: ReadonlyMap<string, number>
  /** The actions on each detector's findings. */
  severity: ReadonlyMap<string, readonly Severity[]>
  numbers: ShapeNode | null
  /** Words indexed by whether the run starts with a letter (0) or a digit (1), and by its length. */
  words: readonly (readonly PlannedWord[])[][] | null
  /** Match a text that ends inside of a word detector's form. */
  openWords: readonly RegExp[]
  /** Key forms by their first two characters. */
  keys: ReadonlyMap<number, readonly PlannedKey[]>
  coins: readonly TokenDetector[]
  /** Whether there is a rule for any of the special keys. */
  specialKeys: boolean
  custom: readonly PlannedCustom[]
  /** Whether there is nothing to find. */
  empty: boolean
  /** Whether there is a rule for any built-in detector. */
  builtIn: boolean
}

/** The rank of an action from a score on. */
interface Severity {
  minimumScore: number
  rank: number
}

export interface PlannedWord {
  detector: WordDetector
  pattern: RegExp
  context: RegExp
}

export interface PlannedNumber {
  detector: NumberDetector
  score: number
  context: RegExp
}

interface PlannedKey {
  id: string
  score: number
  form: KeyForm
}

type PlannedCustom = { id: string; score: number } & (
  | { kind: 'pattern'; pattern: CompiledPattern }
  | { kind: 'dictionary'; dictionary: Dictionary }
)

const plans = new WeakMap<Profile, Plan>()
const customs = new WeakMap<CustomDetector, PlannedCustom>()
const contexts = new Map<string, RegExp>()

/** The plan of a profile, made once for each. @throws PatternError for a custom pattern that does not compile */
export function planFor(profile: Profile): Plan {
  let plan = plans.get(profile)
  if (plan === undefined) {
    plan = makePlan(profile)
    plans.set(profile, plan)
  }
  return plan
}

const categories = new Map<string, Category>(BUILT_IN_DETECTORS.map(({ id, category }) => [id, category]))

/** The category of a detector; what is not built in is the customer's. */
export const categoryOf = (id: string): Category => categories.get(id) ?? 'custom'

function makePlan(profile: Profile): Plan {
  const minimum = new Map<string, number>()
  const severity = new Map<string, Severity[]>()
  for (const { detector, minimumScore, action } of profile.rules) {
    minimum.set(detector, Math.min(minimum.get(detector) ?? 1, minimumScore))
    const rank = ACTIONS.indexOf(action)
    severity.set(detector, [...(severity.get(detector) ?? []), { minimumScore, rank }])
  }
  const covered = (id: string): boolean => minimum.has(id)
  const words = WORD_DETECTORS.filter(({ id }) => covered(id))
  const custom = profile.custom.filter(({ id, score }) => score >= (minimum.get(id) ?? 2)).map(planCustom)
  const builtIn = BUILT_IN_DETECTORS.some(({ id }) => covered(id))
  return {
    minimum,
    severity,
    numbers: planNumbers(NUMBER_DETECTORS.filter(({ id }) => covered(id))),
    words: words.length === 0 ? null : planWords(words),
    openWords: words.flatMap(({ open }) => open ?? []),
    keys: planKeys(covered),
    coins: [...COINS, WALLET_KEY].filter(({ id }) => covered(id)),
    specialKeys: Object.values(SPECIAL_KEYS).some(({ id }) => covered(id)),
    custom,
    builtIn,
    empty: !builtIn && custom.length === 0,
  }
}

function planNumbers(detectors: readonly NumberDetector[]): ShapeNode | null {
  if (detectors.length === 0) return null
  const root = newShapeNode()
  for (const detector of detectors) {
    const context = sharedContext(detector.context)
    for (const [shapes, score] of Object.entries(detector.forms)) {
      for (const shape of shapes.split(', ')) addShape(root, shape, { detector, score, context })
    }
  }
  return root
}

export const LONGEST_WORD = 20

function planWords(detectors: readonly WordDetector[]): (readonly PlannedWord[])[][] {
  const byLength = (first: 'letter' | 'digit'): (readonly PlannedWord[])[] =>
    Array.from({ length: LONGEST_WORD + 1 }, (_, length) =>
      detectors
        .filter((detector) => detector.first === first && detector.lengths.includes(length))
        .map((detector) => ({
          detector,
          pattern: detector.pattern,
          context: sharedContext(detector.context),
        })),
    )
  return [byLength('letter'), byLength('digit')]
}

/** Two characters as one number. */
export const pairAt = (text: string, index: number): number =>
  text.charCodeAt(index) * 65_536 + text.charCodeAt(index + 1)

function planKeys(covered: (id: string) => boolean): Map<number, PlannedKey[]> {
  const keys = new Map<number, PlannedKey[]>()
  for (const { id, baseScore, forms } of VENDOR_KEYS) {
    if (!covered(id)) continue
    for (const form of forms) {
      const pair = pairAt(form.prefix, 0)
      keys.set(pair, [...(keys.get(pair) ?? []), { id, score: form.score ?? baseScore, form }])
    }
  }
  return keys
}

/** The pattern of context words, compiled once for all plans. */
function sharedContext(words: string): RegExp {
  let pattern = contexts.get(words)
  if (pattern === undefined) {
    pattern = contextPattern(words)
    contexts.set(words, pattern)
  }
  return pattern
}

function planCustom(detector: CustomDetector): PlannedCustom {
  let planned = customs.get(detector)
  if (planned === undefined) {
    const { id, score } = detector
    planned =
      detector.kind === 'pattern'
        ? {
            id,
            score,
            kind: 'pattern',
            pattern: compilePattern(detector.pattern ?? '', detector.ignoreCase ? 'i' : ''),
          }
        : {
            id,
            score,
            kind: 'dictionary',
            dictionary: compileDictionary(detector.terms ?? [], detector.ignoreCase ?? true),
          }
    customs.set(detector, planned)
  }
  return planned
}
