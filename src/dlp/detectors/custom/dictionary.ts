import type { Slices } from '../../../lib/slices.ts'

/**
 * Words and phrases of a customer, all searched in one pass (Aho and Corasick, 1975). Case is folded if `ignoreCase` is
 * set, and any run of white space equals one space. A term that starts or ends with a letter or digit matches only if
 * no other letter or digit adjoins it, except in scripts without spaces.
 */
export interface Dictionary {
  /** The matches, also overlapping ones, at most so many; only the longest at each end. */
  find(text: string, most?: number): Slices<{ start: number; end: number }[]>
  /** The start of the longest end of `text` that more text may make a term; the text's length if there is none. */
  openFrom(text: string): Slices<number>
}

/** Units of a text that are read in one slice. */
const SLICE_UNITS = 32 * 1024

/**
 * The terms as a tree of states in flat arrays, 14 bytes a state. States are numbered by depth, and within one depth in
 * order of their texts, so that the children of a state adjoin and need no lists. State 0 is the root, of no text.
 */
interface Automaton {
  /** The unit that leads to a state. */
  units: Uint16Array
  /** The first child of each state, whose last one stands before the next state's first; one entry more than states. */
  children: Int32Array
  /** The state for the longest proper end of a state's text. */
  fallbacks: Int32Array
  /** The state for the longest end of a state's text that is a term, be it all of it; 0 for none. */
  terms: Int32Array
  /** The first state of each depth, and in the end the number of states. */
  levels: number[]
}

const SPACE = 32

const SPACED_LETTER = /^[\p{L}\p{N}]$/u
const UNSPACED_SCRIPT =
  /^[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Thai}\p{Script=Lao}\p{Script=Khmer}\p{Script=Myanmar}\p{Script=Hangul}]$/u

/** Whether a character belongs to a word that its neighbours may belong to as well. `_` joins words, as a dash does. */
function isWordUnit(code: number): boolean {
  if (code < 128)
    return (code >= 48 && code <= 57) || (code >= 65 && code <= 90) || (code >= 97 && code <= 122)
  const character = String.fromCharCode(code)
  return SPACED_LETTER.test(character) && !UNSPACED_SCRIPT.test(character)
}

const isSpace = (code: number): boolean => code === SPACE || (code >= 9 && code <= 13) || code === 0xa0

/** Lower case of one unit, where that is one unit too. */
function foldUnit(code: number): number {
  if (code >= 65 && code <= 90) return code + 32
  if (code < 128) return code
  const lower = String.fromCharCode(code).toLowerCase()
  return lower.length === 1 ? lower.charCodeAt(0) : code
}

/** @param terms empty ones are left out */
export function compileDictionary(terms: readonly string[], ignoreCase: boolean): Dictionary {
  const fold = ignoreCase ? foldUnit : (code: number) => code
  const automaton = compile(terms.map((term) => spelling(term.normalize('NFKC').trim(), fold)))
  const composed = terms.some((term) => term.normalize('NFKC') !== term.normalize('NFKD'))
  return {
    find: (text, most = Number.POSITIVE_INFINITY) => find(automaton, text, fold, most),
    *openFrom(text) {
      const open = yield* openFrom(automaton, text, fold)
      // A combining mark that follows can change the last letter.
      return composed ? Math.min(open, yield* openFrom(automaton, text.slice(0, -1), fold)) : open
    },
  }
}

/** A term with the units that texts are compared by. */
function spelling(term: string, fold: (code: number) => number): string {
  let spelled = ''
  let spaced = false
  for (let index = 0; index < term.length; index++) {
    const code = term.charCodeAt(index)
    if (isSpace(code) && spaced) continue
    spaced = isSpace(code)
    spelled += String.fromCharCode(spaced ? SPACE : fold(code))
  }
  return spelled
}

function compile(spelled: readonly string[]): Automaton {
  // `sort` compares by unit: terms with the same beginning adjoin, the shortest first.
  const sorted = [...new Set(spelled)].filter((term) => term !== '').sort()
  const size = stateCount(sorted)
  const automaton: Automaton = {
    units: new Uint16Array(size),
    children: new Int32Array(size + 1),
    fallbacks: new Int32Array(size),
    terms: new Int32Array(size),
    levels: [0],
  }
  addStates(automaton, sorted, size)
  addFallbacks(automaton, size)
  return automaton
}

/** The root, and one state for each unit that a term does not share with the one before it. */
function stateCount(sorted: readonly string[]): number {
  let count = 1
  let last = ''
  for (const term of sorted) {
    let shared = 0
    while (shared < last.length && term.charCodeAt(shared) === last.charCodeAt(shared)) shared++
    count += term.length - shared
    last = term
  }
  return count
}

