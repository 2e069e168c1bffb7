import { WorkspaceError } from '../contract.ts'

/** A file of a patch in the format of `apply_patch`, on which Codex models are trained. */
export type FilePatch =
  | { kind: 'add'; path: string; content: string }
  | { kind: 'delete'; path: string }
  | { kind: 'update'; path: string; moveTo: string | null; hunks: Hunk[] }

/** Lines to replace. */
export interface Hunk {
  /** A line above the hunk, such as that of a function, after which it is looked for. */
  anchors: string[]
  before: string[]
  after: string[]
  /** Whether the hunk ends with the file. */
  atEnd: boolean
}

const BEGIN = '*** Begin Patch'
const END = '*** End Patch'
const ADD = '*** Add File: '
const DELETE = '*** Delete File: '
const UPDATE = '*** Update File: '
const MOVE = '*** Move to: '
const END_OF_FILE = '*** End of File'

/** Each hunk of them has lists of its own in memory. */
const MOST_LINES = 200_000

/** @throws WorkspaceError invalid, with the number of the line */
export function parsePatch(text: string): FilePatch[] {
  const lines = text.trim().split(/\r?\n/, MOST_LINES + 1)
  if (lines.length > MOST_LINES) throw invalid(MOST_LINES, 'the patch is too long; apply it in parts')
  if (lines[0]?.trim() !== BEGIN) throw invalid(1, `the first line must be "${BEGIN}"`)
  if (lines.at(-1)?.trim() !== END) throw invalid(lines.length, `the last line must be "${END}"`)
  const reader = new PatchReader(lines.slice(1, -1))
  const files: FilePatch[] = []
  while (!reader.done) files.push(reader.file())
  if (files.length === 0) throw invalid(1, 'the patch has no file')
  return files
}

class PatchReader {
  readonly #lines: string[]
  #at = 0

  constructor(lines: string[]) {
    this.#lines = lines
  }

  get done(): boolean {
    return this.#at >= this.#lines.length
  }

  file(): FilePatch {
    const line = this.#next()
    if (line.startsWith(ADD)) return { kind: 'add', path: this.#path(line, ADD), content: this.#addedLines() }
    if (line.startsWith(DELETE)) return { kind: 'delete', path: this.#path(line, DELETE) }
    if (!line.startsWith(UPDATE))
      throw this.#problem(`must be "${ADD}", "${UPDATE}" or "${DELETE}" with a path`)
    const path = this.#path(line, UPDATE)
    const moveTo = this.#peek()?.startsWith(MOVE) ? this.#path(this.#next(), MOVE) : null
    const hunks: Hunk[] = []
    while (!this.done && !this.#atFile()) hunks.push(this.#hunk())
    if (hunks.length === 0 && moveTo === null) throw this.#problem(`the update of ${path} has no change`)
    return { kind: 'update', path, moveTo, hunks }
  }

  #hunk(): Hunk {
    const hunk: Hunk = { anchors: [], before: [], after: [], atEnd: false }
    while (this.#peek()?.startsWith('@@')) {
      const anchor = this.#next().slice(2).trim()
      if (anchor !== '') hunk.anchors.push(anchor)
    }
    let lines = 0
    for (
      let line = this.#peek();
      line !== undefined && !line.startsWith('@@') && !this.#atFile();
      line = this.#peek()
    ) {
      this.#next()
      if (line.trim() === END_OF_FILE) {
        hunk.atEnd = true
        break
      }
      lines++
      this.#addLine(hunk, line)
    }
    if (lines === 0) throw this.#problem('the hunk has no line')
    return hunk
  }

  #addLine({ before, after }: Hunk, line: string): void {
    const text = line.slice(1)
    // Models leave out the space before an empty line.
    if (line === '' || line.startsWith(' ')) {
      before.push(text)
      after.push(text)
    } else if (line.startsWith('-')) before.push(text)
    else if (line.startsWith('+')) after.push(text)
    else throw this.#problem('must begin with "+", "-", a space or "@@"')
  }

  #addedLines(): string {
    const added: string[] = []
    while (!this.done && !this.#atFile()) {
      const line = this.#next()
      if (!line.startsWith('+')) throw this.#problem('each line of an added file must begin with "+"')
      added.push(`${line.slice(1)}\n`)
    }
    return added.join('')
  }

  #atFile(): boolean {
    const line = this.#peek() ?? ''
    return [ADD, DELETE, UPDATE].some((start) => line.startsWith(start))
  }

  #path(line: string, start: string): string {
    const path = line.slice(start.length).trim()
    if (path === '') throw this.#problem('the path is missing')
    return path
  }

  #peek(): string | undefined {
    return this.#lines[this.#at]
  }

  #next(): string {
    return this.#lines[this.#at++] ?? ''
  }

  #problem(reason: string): WorkspaceError {
    return invalid(this.#at + 1, reason)
  }
}

const invalid = (line: number, reason: string): WorkspaceError =>
  new WorkspaceError('invalid', `patch, line ${line}: ${reason}`)
