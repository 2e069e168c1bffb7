import { watch } from 'node:fs'
import { join } from 'node:path'
import type { RunningWorkerd } from '../node/workerd.ts'

export interface LocalWorkerOptions {
  /** Folder with the sources and wrangler.toml. */
  root: string
  /** Builds the bundle that workerd runs. @throws with the first error of the sources */
  build: () => Promise<void>
  /** Starts workerd on the built bundle. */
  start: (onCrash: () => void) => Promise<RunningWorkerd>
  /** Called with one line for a person; `final` when the Worker will not be started again. */
  report: (message: string, final: boolean) => void
}

/** The Worker of a local system, which stays the same thing over restarts and rebuilds. */
export interface LocalWorker {
  /** Calls the handler of scheduled events, as a trigger of wrangler.toml would. */
  runScheduled(cron: string): Promise<void>
  stop(): Promise<void>
}

/** Restarts that are worth trying within `RESTART_WINDOW_MS`. */
const RESTART_LIMIT = 3
const RESTART_WINDOW_MS = 60_000
/** Editors write a file in several steps. */
const SETTLE_MS = 150
const WATCHED = ['src', 'workers', 'schema']
/** Names that begin with a dot, or are in such a folder: wrangler builds in `.wrangler` beside its configuration. */
const GENERATED = /(?:^|[\\/])\./

/**
 * Builds the Worker and runs it in workerd itself. `wrangler dev` has a proxy in front. That proxy hides from the
 * Worker that a client has left, and accepts no requests after the runtime has crashed. A change of a source builds and
 * starts it again; sources that do not build leave the running one as it is.
 *
 * @throws what `build` and `start` throw the first time
 */
export async function runLocalWorker(options: LocalWorkerOptions): Promise<LocalWorker> {
  const worker = new WatchedWorker(options)
  await worker.begin()
  return worker
}

class WatchedWorker implements LocalWorker {
  readonly #options: LocalWorkerOptions
  readonly #stopWatching = new AbortController()
  readonly #crashes: number[] = []
  #workerd: RunningWorkerd | undefined
  #timer: NodeJS.Timeout | undefined
  #rebuildWaits = false
  /** Serializes builds and starts. */
  #work: Promise<void> = Promise.resolve()

  constructor(options: LocalWorkerOptions) {
    this.#options = options
  }

  /** Calls the handler of scheduled events. */
  async runScheduled(cron: string): Promise<void> {
    await this.#workerd?.runScheduled(cron)
  }

  async begin(): Promise<void> {
    const { build, start, root } = this.#options
    await build()
    this.#workerd = await start(() => this.#crashed())
    for (const folder of WATCHED) {
      watch(join(root, folder), { recursive: true, signal: this.#stopWatching.signal }, (_, name) => {
        if (!GENERATED.test(name ?? '')) this.#changed()
      })
    }
  }

  #changed(): void {
    clearTimeout(this.#timer)
    this.#timer = setTimeout(() => {
      if (!this.#rebuildWaits) this.#next(() => this.#rebuild())
      this.#rebuildWaits = true
    }, SETTLE_MS)
  }

  async #rebuild(): Promise<void> {
    const { build, report } = this.#options
    this.#rebuildWaits = false
    try {
      await build()
    } catch (error) {
      report(`${error instanceof Error ? error.message : String(error)}; the old one still runs`, false)
      return
    }
    await this.#workerd?.reload()
    report('built and started again', false)
  }

  #crashed(): void {
    const now = Date.now()
    this.#crashes.push(now)
    if (this.#crashes.filter((at) => at > now - RESTART_WINDOW_MS).length > RESTART_LIMIT) {
      this.#options.report('the Workers runtime crashes again and again', true)
      return
    }
    this.#options.report('the Workers runtime crashed and is started again', false)
    this.#next(async () => this.#workerd?.restart())
  }

  #next(step: () => Promise<void>): void {
    this.#work = this.#work.then(async () => {
      if (this.#stopWatching.signal.aborted) return
      await step().catch((error: Error) => this.#options.report(error.message, true))
    })
  }

  async stop(): Promise<void> {
    this.#stopWatching.abort()
    clearTimeout(this.#timer)
    await this.#work
    await this.#workerd?.stop()
  }
}