function addStates({ units, children, terms, levels }: Automaton, sorted: readonly string[], size: number) {
  // The terms that begin with each state's text, as a range of the sorted ones.
  const starts = new Int32Array(size)
  const ends = new Int32Array(size)
  ends[0] = sorted.length
  let added = 1
  for (let state = 0; state < size; state++) {
    if (state === levels.at(-1)) levels.push(added)
    const depth = levels.length - 2
    children[state] = added
    const end = ends[state] ?? 0
    let index = starts[state] ?? 0
    if (sorted[index]?.length === depth) {
      terms[state] = state
      index++
    }
    while (index < end) {
      const unit = sorted[index]?.charCodeAt(depth) ?? 0
      units[added] = unit
      starts[added] = index
      while (index < end && sorted[index]?.charCodeAt(depth) === unit) index++
      ends[added++] = index
    }
  }
  children[size] = size
}

function addFallbacks(automaton: Automaton, size: number): void {
  const { units, children, fallbacks, terms } = automaton
  for (let state = 0; state < size; state++) {
    for (let child = children[state] ?? 0; child < (children[state + 1] ?? 0); child++) {
      let fallback = state
      let end = 0
      while (fallback !== 0 && end === 0) {
        fallback = fallbacks[fallback] ?? 0
        end = childOf(automaton, fallback, units[child] ?? 0)
      }
      fallbacks[child] = end
      if (terms[child] === 0) terms[child] = terms[end] ?? 0
    }
  }
}

/** The state that a unit leads to; 0, the root, for none. */
function childOf({ units, children }: Automaton, state: number, unit: number): number {
  let low = children[state] ?? 0
  const end = children[state + 1] ?? 0
  let high = end
  while (low < high) {
    const middle = (low + high) >> 1
    if ((units[middle] ?? 0) < unit) low = middle + 1
    else high = middle
  }
  return low < end && units[low] === unit ? low : 0
}

/** Units of a state's text. */
function depthOf({ levels }: Automaton, state: number): number {
  let low = 0
  let high = levels.length - 1
  while (low < high) {
    const middle = (low + high) >> 1
    if ((levels[middle + 1] ?? 0) <= state) low = middle + 1
    else high = middle
  }
  return low
}

/** Walks the automaton over a text and keeps where the last units started, since runs of spaces count as one. */
class Walk {
  state = 0
  readonly #automaton: Automaton
  /** Starts of the last units that counted, as many as the longest term has; spaces of one run share the first's. */
  readonly #starts: Int32Array
  #length = 0
  #spaced = false

  constructor(automaton: Automaton) {
    this.#automaton = automaton
    this.#starts = new Int32Array(automaton.levels.length)
  }

  /** @returns false if the unit only prolonged a run of spaces */
  step(code: number, index: number, fold: (code: number) => number): boolean {
    const space = isSpace(code)
    if (space && this.#spaced) return false
    this.#spaced = space
    this.#starts[this.#length++ % this.#starts.length] = index
    const unit = space ? SPACE : fold(code)
    let state = this.state
    let next = childOf(this.#automaton, state, unit)
    while (next === 0 && state !== 0) {
      state = this.#automaton.fallbacks[state] ?? 0
      next = childOf(this.#automaton, state, unit)
    }
    this.state = next
    return true
  }

  /** Where the last units that make the text of a state start. */
  startOf(state: number): number {
    const { length } = this.#starts
    return this.#starts[(this.#length - depthOf(this.#automaton, state)) % length] ?? 0
  }
}

const startsWord = (text: string, start: number): boolean =>
  start === 0 || !isWordUnit(text.charCodeAt(start)) || !isWordUnit(text.charCodeAt(start - 1))
const endsWord = (text: string, end: number): boolean =>
  end >= text.length || !isWordUnit(text.charCodeAt(end - 1)) || !isWordUnit(text.charCodeAt(end))

function* find(
  automaton: Automaton,
  text: string,
  fold: (code: number) => number,
  most: number,
): Slices<{ start: number; end: number }[]> {
  const { fallbacks, terms } = automaton
  const walk = new Walk(automaton)
  const found: { start: number; end: number }[] = []
  for (let index = 0; index < text.length && found.length < most; index++) {
    if (index % SLICE_UNITS === SLICE_UNITS - 1) yield
    if (!walk.step(text.charCodeAt(index), index, fold)) continue
    let term = terms[walk.state] ?? 0
    if (term === 0 || !endsWord(text, index + 1)) continue
    for (; term !== 0; term = terms[fallbacks[term] ?? 0] ?? 0) {
      const start = walk.startOf(term)
      if (!startsWord(text, start)) continue
      found.push({ start, end: index + 1 })
      break
    }
  }
  return found
}

function* openFrom(automaton: Automaton, text: string, fold: (code: number) => number): Slices<number> {
  const walk = new Walk(automaton)
  for (let index = 0; index < text.length; index++) {
    if (index % SLICE_UNITS === SLICE_UNITS - 1) yield
    walk.step(text.charCodeAt(index), index, fold)
  }
  for (let { state } = walk; state !== 0; state = automaton.fallbacks[state] ?? 0) {
    const start = walk.startOf(state)
    if (startsWord(text, start)) return start
  }
  return text.length
}
