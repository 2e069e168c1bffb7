import { closeSync, openSync, readFileSync, readSync, renameSync, statSync } from 'node:fs'
import { setTimeout as wait } from 'node:timers/promises'
import { type Child, type Children, inheritedEnvironment, StartError } from './children.ts'
import { wranglerArguments, wranglerEnvironment } from './wrangler-command.ts'

export interface WranglerDevOptions {
  /** Folder with wrangler.toml. */
  root: string
  /** Folder of the local system: persistence goes to `state`, the variables come from `worker.env`. */
  folder: string
  envFile: string
  port: number
}

const NAME = 'worker'
const READY_LIMIT_MS = 90_000

/** The Worker under `wrangler dev`, which stays the same thing over restarts. */
export interface RunningWorker {
  stop(): Promise<void>
}

/** Restarts that are worth trying within `RESTART_WINDOW_MS`. */
const RESTART_LIMIT = 3
const RESTART_WINDOW_MS = 60_000
const CRASH_LINE = 'runtime crashed unexpectedly'

/**
 * Starts `wrangler dev` in local mode on 127.0.0.1 and waits until the Worker answers. It reloads the Worker when a
 * source file changes. When workerd crashes, wrangler starts it again but takes no more requests, so all of wrangler
 * is started again.
 *
 * @param onTrouble called with one line for each crash; `final` when it is not started again
 * @throws StartError with wrangler's first error line, or when nothing answers in time
 */
export async function runWranglerDev(
  children: Children,
  options: WranglerDevOptions,
  onTrouble: (message: string, final: boolean) => void,
): Promise<RunningWorker> {
  let child = await startWranglerDev(children, options)
  let stopped = false
  const crashes: number[] = []
  const restart = async (): Promise<void> => {
    const now = Date.now()
    crashes.push(now)
    if (crashes.filter((at) => at > now - RESTART_WINDOW_MS).length > RESTART_LIMIT) {
      onTrouble('the Workers runtime crashes again and again', true)
      return
    }
    onTrouble('the Workers runtime crashed and is started again', false)
    await child.stop(500)
    const log = children.logFile(NAME)
    renameSync(log, log.replace(/\.log$/, '-crashed.log'))
    if (stopped) return
    child = await startWranglerDev(children, options)
    await workerReady(children, child, options.port)
    watch()
  }
  const watch = (): void => {
    const crashed = logScanner(children.logFile(NAME), CRASH_LINE)
    const timer = setInterval(() => {
      if (stopped) clearInterval(timer)
      if (stopped || !crashed()) return
      clearInterval(timer)
      restart().catch((error: Error) => onTrouble(error.message, true))
    }, 500)
    timer.unref()
  }
  await workerReady(children, child, options.port)
  watch()
  return {
    stop: async () => {
      stopped = true
      await child.stop(3_000)
    },
  }
}

function startWranglerDev(children: Children, options: WranglerDevOptions): Promise<Child> {
  return children.spawn({
    name: NAME,
    command: process.execPath,
    arguments: wranglerArguments([
      'dev',
      '--local',
      ...['--ip', '127.0.0.1'],
      ...['--port', String(options.port)],
      // 0 is any free port, so that a second local system finds its own.
      ...['--inspector-port', '0'],
      ...['--persist-to', `${options.folder}/state`],
      ...['--env-file', options.envFile],
      '--show-interactive-dev-session=false',
    ]),
    environment: { ...inheritedEnvironment(), ...wranglerEnvironment(options.folder) },
    workingDirectory: options.root,
  })
}

async function workerReady(children: Children, child: Child, port: number): Promise<void> {
  const end = Date.now() + READY_LIMIT_MS
  while (Date.now() < end) {
    const complaint = firstComplaint(children.logFile(NAME))
    if (complaint !== null) throw new StartError(`the Worker does not start: ${complaint}`)
    if (!child.alive()) throw new StartError('the Worker does not start: wrangler ended')
    if (await answers(port)) return
    await wait(50)
  }
  throw new StartError(`the Worker did not answer within ${READY_LIMIT_MS / 1000} s`)
}

/** A path that no route has: every other answer than a 404 of ours would touch what may not be up yet. */
async function answers(port: number): Promise<boolean> {
  try {
    const response = await fetch(`http://127.0.0.1:${port}/.well-known/ready`, {
      signal: AbortSignal.timeout(10_000),
    })
    await response.body?.cancel()
    return response.status < 500
  } catch {
    return false
  }
}

/**
 * Reads a growing log piece by piece.
 *
 * @returns tells whether the text is in what was written since the last call
 */
function logScanner(path: string, text: string): () => boolean {
  let offset = 0
  return () => {
    const size = statSync(path, { throwIfNoEntry: false })?.size ?? 0
    if (size <= offset) return false
    const file = openSync(path, 'r')
    // Goes back by the length of the text, which may have been half written.
    const from = Math.max(0, offset - text.length)
    const bytes = Buffer.alloc(size - from)
    readSync(file, bytes, 0, bytes.length, from)
    closeSync(file)
    offset = size
    return bytes.includes(text)
  }
}

function firstComplaint(logFile: string): string | null {
  const line = readFileSync(logFile, 'utf8')
    .split('\n')
    .find((text) => text.includes('[ERROR]'))
  return line === undefined ? null : line.slice(line.indexOf('[ERROR]') + '[ERROR]'.length).trim()
}
