import { type FileChange, WORKSPACE_FOLDER, WorkspaceError } from '../contract.ts'
import type { FileStore } from '../files/file-store.ts'
import { resolvePath } from '../files/paths.ts'
import { type FilePatch, type Hunk, parsePatch } from './parse-patch.ts'

/**
 * Applies a patch of several files. The caller makes it one transaction.
 * @throws WorkspaceError or FileError for the first file that does not fit; some may have been changed then.
 */
export function applyPatch(store: FileStore, text: string): FileChange[] {
  return parsePatch(text).map((file) => applyFile(store, file))
}

const encoder = new TextEncoder()
const decoder = new TextDecoder()

function applyFile(store: FileStore, file: FilePatch): FileChange {
  const path = resolvePath(WORKSPACE_FOLDER, file.path)
  if (file.kind === 'add') {
    if (store.find(path)) throw new WorkspaceError('invalid', `${path} exists already; update it instead`)
    writeFile(store, path, file.content)
    return { change: 'added', path }
  }
  if (store.find(path)?.type !== 'file') throw new WorkspaceError('not_found', `${path} is not a file`)
  if (file.kind === 'delete') {
    store.remove(path)
    return { change: 'deleted', path }
  }
  const content = applyHunks(decoder.decode(store.read(path)), file.hunks, path)
  if (file.moveTo === null) {
    writeFile(store, path, content)
    return { change: 'updated', path }
  }
  const target = resolvePath(WORKSPACE_FOLDER, file.moveTo)
  if (target !== path && store.find(target)) throw new WorkspaceError('invalid', `${target} exists already`)
  writeFile(store, target, content)
  if (target !== path) store.remove(path)
  return { change: 'moved', path: target }
}

/** Writes a file with the folders above it. */
export function writeFile(store: FileStore, path: string, content: string): boolean {
  const folder = path.slice(0, path.lastIndexOf('/'))
  if (folder !== '' && !store.find(folder)) store.makeFolder(folder, true)
  return store.write(path, encoder.encode(content))
}

/** Each hunk is looked for after the one before it. @throws WorkspaceError invalid for one that does not fit */
export function applyHunks(text: string, hunks: readonly Hunk[], path: string): string {
  const lines = text.split('\n')
  const endsWithLine = lines.at(-1) === ''
  if (endsWithLine) lines.pop()
  const result: string[] = []
  let at = 0
  for (const [index, hunk] of hunks.entries()) {
    const from = afterAnchors(lines, at, hunk.anchors, path, index)
    const found = placeOf(lines, from, hunk)
    if (found === null) throw unplaced(path, index, hunk)
    result.push(...lines.slice(at, found), ...hunk.after)
    at = found + hunk.before.length
  }
  result.push(...lines.slice(at))
  return result.length === 0 ? '' : result.join('\n') + (endsWithLine || text === '' ? '\n' : '')
}

function afterAnchors(lines: string[], from: number, anchors: string[], path: string, index: number): number {
  let at = from
  for (const anchor of anchors) {
    const found = lines.findIndex((line, number) => number >= at && line.trim() === anchor)
    if (found === -1)
      throw new WorkspaceError('invalid', `${path}, hunk ${index + 1}: there is no line "${anchor}"`)
    at = found + 1
  }
  return at
}

/** Exact first, then without the spaces at ends, then without those at both ends: models get these wrong. */
const FORMS: ReadonlyArray<(line: string) => string> = [
  (line) => line,
  (line) => line.trimEnd(),
  (line) => line.trim(),
]

function placeOf(lines: readonly string[], from: number, { before, atEnd }: Hunk): number | null {
  const last = lines.length - before.length
  // Without a line of context, the lines are appended.
  if (before.length === 0) return lines.length
  for (const form of FORMS) {
    const wanted = before.map(form)
    const formed = lines.map(form)
    for (let at = atEnd ? Math.max(from, last) : from; at <= last; at++) {
      if (wanted.every((line, index) => formed[at + index] === line)) return at
    }
  }
  return null
}

const unplaced = (path: string, index: number, { before }: Hunk): WorkspaceError =>
  new WorkspaceError(
    'invalid',
    `${path}, hunk ${index + 1}: the file does not have these lines, in this order: ${JSON.stringify(before.slice(0, 3).join('\n'))}. Read the file again.`,
  )
