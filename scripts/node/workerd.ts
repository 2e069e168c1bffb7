import { type ChildProcess, spawn } from 'node:child_process'
import {
  closeSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readFileSync,
  rmSync,
} from 'node:fs'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { dirname, join, resolve } from 'node:path'
import { createInterface } from 'node:readline'
import type { Readable } from 'node:stream'
import { startCache } from './cache.ts'
import { getText } from './get-text.ts'
import { watchGroup } from './group-watch.ts'
import { inheritedEnvironment } from './inherited-environment.ts'
import { writePrivateFile } from './private-file.ts'
import { endGroup } from './process-group.ts'
import { StartError } from './start-error.ts'
import { configOf, entryModule } from './workerd-config.ts'

export interface WorkerdOptions {
  /** Folder that `npm run build` wrote. */
  bundleDirectory: string
  /** File in it that holds the Worker; `gateway.js` by default. */
  entry?: string
  /** Port on 127.0.0.1; 0 for any free one, which a restart keeps. */
  port?: number
  /** Where it listens in place of a port of loopback: `unix:/path` or `0.0.0.0:8788`. */
  address?: string
  /** Folder for Unix sockets of what only this process uses, in place of ports. */
  socketFolder?: string
  /** Variables and secrets. They travel in the process environment, never on a command line or in a file. */
  bindings: Record<string, string>
  /** Folder for the data of Durable Objects. Default: a temporary folder that `stop` removes. */
  storageDirectory?: string
  compatibilityDate: string
  flags: string[]
  /** Classes of SQLite Durable Objects by the binding that reaches them; the gateway's own by default. */
  durableObjects?: Record<string, string>
  /** Folder of static files; the gateway's own by default, and none for another Worker. */
  assets?: string
  /** URLs of content stores (`scripts/node/content-store`) by the R2 binding that reaches them; none by default. */
  buckets?: Record<string, string>
  /** URLs of servers on loopback by the service binding that reaches them; none by default. */
  services?: Record<string, string>
  /** Addresses that `fetch` may reach; public and private ones by default. */
  network?: Array<'public' | 'private'>
  /** Whether `caches.default` works; true by default. Off, using it throws. */
  cache?: boolean
  /** Whether `runScheduled` works: the runtime has no triggers by time of its own, so a Worker beside it calls the handler. */
  scheduled?: boolean
  /** Port on 127.0.0.1 for the runtime's inspector (profiles, heap); off when left out. */
  inspectorPort?: number
  /** Folder for the configuration and the copy of the bundle, removed by `stop`. Default: a temporary folder. */
  folder?: string
  /** Called when the process ends by itself. */
  onCrash?: () => void
  /** Gets each line of the output. */
  onLine?: (line: string) => void
  /** File for the output. Default: the output is discarded, except for the reason of a failed start. */
  logFile?: string
}

export interface RunningWorkerd {
  /** `http://127.0.0.1:<port>`; stays the same over restarts. */
  readonly url: string
  readonly port: number
  /** Process id of the current workerd. */
  readonly pid: number
  readonly storageDirectory: string
  /** Calls the handler of scheduled events, as a trigger of wrangler.toml would. @throws if it fails */
  runScheduled(cron: string): Promise<void>
  /** Ends the process with a signal and waits until it is gone; storage stays. SIGKILL is a crash. */
  kill(signal?: NodeJS.Signals): Promise<void>
  /**
   * Starts it again on the same port and storage, other bindings on request. Ends it first if it runs.
   * @throws StartError as at the first start, and after `stop`
   */
  restart(bindings?: Record<string, string>): Promise<void>
  /** Takes the bundle from its folder again, which was built anew, and starts it. */
  reload(): Promise<void>
  /** Ends everything, also a start under way, and removes what was temporary. Calling it twice is harmless. */
  stop(): Promise<void>
}

const START_LIMIT_MS = 15_000

/**
 * Runs the built bundle in the open-source runtime without wrangler, for tests and the bench. Durable Objects are on
 * disk, outbound requests may go to loopback (the guarded fetch inside the Worker still decides), and the Cache API
 * works against a stand-in.
 *
 * @throws StartError if the bundle is missing, the port is in use, or workerd refuses the bundle
 */
