import { type ChildProcess, spawn } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { vi } from 'vitest'
import { freePorts, portProblem } from '../../scripts/node/ports.ts'

const ROOT = join(import.meta.dirname, '../..')

/** Files that `npm run dev` writes. */
export interface DevFile {
  base_url: string
  llm_url: string
  admin_token: string
  keys: Record<string, string>
  denied_models: string[]
  /** Ids by name. */
  agents: Record<string, string>
}

/** A run of `scripts/dev.ts`. */
export interface DevRun {
  process: ChildProcess
  /** Process id of the script itself. */
  pid(): number
  output(): { stdout: string; stderr: string }
  /** Waits until it says that it is ready. @throws with its error line if it ends first */
  ready(): Promise<DevFile>
  /** @returns its exit code, or the signal that ended it */
  ended(): Promise<number | NodeJS.Signals | null>
}

/** A port whose next one is free as well. */
export async function freePortPair(): Promise<number> {
  for (const port of await freePorts(20)) {
    if (port < 65_000 && (await portProblem(port + 1)) === null) return port
  }
  throw new Error('no two free ports in a row')
}

/**
 * Starts the local system as a person would.
 *
 * @param folder HEADGATE_FOLDER, so that nobody's own data are touched
 * @param options `viaNpm` starts `npm run dev` in a process group of its own, else the script alone
 */
export function startDev(
  folder: string,
  environment: Record<string, string>,
  options: { viaNpm?: boolean; parameters?: string[] } = {},
): DevRun {
  const inherited = { PATH: process.env.PATH, HOME: process.env.HOME }
  const parameters = options.parameters ?? []
  const [command, before] = options.viaNpm
    ? ['npm', ['run', 'dev', '--']]
    : [process.execPath, [join(ROOT, 'scripts/dev.ts')]]
  const child = spawn(command, [...before, ...parameters], {
    cwd: ROOT,
    env: { ...inherited, ...environment, HEADGATE_FOLDER: folder },
    stdio: ['ignore', 'pipe', 'pipe'],
    detached: true,
  })
  const output = { stdout: '', stderr: '' }
  child.stdout?.on('data', (text: Buffer) => {
    output.stdout += text.toString()
  })
  child.stderr?.on('data', (text: Buffer) => {
    output.stderr += text.toString()
  })
  const closed = new Promise<number | NodeJS.Signals | null>((resolve) =>
    child.once('close', (code, signal) => resolve(code ?? signal)),
  )
  const file = join(folder, 'dev.json')
  return {
    process: child,
    pid: () => Number(readFileSync(join(folder, 'dev.lock'), 'utf8').split(' ', 1)[0]),
    output: () => output,
    ended: () => closed,
    ready: async () => {
      await vi.waitFor(
        () => {
          if (child.exitCode !== null) throw new Error(`it ended: ${output.stderr}`)
          if (!output.stdout.includes('Ctrl-C ends everything') || !existsSync(file))
            throw new Error('not ready')
        },
        { timeout: 60_000, interval: 50 },
      )
      return JSON.parse(readFileSync(file, 'utf8')) as DevFile
    },
  }
}
