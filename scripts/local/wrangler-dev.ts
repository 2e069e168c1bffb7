import { readFileSync } from 'node:fs'
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

/** Starts `wrangler dev` in local mode on 127.0.0.1. It reloads the Worker when a source file changes. */
export function startWranglerDev(children: Children, options: WranglerDevOptions): Promise<Child> {
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

/**
 * Waits until the Worker answers.
 *
 * @throws StartError with wrangler's first error line, or when nothing answers in time
 */
export async function workerReady(children: Children, child: Child, port: number): Promise<void> {
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

function firstComplaint(logFile: string): string | null {
  const line = readFileSync(logFile, 'utf8')
    .split('\n')
    .find((text) => text.includes('[ERROR]'))
  return line === undefined ? null : line.slice(line.indexOf('[ERROR]') + '[ERROR]'.length).trim()
}
