import { RE2JS } from 're2js'
import type { Slices } from '../lib/slices.ts'
import { type FileSearchResult, type SearchRequest, WORKSPACE_FOLDER, WorkspaceError } from './contract.ts'
import type { FileStore } from './files/file-store.ts'
import { resolvePath } from './files/paths.ts'
import { listFiles } from './list-files.ts'

const MOST_MATCHES = 200
const LONGEST_LINE = 400
/** Characters that are searched in one call. */
const MOST_CHARACTERS = 8 * 1024 * 1024
const MOST_PROGRAM = 1_000
/** Steps of one call: each character may take as many as the pattern has instructions, though most patterns take far fewer. */
const MOST_STEPS = 200_000_000
/** Milliseconds of one call, which only steps that are as slow as possible take. */
const MOST_MS = 4_000
/** About a millisecond; 20 ms for a pattern whose states are all different. */
const STEPS_OF_A_SLICE = 200_000
/** A line cannot be searched in parts: its rest is not searched. */
const STEPS_OF_A_LINE = 1_000_000
/** Characters that the search of an empty line, or of a name, is worth. */
const SEARCH_COST = 8
/** Steps for reading one file. */
const FILE_STEPS = 2_000
const BYTES_OF_A_STEP = 4

const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: false })

/**
 * Lines that match a regular expression, in the order of paths. The work is bounded: what was not searched is reported.
 * @param signal stops the search. @param now milliseconds; it only advances between slices.
 * @throws WorkspaceError invalid, not_found or interrupted; FileError
 */
export function* searchFiles(
  store: FileStore,
  request: SearchRequest,
  signal: AbortSignal,
  now: () => number = Date.now,
): Slices<FileSearchResult> {
  const pattern = compiled(request.pattern, request.ignoreCase ? RE2JS.CASE_INSENSITIVE : 0)
  const glob = request.glob === null ? null : compiledGlob(request.glob)
  const work = new SearchWork(pattern, signal, now)
  const matches: FileSearchResult['matches'] = []
  for (const { path, type, bytes } of listFiles(store, resolvePath(WORKSPACE_FOLDER, request.path), true)) {
    if (work.isTurnOver) yield* work.turn()
    if (work.isOver) return { matches, more: true, unsearched: true }
    if (type !== 'file' || (glob && !work.hasName(glob, path))) continue
    work.addReading(bytes)
    const text = textOf(store.read(path))
    if (text === null) continue
    for (let start = 0, line = 1; start < text.length; line++) {
      const feed = text.indexOf('\n', start)
      const end = feed === -1 ? text.length : feed
      if (work.matches(text, start, end)) {
        if (matches.length === MOST_MATCHES) return { matches, more: true }
        matches.push({ path, line, text: text.slice(start, Math.min(end, start + LONGEST_LINE)) })
      }
      if (work.isTurnOver) yield* work.turn()
      if (work.isOver) return { matches, more: true, unsearched: true }
      start = end + 1
    }
  }
  return { matches, more: work.hasCut, ...(work.hasCut && { unsearched: true }) }
}

/** Searches texts, and counts the work. */
class SearchWork {
  readonly #pattern: RE2JS
  readonly #longestLine: number
  readonly #signal: AbortSignal
  readonly #now: () => number
  readonly #end: number
  #characters = 0
  #steps = 0
  #turnAt = STEPS_OF_A_SLICE
  #isLate = false
  /** Whether a line was too long to be searched as a whole. */
  hasCut = false

  constructor(pattern: RE2JS, signal: AbortSignal, now: () => number) {
    this.#pattern = pattern
    this.#longestLine = Math.floor(STEPS_OF_A_LINE / pattern.programSize())
    this.#signal = signal
    this.#now = now
    this.#end = now() + MOST_MS
  }

  get isOver(): boolean {
    return this.#characters >= MOST_CHARACTERS || this.#steps >= MOST_STEPS || this.#isLate
  }

  matches(text: string, start: number, end: number): boolean {
    const stop = Math.min(end, start + this.#longestLine)
    if (stop < end) this.hasCut = true
    this.#characters += stop - start + 1
    this.#steps += (stop - start + SEARCH_COST) * this.#pattern.programSize()
    return this.#pattern.test(text.slice(start, stop))
  }

  hasName(glob: RE2JS, path: string): boolean {
    const name = path.slice(path.lastIndexOf('/') + 1)
    this.#steps += (name.length + SEARCH_COST) * glob.programSize()
    return glob.matches(name)
  }

  addReading(bytes: number): void {
    this.#steps += FILE_STEPS + bytes / BYTES_OF_A_STEP
  }

  get isTurnOver(): boolean {
    return this.#steps >= this.#turnAt
  }

  /** Ends the slice. @throws WorkspaceError interrupted */
  *turn(): Slices<void> {
    this.#turnAt = this.#steps + STEPS_OF_A_SLICE
    yield
    if (this.#signal.aborted) throw new WorkspaceError('interrupted', 'The search was stopped.')
    this.#isLate = this.#now() >= this.#end
  }
}

function compiled(pattern: string, flags: number): RE2JS {
  const problem = (reason: string) =>
    new WorkspaceError('invalid', `pattern: ${reason} (the syntax is that of RE2)`)
  let expression: RE2JS
  try {
    expression = RE2JS.compile(pattern, flags)
  } catch (error) {
    throw problem(error instanceof Error ? error.message.slice(0, 200) : 'is not a regular expression')
  }
  if (expression.programSize() > MOST_PROGRAM) throw problem('is too large; use fewer or smaller repetitions')
  return expression
}

/** `*`, `?` and `{a,b}`, as in the shell. */
function compiledGlob(glob: string): RE2JS {
  const source = glob
    .replace(/[.+^$()|[\]\\]/g, '\\$&')
    .replaceAll('*', '.*')
    .replaceAll('?', '.')
    .replace(/\{([^{}]*)\}/g, (_, names: string) => `(?:${names.replaceAll(',', '|')})`)
    .replace(/[{}]/g, (brace) => `\\${brace}`)
  return compiled(source, 0)
}

/** Null for a binary file. */
function textOf(bytes: Uint8Array): string | null {
  if (bytes.subarray(0, 8_192).includes(0)) return null
  try {
    return decoder.decode(bytes)
  } catch {
    return null
  }
}
