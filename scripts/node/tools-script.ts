import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { Backoff } from './backoff.ts'
import { getText, type LocalAddress } from './get-text.ts'
import { type RunningWorkerd, startWorkerd, type WorkerdOptions } from './workerd.ts'

export interface ToolsOptions {
  /** Folder of the gateway's bundle, in which `tools` has the script of tools. */
  bundleDirectory: string
  /** Port on 127.0.0.1. */
  port?: number
  /** Where it listens in place of a port, as `WorkerdOptions` has it. */
  address?: string
  compatibilityDate: string
  flags: string[]
  storageDirectory?: string
  /** Folder for what the runtime needs while it runs; a temporary one if left out. */
  folder?: string
  logFile?: string
  onLine?: (line: string) => void
  /** Called with one line for a person when the process was killed, has crashed, or is not started again. */
  report?: (message: string, event: ToolsEvent) => void
  /** Milliseconds without an answer after which the process is killed; as long as Cloudflare lets one call compute. */
  hangLimitMs?: number
  /** Bytes of memory above which the process is killed and started again; no limit if left out. Linux only. */
  memoryLimitBytes?: number
}

export type ToolsEvent = 'process_ended' | 'process_not_started' | 'process_started_again'

export interface RunningTools {
  /** `http://127.0.0.1:<port>`; stays the same over restarts. */
  readonly url: string
  readonly pid: number
  /** Takes the bundle again and starts it. */
  reload(): Promise<void>
  stop(): Promise<void>
}

/** How the runtime is configured for the script of tools. */
export const TOOLS_RUNTIME: Pick<
  WorkerdOptions,
  'entry' | 'bindings' | 'durableObjects' | 'network' | 'cache'
> = {
  entry: 'tools.js',
  bindings: {},
  durableObjects: { WORKSPACES: 'WorkspaceObject' },
  // Commands run here: no service of this machine may be in reach.
  network: ['public'],
  cache: false,
}

const HANG_LIMIT_MS = 10_000
const CHECK_INTERVAL_MS = 500
/** Before a restart after a crash, so that a script that always crashes does not keep the machine busy. Failed starts wait longer. */
const CRASH_PAUSE_MS = 200

/**
 * Runs the script of tools in a process of its own, and supervises it: a command that computes without an end stalls the
 * whole process, so that one that does not answer is killed and started again. Cloudflare's limit of CPU time does the same.
 * @throws StartError
 */
export async function startTools(options: ToolsOptions): Promise<RunningTools> {
  const {
    bundleDirectory,
    hangLimitMs = HANG_LIMIT_MS,
    memoryLimitBytes,
    report = () => {},
    ...settings
  } = options
  const stopping = new AbortController()
  let work: Promise<void> = Promise.resolve()
  const next = (step: () => Promise<void>): Promise<void> => {
    const result = work.then(async () => {
      if (!stopping.signal.aborted) await step()
    })
    // A step that fails must not keep the later ones from being done.
    work = result.catch(() => {})
    return result
  }
  const backoff = new Backoff()
  const restart = (pauseMs: number): Promise<void> =>
    next(() => restartUntilItRuns(workerd, pauseMs, backoff, stopping.signal, report))
  const workerd: RunningWorkerd = await startWorkerd({
    ...settings,
    ...TOOLS_RUNTIME,
    bundleDirectory: join(bundleDirectory, 'tools'),
    onCrash: () => {
      if (stopping.signal.aborted) return
      report('the process of the tools ended and is started again', 'process_ended')
      void restart(CRASH_PAUSE_MS)
    },
  })
  const replace = async (reason: string): Promise<void> => {
    report(`the process of the tools ${reason}; it is killed and started again`, 'process_ended')
    await restart(0)
  }
  const address = localAddress(options.address) ?? { port: workerd.port }
  const check = async (): Promise<void> => {
    if (stopping.signal.aborted) return
    if (memoryLimitBytes !== undefined && residentBytes(workerd.pid) > memoryLimitBytes)
      return replace('uses too much memory')
    if ((await answers(address, hangLimitMs)) || stopping.signal.aborted) return
    await replace('does not answer')
  }
  const watch = (): void => {
    timer = setTimeout(() => check().finally(() => !stopping.signal.aborted && watch()), CHECK_INTERVAL_MS)
    timer.unref()
  }
  let timer: NodeJS.Timeout
  watch()
  return {
    url: workerd.url,
    get pid() {
      return workerd.pid
    },
    reload: () => next(() => workerd.reload()),
    stop: async () => {
      stopping.abort()
      clearTimeout(timer)
      await workerd.stop()
      await work
    },
  }
}

/**
 * Starts the process again, and repeats a start that failed, as on a full disk, after longer and longer waits.
 * @param pauseMs milliseconds before the first start. @param signal ends it; no start is waited for then
 */
async function restartUntilItRuns(
  workerd: RunningWorkerd,
  pauseMs: number,
  backoff: Backoff,
  signal: AbortSignal,
  report: NonNullable<ToolsOptions['report']>,
): Promise<void> {
  let waitMs = pauseMs
  for (let failed = 0; ; failed += 1) {
    await wait(waitMs, undefined, { signal }).catch(() => {})
    if (signal.aborted) return
    try {
      await workerd.restart()
      if (failed > 0) report('the process of the tools was started again', 'process_started_again')
      return
    } catch (error) {
      if (signal.aborted) return
      report(`the process of the tools does not start: ${(error as Error).message}`, 'process_not_started')
      waitMs = backoff.next(performance.now())
    }
  }
}

/** Where to reach what listens at an address of workerd; nothing if there is none. */
function localAddress(address: string | undefined): LocalAddress | undefined {
  if (address === undefined) return undefined
  if (address.startsWith('unix:')) return { socketPath: address.slice('unix:'.length) }
  return { port: Number(address.slice(address.lastIndexOf(':') + 1)) }
}

/** Memory of a process in bytes, from proc(5) status; 0 where it cannot be read. */
function residentBytes(pid: number): number {
  try {
    const kibibytes = /^VmRSS:\s+(\d+) kB/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]
    return Number(kibibytes ?? 0) * 1024
  } catch {
    return 0
  }
}

/** A refused connection answers too: the crash is reported by itself. */
async function answers(address: LocalAddress, limitMs: number): Promise<boolean> {
  try {
    await getText(address, '/health', AbortSignal.timeout(limitMs))
    return true
  } catch (error) {
    return (error as Error).name !== 'TimeoutError'
  }
}
