import { type FileChange, WORKSPACE_FOLDER, WorkspaceError } from '../contract.ts'
import type { FileStore } from '../files/file-store.ts'
import { resolvePath } from '../files/paths.ts'
import { StepBudget } from '../step-budget.ts'
import { applyHunks } from './apply-hunks.ts'
import { type FilePatch, parsePatch } from './parse-patch.ts'

/** Less than a second: a patch is one transaction, in which nothing else has a turn. */
const MOST_STEPS = 64_000_000
/** Steps of the statements that one file takes. */
const FILE_STEPS = 40_000

/**
 * The budget of steps for the work of one patch.
 * @internal Tests count its steps.
 */
export const patchSteps = (): StepBudget =>
  new StepBudget(
    MOST_STEPS,
    'The patch takes too many steps, so that nothing was changed. Apply it in parts.',
  )

/**
 * Applies a patch of several files. The caller makes it one transaction.
 * @throws WorkspaceError or FileError for the first file that does not fit; some may have been changed then.
 */
export function applyPatch(store: FileStore, text: string): FileChange[] {
  const steps = patchSteps()
  return parsePatch(text).map((file) => {
    steps.spend(FILE_STEPS)
    return applyFile(store, file, steps)
  })
}

const encoder = new TextEncoder()
const decoder = new TextDecoder()

function applyFile(store: FileStore, file: FilePatch, steps: StepBudget): FileChange {
  const path = resolvePath(WORKSPACE_FOLDER, file.path)
  if (file.kind === 'add') {
    if (store.find(path)) throw new WorkspaceError('invalid', `${path} exists already; update it instead`)
    writeFile(store, path, file.content)
    return { change: 'added', path }
  }
  if (file.kind === 'delete') {
    // A link is deleted, and not what it leads to.
    if ((store.find(path, false)?.type ?? 'directory') === 'directory') throw noFile(path)
    store.remove(path)
    return { change: 'deleted', path }
  }
  if (store.find(path)?.type !== 'file') throw noFile(path)
  const content = applyHunks(decoder.decode(store.read(path)), file.hunks, path, steps)
  steps.spend(content.length)
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

const noFile = (path: string) => new WorkspaceError('not_found', `${path} is not a file`)

/** Writes a file with the folders above it. */
export function writeFile(store: FileStore, path: string, content: string): boolean {
  const folder = path.slice(0, path.lastIndexOf('/'))
  if (folder !== '' && !store.find(folder)) store.makeFolder(folder, true)
  return store.write(path, encoder.encode(content))
}
