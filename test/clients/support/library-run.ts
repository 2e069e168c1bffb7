import { copyFileSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import type { Bench } from './client-bench.ts'
import type { InstalledLibrary } from './client-install.ts'
import { runClient } from './client-run.ts'

const PROGRAMS = join(import.meta.dirname, '../programs')

/** A task for a program of `programs`, which does it with its library. */
export interface LibraryTask {
  model: string
  prompt: string
  streamed: boolean
  /** Options of the library. */
  options?: Record<string, unknown>
  headers?: Record<string, string>
  /** A second prompt, which continues the last response by its id. The outcome is that of it alone. */
  continuation?: string
}

/** The result that a program prints at its end. */
export interface LibraryOutcome {
  text: string
  /** Calls of the model that the library counts. */
  steps: number
  /** Usage of all steps, as the library adds it up. */
  usage: { input: number; output: number }
}

/**
 * Runs a program in a process of its own, beside the packages it imports.
 *
 * @param program file name in `programs`
 * @throws with the end of its output when it fails
 */
export async function runLibrary<Outcome = LibraryOutcome>(
  bench: Bench,
  library: InstalledLibrary,
  program: string,
  task: LibraryTask,
): Promise<Outcome> {
  if ('missing' in library) throw new Error(library.missing)
  const path = join(bench.folder, program)
  copyFileSync(join(PROGRAMS, program), path)
  symlinkSync(library.modules, join(bench.folder, 'node_modules'))
  const { stdout } = await runClient({
    program: process.execPath,
    arguments: [path, JSON.stringify({ ...task, baseUrl: `${bench.proxy.url}/v1` })],
    environment: {
      ...bench.environment,
      // Requests to other hosts, such as traces, go to the proxy too.
      NODE_USE_ENV_PROXY: '1',
      HEADGATE_KEY: bench.tenant.key,
    },
    folder: bench.folder,
  })
  return JSON.parse(stdout) as Outcome
}
