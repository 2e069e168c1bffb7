import { Bash, type BashOptions } from 'just-bash/browser'
import { logEvent } from '../../lib/log.ts'
import { type CommandOutput, WORKSPACE_FOLDER } from '../contract.ts'
import type { FileStore } from '../files/file-store.ts'
import { SHELL_LIMITS } from '../limits.ts'
import { cutOutput } from './cut-output.ts'
import { diffCommand } from './diff-command.ts'
import { InterpreterSteps } from './interpreter-steps.ts'
import { ShellFileSystem } from './shell-file-system.ts'

/** The network of a script; commands such as curl exist with it only. It must check every address itself. */
export type ShellNetwork = NonNullable<BashOptions['fetch']>

interface CommandLimits {
  /** Milliseconds of each command. */
  timeoutMs: number
  /** UTF-8 bytes of stdout and of stderr of each command. */
  outputBytes: number
}

/** Memory limits in bytes: an isolate has 128 MB, which may hold several copies of one file. */
const MEMORY_LIMITS = {
  maxLiveBytes: 32 * 1024 * 1024,
  maxInputBytes: 32 * 1024 * 1024,
  maxStringLength: 8 * 1024 * 1024,
  maxHeredocSize: 1024 * 1024,
  maxSourceBytes: 2 * SHELL_LIMITS.sourceLength,
  maxOutputSize: 32 * 1024 * 1024,
  maxArchiveBytes: 32 * 1024 * 1024,
  maxArchiveCompressedBytes: 16 * 1024 * 1024,
  maxArchiveEntryBytes: 16 * 1024 * 1024,
  maxArchiveEntries: 2_000,
}
/** Pure work has no time limit in an isolate, since timers wait for it: it is bounded by counts. See also InterpreterSteps. */
const WORK_LIMITS = { maxCallDepth: 64, maxExecDepth: 16, maxSubstitutionDepth: 20 }

const ENVIRONMENT = { HOME: WORKSPACE_FOLDER, USER: 'user', TMPDIR: '/tmp', LANG: 'C.UTF-8' }
const TIMED_OUT: CommandOutput['outcome'] = { type: 'timeout' }

/**
 * Runs commands one after another. Variables and the working directory of one are those of the next.
 * @param network null without a network. @param signal stops the running command, and those after it do not run.
 * @returns an output for each command. Never rejects for what a command does.
 */
export async function runCommands(
  store: FileStore,
  commands: readonly string[],
  limits: CommandLimits,
  network: ShellNetwork | null,
  signal: AbortSignal,
): Promise<CommandOutput[]> {
  const end = Date.now() + SHELL_LIMITS.callMs
  const outputs: CommandOutput[] = []
  const steps = new InterpreterSteps()
  let state: ShellState = { cwd: WORKSPACE_FOLDER, env: ENVIRONMENT }
  for (const command of commands) {
    const left = Math.min(limits.timeoutMs, end - Date.now())
    if (left <= 0 || outputs.at(-1)?.outcome.type === 'timeout') {
      outputs.push({ stdout: '', stderr: 'Not run: the time of the call is over.', outcome: TIMED_OUT })
      continue
    }
    const ran = await runCommand({ store, network, steps, signal }, command, state, left)
    state = ran.state
    outputs.push({
      ...ran.output,
      stdout: cutOutput(ran.output.stdout, limits.outputBytes),
      stderr: cutOutput(ran.output.stderr, limits.outputBytes),
    })
  }
  return outputs
}

/** The state that all commands of a call share. */
interface ShellCall {
  store: FileStore
  network: ShellNetwork | null
  steps: InterpreterSteps
  signal: AbortSignal
}

interface ShellState {
  cwd: string
  env: Record<string, string>
}

async function runCommand(
  { store, network, steps, signal }: ShellCall,
  command: string,
  state: ShellState,
  timeoutMs: number,
): Promise<{ output: CommandOutput; state: ShellState }> {
  const ended = new AbortController()
  const fs = new ShellFileSystem(store, ended.signal)
  const bash = new Bash({
    fs,
    cwd: state.cwd,
    env: state.env,
    executionLimitProfile: 'hardened',
    executionLimits: { ...MEMORY_LIMITS, ...WORK_LIMITS, maxExecutionTimeMs: timeoutMs + GRACE_MS },
    customCommands: [diffCommand],
    coverage: steps,
    ...(network && { fetch: network }),
  })
  const limit = new AbortController()
  const timer = setTimeout(() => limit.abort(), timeoutMs)
  // A command that does not notice the signal must not hold the workspace.
  const overdue = new AbortController()
  const hard = setTimeout(() => overdue.abort(), timeoutMs + 2 * GRACE_MS)
  const stop = () => {
    limit.abort()
    overdue.abort()
  }
  const late = new Promise<null>((resolve) => overdue.signal.addEventListener('abort', () => resolve(null)))
  signal.addEventListener('abort', stop)
  if (signal.aborted) stop()
  try {
    const result = await Promise.race([bash.exec(command, { signal: limit.signal }), late])
    const failures = fs.failedWrites.map((message) => `${message}\n`).join('')
    const outcome: CommandOutput['outcome'] =
      limit.signal.aborted || result === null
        ? TIMED_OUT
        : { type: 'exit', exit_code: result.exitCode || (failures && 1) || 0 }
    const isBytes = result?.stdoutKind === 'bytes' || result?.stdoutEncoding === 'binary'
    const stdout = isBytes ? Buffer.from(result.stdout, 'latin1').toString() : (result?.stdout ?? '')
    return {
      output: { stdout, stderr: plainMessage(result?.stderr ?? '') + failures, outcome },
      state: result ? { env: result.env, cwd: result.env.PWD ?? state.cwd } : state,
    }
  } catch (error) {
    // An error of the interpreter itself. Its text could contain file content or internal names.
    logEvent('error', 'shell_failed', { error: error instanceof Error ? error.name : 'unknown' })
    const outcome = limit.signal.aborted ? TIMED_OUT : { type: 'exit' as const, exit_code: 126 }
    return { output: { stdout: '', stderr: 'bash: the shell failed\n', outcome }, state }
  } finally {
    clearTimeout(timer)
    clearTimeout(hard)
    signal.removeEventListener('abort', stop)
    ended.abort(new Error('the command has ended'))
  }
}

const GRACE_MS = 500

/** Removes the advice about options of the library, which callers cannot set. */
const plainMessage = (text: string): string => text.replace(/, increase executionLimits\.\w+/g, '')