export async function startWorkerd(options: WorkerdOptions): Promise<RunningWorkerd> {
  if (!existsSync(join(options.bundleDirectory, entryModule(options)))) {
    throw new StartError(`there is no bundle in ${options.bundleDirectory}; run npm run build`)
  }
  const folder = options.folder ?? mkdtempSync(join(tmpdir(), 'headgate-workerd-'))
  mkdirSync(folder, { recursive: true, mode: 0o700 })
  const storageDirectory = resolve(options.storageDirectory ?? join(folder, 'storage'))
  mkdirSync(storageDirectory, { recursive: true, mode: 0o700 })
  // capnp embeds only files below the configuration; the copy also keeps a rebuild away from a running gateway.
  const copyBundle = () =>
    cpSync(resolve(options.bundleDirectory), join(folder, 'bundle'), {
      recursive: true,
      filter: (path) => !path.endsWith('.map'),
    })
  copyBundle()
  const cache = options.cache === false ? null : await startCache(socketIn(options, 'cache'))
  const configFile = join(folder, 'config.capnp')
  let port = options.port ?? 0
  let bindings = options.bindings
  let current: Launched | null = null
  /** The newest process, also while it is not ready. */
  let newest: ChildProcess | undefined
  let starting: Promise<void> = Promise.resolve()
  let stopped: Promise<void> | undefined
  const refuseStopped = (): void => {
    if (stopped !== undefined) throw new StartError('workerd was stopped')
  }

  const begin = async (): Promise<void> => {
    refuseStopped()
    const addresses = addressesOf(options, port)
    for (const address of Object.values(addresses))
      if (address.startsWith('unix:')) rmSync(address.slice('unix:'.length), { force: true })
    writePrivateFile(configFile, configOf(options, bindings, storageDirectory, addresses, cache?.url ?? null))
    const onSpawn = (child: ChildProcess): void => {
      newest = child
    }
    // A process that is ended before it is ready has not failed.
    const started = await launch(configFile, bindings, options, onSpawn).finally(refuseStopped)
    current = started
    port = started.port
    started.process.once('exit', () => {
      if (current === started) options.onCrash?.()
    })
  }
  const start = (): Promise<void> => {
    starting = begin()
    return starting
  }
  const kill = async (signal: NodeJS.Signals = 'SIGKILL'): Promise<void> => {
    const ending = current?.process
    if (ending === undefined) return
    current = null
    if (hasEnded(ending)) return
    const gone = new Promise((done) => ending.once('exit', done))
    ending.kill(signal)
    await gone
  }
  const stop = async (): Promise<void> => {
    current = null
    // The id of one that has ended may be that of another process by now.
    if (newest?.pid !== undefined && !hasEnded(newest)) await endGroup(newest.pid, 1_000)
    await starting.catch(() => {})
    await cache?.close()
    rmSync(folder, { recursive: true, force: true })
  }
  try {
    await start()
  } catch (error) {
    await stop()
    throw error
  }
  return {
    url: `http://127.0.0.1:${port}`,
    port,
    storageDirectory,
    get pid() {
      return current?.process.pid ?? 0
    },
    runScheduled: (cron) => runScheduled(options, current?.schedulePort ?? null, cron),
    kill,
    restart: async (changed) => {
      await kill('SIGKILL')
      bindings = changed ?? bindings
      await start()
    },
    reload: async () => {
      refuseStopped()
      copyBundle()
      await kill('SIGKILL')
      await start()
    },
    stop: () => {
      stopped ??= stop()
      return stopped
    },
  }
}

const hasEnded = ({ exitCode, signalCode }: ChildProcess): boolean => exitCode !== null || signalCode !== null

/** Path of a Unix socket in the folder for them; nothing where ports are used. */
const socketIn = ({ socketFolder }: WorkerdOptions, name: string): string | undefined =>
  socketFolder === undefined ? undefined : join(socketFolder, `${name}.sock`)

function addressesOf(options: WorkerdOptions, port: number): { http: string; schedule: string } {
  const schedule = socketIn(options, 'schedule')
  return {
    http: options.address ?? `127.0.0.1:${port}`,
    schedule: schedule === undefined ? '127.0.0.1:0' : `unix:${schedule}`,
  }
}

interface Launched {
  process: ChildProcess
  port: number
  /** Port of the Worker that calls the handler of scheduled events; null without such a Worker. */
  schedulePort: number | null
}

