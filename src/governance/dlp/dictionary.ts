/**
 * Words and phrases of a customer, all looked for in one pass (Aho and Corasick, 1975). Case is folded unless asked
 * otherwise, any run of white space equals one space, and a term that starts or ends with a letter or digit only
 * matches where no other adjoins it, other than in scripts that write without spaces.
 */
export interface Dictionary {
  /** The matches, overlapping ones included; each end's longest only. */
  find(text: string): { start: number; end: number }[]
  /** The start of the longest end of `text` that more text may make a term; the text's length if there is none. */
  openFrom(text: string): number
}

interface State {
  next: Map<number, State>
  /** The state for the longest proper end of this state's text. */
  fallback: State | null
  /** Characters of this state's text. */
  depth: number
  isTerm: boolean
  /** The nearest state along the fallbacks that is a term. */
  shorterTerm: State | null
}

const SPACE = 32
const newState = (depth: number): State => ({
  next: new Map(),
  fallback: null,
  depth,
  isTerm: false,
  shorterTerm: null,
})

const SPACED_LETTER = /^[\p{L}\p{N}_]$/u
const UNSPACED_SCRIPT =
  /^[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Thai}\p{Script=Lao}\p{Script=Khmer}\p{Script=Myanmar}\p{Script=Hangul}]$/u

/** Whether a character belongs to a word that its neighbours may belong to as well. */
function isWordUnit(code: number): boolean {
  if (code < 128)
    return (
      (code >= 48 && code <= 57) || (code >= 65 && code <= 90) || code === 95 || (code >= 97 && code <= 122)
    )
  const character = String.fromCharCode(code)
  return SPACED_LETTER.test(character) && !UNSPACED_SCRIPT.test(character)
}

const isSpace = (code: number): boolean => code === SPACE || (code >= 9 && code <= 13) || code === 0xa0

/** Lower case of one unit; what has none of the same length stays. */
function foldUnit(code: number): number {
  if (code >= 65 && code <= 90) return code + 32
  if (code < 128) return code
  const lower = String.fromCharCode(code).toLowerCase()
  return lower.length === 1 ? lower.charCodeAt(0) : code
}

/** @param terms empty ones are left out */
export function compileDictionary(terms: readonly string[], ignoreCase: boolean): Dictionary {
  const root = newState(0)
  const fold = ignoreCase ? foldUnit : (code: number) => code
  for (const term of terms) insert(root, term.normalize('NFKC').trim(), fold)
  linkFallbacks(root)
  const composed = terms.some((term) => term.normalize('NFKC') !== term.normalize('NFKD'))
  return {
    find: (text) => find(root, text, fold),
    openFrom(text) {
      const open = openFrom(root, text, fold)
      // A mark that follows may make another letter of the last one.
      return composed ? Math.min(open, openFrom(root, text.slice(0, -1), fold)) : open
    },
  }
}

function insert(root: State, term: string, fold: (code: number) => number): void {
  if (term === '') return
  let state = root
  let spaced = false
  for (let index = 0; index < term.length; index++) {
    const code = term.charCodeAt(index)
    if (isSpace(code) && spaced) continue
    spaced = isSpace(code)
    const unit = spaced ? SPACE : fold(code)
    let next = state.next.get(unit)
    if (next === undefined) {
      next = newState(state.depth + 1)
      state.next.set(unit, next)
    }
    state = next
  }
  state.isTerm = true
}

function linkFallbacks(root: State): void {
  const queue: State[] = [root]
  for (let head = 0; head < queue.length; head++) {
    const state = queue[head] ?? root
    for (const [unit, child] of state.next) {
      let fallback = state.fallback
      while (fallback !== null && !fallback.next.has(unit)) fallback = fallback.fallback
      child.fallback = fallback === null ? root : (fallback.next.get(unit) ?? root)
      child.shorterTerm = child.fallback.isTerm ? child.fallback : child.fallback.shorterTerm
      queue.push(child)
    }
  }
}

/** Walks the automaton over a text and keeps where the last units started, since runs of spaces count as one. */
class Walk {
  state: State
  readonly #root: State
  /** Start of each unit that counted; spaces of one run share the first's. */
  readonly starts: number[] = []
  #spaced = false

  constructor(root: State) {
    this.#root = root
    this.state = root
  }

  /** @returns false if the unit only prolonged a run of spaces */
  step(code: number, index: number, fold: (code: number) => number): boolean {
    const space = isSpace(code)
    if (space && this.#spaced) return false
    this.#spaced = space
    this.starts.push(index)
    const unit = space ? SPACE : fold(code)
    let state: State = this.state
    for (;;) {
      const next = state.next.get(unit)
      if (next !== undefined) {
        this.state = next
        return true
      }
      if (state.fallback === null) break
      state = state.fallback
    }
    this.state = this.#root
    return true
  }

  startOf(depth: number): number {
    return this.starts[this.starts.length - depth] ?? 0
  }
}

const startsWord = (text: string, start: number): boolean =>
  start === 0 || !isWordUnit(text.charCodeAt(start)) || !isWordUnit(text.charCodeAt(start - 1))
const endsWord = (text: string, end: number): boolean =>
  end >= text.length || !isWordUnit(text.charCodeAt(end - 1)) || !isWordUnit(text.charCodeAt(end))

function find(root: State, text: string, fold: (code: number) => number): { start: number; end: number }[] {
  const walk = new Walk(root)
  const found: { start: number; end: number }[] = []
  for (let index = 0; index < text.length; index++) {
    if (!walk.step(text.charCodeAt(index), index, fold) || walk.state === root) continue
    if (!endsWord(text, index + 1)) continue
    let term = walk.state.isTerm ? walk.state : walk.state.shorterTerm
    for (; term !== null; term = term.shorterTerm) {
      const start = walk.startOf(term.depth)
      if (!startsWord(text, start)) continue
      found.push({ start, end: index + 1 })
      break
    }
  }
  return found
}

function openFrom(root: State, text: string, fold: (code: number) => number): number {
  const walk = new Walk(root)
  for (let index = 0; index < text.length; index++) walk.step(text.charCodeAt(index), index, fold)
  for (let state: State | null = walk.state; state !== null && state.depth > 0; state = state.fallback) {
    const start = walk.startOf(state.depth)
    const canEnd = state.next.size > 0 || state.isTerm
    if (canEnd && startsWord(text, start)) return start
  }
  return text.length
}
