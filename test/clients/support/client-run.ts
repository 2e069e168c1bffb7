import { spawn } from 'node:child_process'
import { endGroup } from '../../../scripts/node/process-group.ts'

/** How long a client may take for its task, which is seconds unless the machine is busy. */
const RUN_LIMIT_MS = 90_000

/** For a test that runs a client once, in milliseconds. */
export const CLIENT_TEST_LIMIT_MS = 120_000

export interface ClientRun {
  program: string
  arguments: string[]
  /** The whole environment: nothing of this process's own reaches the client. */
  environment: Record<string, string>
  folder: string
}

export interface ClientOutcome {
  stdout: string
  stderr: string
}

/**
 * Runs a client to its end, in a process group of its own of which nothing is left afterwards.
 *
 * @throws with the end of its output when it fails or takes too long
 */
export async function runClient(run: ClientRun): Promise<ClientOutcome> {
  const child = spawn(run.program, run.arguments, {
    cwd: run.folder,
    env: run.environment,
    detached: true,
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const outcome: ClientOutcome = { stdout: '', stderr: '' }
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    outcome.stdout += text
  })
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    outcome.stderr += text
  })
  const group = child.pid
  let late = false
  const limit = setTimeout(() => {
    late = true
    if (group !== undefined) void endGroup(group, 0)
  }, RUN_LIMIT_MS)
  try {
    const code = await new Promise<number | null>((resolve, reject) => {
      child.on('error', reject)
      child.on('close', resolve)
    })
    if (code === 0) return outcome
    const how = late ? `took longer than ${RUN_LIMIT_MS / 1_000} s` : `ended with code ${code}`
    throw new Error(`the client ${how}: ${outcome.stdout.slice(-2_000)}${outcome.stderr.slice(-2_000)}`)
  } finally {
    clearTimeout(limit)
    if (group !== undefined) await endGroup(group, 0)
  }
}
