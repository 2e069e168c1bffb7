import { WorkspaceError } from '../contract.ts'
import type { StepBudget } from '../step-budget.ts'
import { type LineForm, LineIndex } from './line-index.ts'
import type { Hunk } from './parse-patch.ts'

/** Lines of a file that is patched; each has a place in memory of its own. */
const MOST_LINES = 500_000
/** Steps of one line, which is split off, found in an index, and joined again. */
const LINE_STEPS = 32

/** Exact first, then without the spaces at ends, then without those at both ends: models get these wrong. */
const EXACT: LineForm = (line) => line
const WITHOUT_END: LineForm = (line) => line.trimEnd()
const TRIMMED: LineForm = (line) => line.trim()
const FORMS = [EXACT, WITHOUT_END, TRIMMED]

/**
 * Replaces the lines of hunks. Each hunk is looked for after the one before it.
 * @param path for messages.
 * @throws WorkspaceError invalid for a hunk that does not fit, for too many lines, and for too many steps
 */
export function applyHunks(text: string, hunks: readonly Hunk[], path: string, steps: StepBudget): string {
  steps.spend(text.length)
  const file = new FileLines(splitLines(text, path), hunks, steps)
  const { lines } = file
  const result: string[] = []
  let at = 0
  for (const [index, hunk] of hunks.entries()) {
    const found = placeOf(file, at, hunk, `${path}, hunk ${index + 1}`, steps)
    for (; at < found; at++) result.push(lines[at] as string)
    for (const line of hunk.after) result.push(line)
    at = found + hunk.before.length
  }
  for (; at < lines.length; at++) result.push(lines[at] as string)
  const endsWithLine = text === '' || text.endsWith('\n')
  return result.length === 0 ? '' : result.join('\n') + (endsWithLine ? '\n' : '')
}

/** The lines of a file, with an index of each form that is needed. */
class FileLines {
  readonly lines: readonly string[]
  readonly #hunks: readonly Hunk[]
  readonly #steps: StepBudget
  readonly #indexes = new Map<LineForm, LineIndex>()

  constructor(lines: readonly string[], hunks: readonly Hunk[], steps: StepBudget) {
    this.lines = lines
    this.#hunks = hunks
    this.#steps = steps
  }

  in(form: LineForm): LineIndex {
    const known = this.#indexes.get(form)
    if (known) return known
    this.#steps.spend(this.lines.length * LINE_STEPS)
    const index = new LineIndex(this.lines, searchedLines(this.#hunks), form)
    this.#indexes.set(form, index)
    return index
  }
}

function* searchedLines(hunks: readonly Hunk[]): Generator<string> {
  for (const { anchors, before } of hunks) {
    yield* anchors
    yield* before
  }
}

/** A line feed ends a line; an empty text has none. */
function splitLines(text: string, path: string): string[] {
  let count = 1
  for (let at = text.indexOf('\n'); at !== -1; at = text.indexOf('\n', at + 1)) count++
  if (count > MOST_LINES)
    throw new WorkspaceError('invalid', `${path} has more than ${MOST_LINES} lines; use the shell`)
  const lines = text.split('\n')
  if (lines.at(-1) === '') lines.pop()
  return lines
}

/** @param where for messages: file and hunk. @returns the index of its first line. */
function placeOf(
  file: FileLines,
  from: number,
  { anchors, before, atEnd }: Hunk,
  where: string,
  steps: StepBudget,
): number {
  let after = from
  for (const anchor of anchors) {
    const found = file.in(TRIMMED).next(anchor, after)
    if (found === null) throw new WorkspaceError('invalid', `${where}: there is no line "${anchor}"`)
    after = found + 1
  }
  // Without a line of context, the lines are appended.
  if (before.length === 0) return file.lines.length
  const first = atEnd ? Math.max(after, file.lines.length - before.length) : after
  for (const form of FORMS) {
    const found = file.in(form).find(before, first, steps)
    if (found !== null) return found
  }
  const wanted = JSON.stringify(before.slice(0, 3).join('\n'))
  throw new WorkspaceError(
    'invalid',
    `${where}: the file does not have these lines, in this order: ${wanted}. Read the file again.`,
  )
}
