import { join } from 'node:path'
import { type RunningWorkerd, startWorkerd, type WorkerdOptions } from './workerd.ts'

export interface ToolsOptions {
  /** Folder of the gateway's bundle, in which `tools` has the script of tools. */
  bundleDirectory: string
  port: number
  compatibilityDate: string
  flags: string[]
  storageDirectory?: string
  logFile?: string
  /** Called with one line for a person when the process was killed or has crashed. */
  report?: (message: string) => void
  /** Milliseconds without an answer after which the process is killed; as long as Cloudflare lets one call compute. */
  hangLimitMs?: number
}

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
/** Before a restart after a crash, so that a script that always crashes does not keep the machine busy. */
const CRASH_PAUSE_MS = 200

/**
 * Runs the script of tools in a process of its own, and supervises it: a command that computes without an end stalls the
 * whole process, so that one that does not answer is killed and started again. Cloudflare's limit of CPU time does the same.
 * @throws StartError
 */
export async function startTools(options: ToolsOptions): Promise<RunningTools> {
  const { bundleDirectory, hangLimitMs = HANG_LIMIT_MS, report = () => {}, ...settings } = options
  let stopped = false
  let work: Promise<void> = Promise.resolve()
  const next = (step: () => Promise<void>): Promise<void> => {
    work = work.then(async () => {
      if (!stopped) await step()
    })
    return work
  }
  const workerd: RunningWorkerd = await startWorkerd({
    ...settings,
    ...TOOLS_RUNTIME,
    bundleDirectory: join(bundleDirectory, 'tools'),
    onCrash: () => {
      report('the process of the tools ended and is started again')
      next(async () => {
        await new Promise((done) => setTimeout(done, CRASH_PAUSE_MS))
        await workerd.restart()
      }).catch(({ message }: Error) => report(message))
    },
  })
  const check = async (): Promise<void> => {
    if (stopped || (await answers(workerd.url, hangLimitMs)) || stopped) return
    report('the process of the tools does not answer; it is killed and started again')
    await next(() => workerd.restart()).catch(({ message }: Error) => report(message))
  }
  const watch = (): void => {
    timer = setTimeout(() => check().finally(() => !stopped && watch()), CHECK_INTERVAL_MS)
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
      stopped = true
      clearTimeout(timer)
      await work.catch(() => {})
      await workerd.stop()
    },
  }
}

/** A refused connection answers too: the crash is reported by itself. */
async function answers(url: string, limitMs: number): Promise<boolean> {
  try {
    const response = await fetch(`${url}/health`, { signal: AbortSignal.timeout(limitMs) })
    await response.body?.cancel()
    return true
  } catch (error) {
    return (error as Error).name !== 'TimeoutError'
  }
}