async function runScheduled(options: WorkerdOptions, port: number | null, cron: string): Promise<void> {
  if (port === null) throw new Error('this runtime was started without scheduled events')
  const socket = socketIn(options, 'schedule')
  const path = `/?cron=${encodeURIComponent(cron)}`
  const { body } = await getText(socket === undefined ? { port } : { socketPath: socket }, path)
  const { outcome } = JSON.parse(body) as { outcome: string }
  if (outcome !== 'ok') throw new Error(`the scheduled event ended as ${outcome}`)
}

async function launch(
  configFile: string,
  bindings: Record<string, string>,
  options: WorkerdOptions,
  onSpawn: (process: ChildProcess) => void,
): Promise<Launched> {
  const { logFile, inspectorPort, onLine } = options
  const inspector = inspectorPort === undefined ? [] : [`--inspector-addr=127.0.0.1:${inspectorPort}`]
  const log = logFile === undefined ? null : openSync(logFile, 'a', 0o600)
  // Only the flag of the Worker beside ours is experimental.
  const experimental = options.scheduled ? ['--experimental'] : []
  const words = ['serve', configFile, '--control-fd=3', ...experimental, ...inspector]
  const process = spawn(workerdBinary(), words, {
    detached: true,
    stdio: ['ignore', log ?? (onLine ? 'pipe' : 'ignore'), log ?? 'pipe', 'pipe'],
    env: { ...inheritedEnvironment(), ...bindings },
  })
  onSpawn(process)
  if (log !== null) closeSync(log)
  const forget = process.pid === undefined ? () => {} : watchGroup(process.pid)
  process.once('exit', forget)
  for (const stream of [process.stdout, process.stderr])
    if (onLine !== undefined && stream !== null) createInterface({ input: stream }).on('line', onLine)
  let complaint = ''
  process.stderr?.on('data', (text: Buffer) => {
    complaint = (complaint + text.toString()).slice(-4_000)
  })
  try {
    const sockets = options.scheduled ? ['http', 'schedule'] : ['http']
    const ports = await listeningPorts(process, sockets)
    return { process, port: ports.get('http') ?? 0, schedulePort: ports.get('schedule') ?? null }
  } catch (error) {
    if (process.pid !== undefined) await endGroup(process.pid, 500)
    const text = logFile === undefined ? complaint : readFileSync(logFile, 'utf8').slice(-4_000)
    const reason = text.split('\n').find((line) => /error|already in use/i.test(line)) ?? text.split('\n')[0]
    throw new StartError(`workerd ${(error as Error).message}: ${(reason ?? '').trim()}`)
  }
}

/** Resolves with the port of each socket from the control messages, which come once the runtime has accepted the bundle. */
function listeningPorts(process: ChildProcess, sockets: readonly string[]): Promise<Map<string, number>> {
  const ports = new Map<string, number>()
  return new Promise((resolvePorts, reject) => {
    const timer = setTimeout(() => reject(new Error('was not ready in time')), START_LIMIT_MS)
    process.once('error', (error) => reject(new Error(`cannot run (${error.message})`)))
    process.once('exit', () => {
      clearTimeout(timer)
      reject(new Error('did not start'))
    })
    const control = process.stdio[3] as Readable | null
    if (control === null) return
    createInterface({ input: control }).on('line', (line) => {
      const message = JSON.parse(line) as { event?: string; port?: number; socket?: string }
      if (message.event !== 'listen' || message.port === undefined || message.socket === undefined) return
      ports.set(message.socket, message.port)
      if (!sockets.every((socket) => ports.has(socket))) return
      clearTimeout(timer)
      resolvePorts(ports)
    })
  })
}

/** Path of the workerd that wrangler brings: the platform package's binary, not the JavaScript that starts it. */
function workerdBinary(): string {
  const require = createRequire(import.meta.url)
  const manifest = require.resolve('workerd/package.json')
  const architecture = process.arch === 'x64' ? '64' : process.arch
  const platform = process.platform === 'win32' ? 'windows' : process.platform
  const suffix = process.platform === 'win32' ? '.exe' : ''
  for (const folder of [dirname(dirname(manifest)), join(dirname(manifest), 'node_modules')]) {
    const binary = join(folder, `@cloudflare/workerd-${platform}-${architecture}/bin/workerd${suffix}`)
    if (existsSync(binary)) return binary
  }
  throw new StartError(`there is no workerd for ${process.platform} ${process.arch}; run npm install`)
}
