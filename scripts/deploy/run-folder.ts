import { randomUUID } from 'node:crypto'
import { mkdirSync, readdirSync, rmSync } from 'node:fs'
import { hostname } from 'node:os'
import { join } from 'node:path'
import { claimPath } from '../node/folder-claim.ts'

/** Files of one run. Runs of one checkout are side by side: a plan must not replace what another run is going to upload. */
export interface RunFolder {
  path: string
  /** Removes it with its files. */
  remove(): void
}

/** The id of a process says something on its own machine only, which may share the folder with others. */
const PREFIX = `run-${hostname().replace(/[^\w.-]/g, '_')}-`
const CLAIM = /\.lock$/
/** Nothing else may follow the prefix: that of another machine may begin with it, as `run-ci-2-` does with `run-ci-`. */
const ID = /^[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}(\.lock)?$/

/**
 * Makes a folder for this run, and removes those of runs of this machine that were killed.
 *
 * @param stageFolder the folder of the deployment, which is made if it is missing
 */
export function makeRunFolder(stageFolder: string): RunFolder {
  mkdirSync(stageFolder, { recursive: true, mode: 0o700 })
  removeStale(stageFolder)
  const path = join(stageFolder, `${PREFIX}${randomUUID()}`)
  // Before the folder is there, so that no other run takes it for one of a run that was killed.
  const release = claimPath(path)
  mkdirSync(path, { mode: 0o700 })
  return {
    path,
    remove: () => {
      rmSync(path, { recursive: true, force: true })
      release()
    },
  }
}

function removeStale(stageFolder: string): void {
  const names = readdirSync(stageFolder).filter(
    (name) => name.startsWith(PREFIX) && ID.test(name.slice(PREFIX.length)),
  )
  for (const name of new Set(names.map((found) => found.replace(CLAIM, '')))) {
    const path = join(stageFolder, name)
    try {
      const release = claimPath(path)
      rmSync(path, { recursive: true, force: true })
      release()
    } catch {
      // Its run is alive, or another one removes it now.
    }
  }
}
