import { type ChildProcess, spawn } from 'node:child_process'
import {
  closeSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readFileSync,
  rmSync,
} from 'node:fs'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { dirname, join, resolve } from 'node:path'
import { createInterface } from 'node:readline'
import type { Readable } from 'node:stream'
import { startCache } from './cache.ts'
import { inheritedEnvironment, StartError } from './children.ts'
import { watchGroup } from './group-watch.ts'
import { writePrivateFile } from './private-file.ts'
import { endGroup } from './process-group.ts'

export interface WorkerdOptions {
  /** Folder that `npm run build` wrote. */
  bundleDirectory: string
  /** File in it that holds the Worker; `gateway.js` by default. */
  entry?: string
  /** Port on 127.0.0.1; 0 for any free one, which a restart keeps. */
  port?: number
  /** Variables and secrets. They travel in the process environment, never on a command line or in a file. */
  bindings: Record<string, string>
  /** Where Durable Objects keep their data; a temporary folder that `stop` removes when left out. */
  storageDirectory?: string
  compatibilityDate: string
  flags: string[]
  /** Classes of SQLite Durable Objects by the binding that reaches them; the gateway's own by default. */
  durableObjects?: Record<string, string>
  /** URLs of content stores (`scripts/local/content-store`) by the R2 binding that reaches them; none by default. */
  buckets?: Record<string, string>
  /** URLs of servers on loopback by the service binding that reaches them; none by default. */
  services?: Record<string, string>
  /** Addresses that `fetch` may reach; public and private ones by default. */
  network?: Array<'public' | 'private'>
  /** Whether `caches.default` works; true by default. Off, using it throws. */
  cache?: boolean
  /** Port on 127.0.0.1 for the runtime's inspector (profiles, heap); off when left out. */
  inspectorPort?: number
  /** Where the configuration and the copy of the bundle go, removed by `stop`; a temporary folder when left out. */
  folder?: string
  /** Called when the process ends by itself. */
  onCrash?: () => void
  /** Where the output goes; discarded when left out, except for the reason of a failed start. */
  logFile?: string
}

export interface RunningWorkerd {
  /** `http://127.0.0.1:<port>`; stays the same over restarts. */
  readonly url: string
  readonly port: number
  /** Process id of the current workerd. */
  readonly pid: number
  readonly storageDirectory: string
  /** Ends the process with a signal and waits until it is gone; storage stays. SIGKILL is a crash. */
  kill(signal?: NodeJS.Signals): Promise<void>
  /** Starts it again on the same port and storage, other bindings on request. Ends it first if it runs. */
  restart(bindings?: Record<string, string>): Promise<void>
  /** Takes the bundle from its folder again, which was built anew, and starts it. */
  reload(): Promise<void>
  /** Ends everything, and removes what was temporary. Calling it twice is harmless. */
  stop(): Promise<void>
}

const START_LIMIT_MS = 15_000

const GATEWAY_OBJECTS = {
  LEDGER: 'Ledger',
  RESPONSE_STREAMS: 'ResponseStream',
  RESPONSE_SOCKETS: 'ResponseSockets',
  CONNECTION_CREDENTIALS: 'ConnectionCredentials',
}

/**
 * Runs the built bundle in the open-source runtime, without wrangler in between: this is what tests and the bench
 * call. Durable Objects are on disk, outbound requests may go to loopback (the guarded fetch inside the Worker
 * still decides), and the Cache API works against a stand-in.
 *
 * @throws StartError if the bundle is missing, the port is in use, or workerd refuses the bundle
 */
export async function startWorkerd(options: WorkerdOptions): Promise<RunningWorkerd> {
  if (!existsSync(join(options.bundleDirectory, entryOf(options)))) {
    throw new StartError(`there is no bundle in ${options.bundleDirectory}; run npm run build`)
  }
  const folder = options.folder ?? mkdtempSync(join(tmpdir(), 'headgate-workerd-'))
  mkdirSync(folder, { recursive: true, mode: 0o700 })
  const storageDirectory = resolve(options.storageDirectory ?? join(folder, 'storage'))
  mkdirSync(storageDirectory, { recursive: true })
  // capnp embeds only files below the configuration; the copy also keeps a rebuild away from a running gateway.
  const copyBundle = () =>
    cpSync(resolve(options.bundleDirectory), join(folder, 'bundle'), { recursive: true })
  copyBundle()
  const cache = options.cache === false ? null : await startCache()
  const configFile = join(folder, 'config.capnp')
  let port = options.port ?? 0
  let bindings = options.bindings
  let current: { process: ChildProcess; port: number } | null = null

  const start = async (): Promise<void> => {
    writePrivateFile(configFile, configOf(options, bindings, storageDirectory, port, cache?.port ?? null))
    const started = await launch(configFile, bindings, options)
    current = started
    port = started.port
    started.process.once('exit', () => {
      if (current === started) options.onCrash?.()
    })
  }
  const kill = async (signal: NodeJS.Signals = 'SIGKILL'): Promise<void> => {
    const ending = current?.process
    if (ending === undefined) return
    current = null
    if (ending.exitCode !== null || ending.signalCode !== null) return
    const gone = new Promise((done) => ending.once('exit', done))
    ending.kill(signal)
    await gone
  }
  let stopped: Promise<void> | undefined
  const stop = async (): Promise<void> => {
    const pid = current?.process.pid
    current = null
    if (pid !== undefined) await endGroup(pid, 1_000)
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
    kill,
    restart: async (changed) => {
      await kill('SIGKILL')
      bindings = changed ?? bindings
      await start()
    },
    reload: async () => {
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

async function launch(configFile: string, bindings: Record<string, string>, options: WorkerdOptions) {
  const { logFile, inspectorPort } = options
  const inspector = inspectorPort === undefined ? [] : [`--inspector-addr=127.0.0.1:${inspectorPort}`]
  const log = logFile === undefined ? null : openSync(logFile, 'a', 0o600)
  const process = spawn(workerdBinary(), ['serve', configFile, '--control-fd=3', ...inspector], {
    detached: true,
    stdio: ['ignore', log ?? 'ignore', log ?? 'pipe', 'pipe'],
    env: { ...inheritedEnvironment(), ...bindings },
  })
  if (log !== null) closeSync(log)
  const forget = process.pid === undefined ? () => {} : watchGroup(process.pid)
  process.once('exit', forget)
  let complaint = ''
  process.stderr?.on('data', (text: Buffer) => {
    complaint = (complaint + text.toString()).slice(-4_000)
  })
  try {
    return { process, port: await listeningPort(process) }
  } catch (error) {
    if (process.pid !== undefined) await endGroup(process.pid, 500)
    const text = logFile === undefined ? complaint : readFileSync(logFile, 'utf8').slice(-4_000)
    const reason = text.split('\n').find((line) => /error|already in use/i.test(line)) ?? text.split('\n')[0]
    throw new StartError(`workerd ${(error as Error).message}: ${(reason ?? '').trim()}`)
  }
}

/** Resolves with the port from the control messages, which come once the runtime has accepted the bundle. */
function listeningPort(process: ChildProcess): Promise<number> {
  return new Promise((resolvePort, reject) => {
    const timer = setTimeout(() => reject(new Error('was not ready in time')), START_LIMIT_MS)
    process.once('error', (error) => reject(new Error(`cannot run (${error.message})`)))
    process.once('exit', () => {
      clearTimeout(timer)
      reject(new Error('did not start'))
    })
    const control = process.stdio[3] as Readable | null
    if (control === null) return
    createInterface({ input: control }).on('line', (line) => {
      const message = JSON.parse(line) as { event?: string; port?: number }
      if (message.event !== 'listen' || message.port === undefined) return
      if ((message as { socket?: string }).socket !== 'http') return
      clearTimeout(timer)
      resolvePort(message.port)
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

function configOf(
  options: WorkerdOptions,
  bindings: Record<string, string>,
  storage: string,
  port: number,
  cachePort: number | null,
): string {
  const objects = Object.entries(options.durableObjects ?? GATEWAY_OBJECTS)
  const buckets = Object.entries(options.buckets ?? {})
  const services = Object.entries(options.services ?? {})
  const network = options.network ?? ['public', 'private']
  const text = (value: string) => JSON.stringify(value)
  const list = (values: string[]) => `[${values.join(', ')}]`
  const variables = Object.keys(bindings).map(
    (name) => `(name = ${text(name)}, fromEnvironment = ${text(name)})`,
  )
  const reached = objects.map(
    ([name, type]) => `(name = ${text(name)}, durableObjectNamespace = ${text(type)})`,
  )
  const stores = buckets.map(([name]) => `(name = ${text(name)}, r2Bucket = ${text(`bucket-${name}`)})`)
  const bound = services.map(([name]) => `(name = ${text(name)}, service = ${text(`service-${name}`)})`)
  const external = (name: string, url: string) =>
    `(name = ${text(name)}, external = (address = ${text(new URL(url).host)}, http = ())),`
  const externals = [
    ...buckets.map(([name, url]) => external(`bucket-${name}`, url)),
    ...services.map(([name, url]) => external(`service-${name}`, url)),
  ]
  const namespaces = objects.map(
    ([, type]) => `(className = ${text(type)}, uniqueKey = ${text(`headgate-${type}`)}, enableSql = true)`,
  )
  return `using Workerd = import "/workerd/workerd.capnp";
const config :Workerd.Config = (
  services = [
    (name = "main", worker = (
      modules = ${list(modulesOf(options))},
      compatibilityDate = ${text(options.compatibilityDate)},
      compatibilityFlags = ${list(options.flags.map(text))},
      bindings = ${list([...variables, ...reached, ...stores, ...bound, PUBLIC_WEB])},
      durableObjectNamespaces = ${list(namespaces)},
      durableObjectStorage = (localDisk = "storage"),
      ${cachePort === null ? '' : 'cacheApiOutbound = "cache",'}
    )),
    (name = "storage", disk = (path = ${text(storage)}, writable = true)),
    (name = "internet", network = (allow = ${list(network.map(text))}, tlsOptions = (trustBrowserCas = true))),
    (name = "public-web", network = (allow = ["public"], tlsOptions = (trustBrowserCas = true))),
    ${externals.join('\n    ')}
    ${cachePort === null ? '' : `(name = "cache", external = (address = "127.0.0.1:${cachePort}", http = ())),`}
  ],
  sockets = [(name = "http", address = "127.0.0.1:${port}", http = (), service = "main")],
);
`
}

/** For pages, and for commands of the shell: a network that connects to no private address, whatever a name resolves to. */
const PUBLIC_WEB = '(name = "PUBLIC_WEB", service = "public-web")'

const entryOf = (options: WorkerdOptions): string => options.entry ?? 'gateway.js'

/** The entry module first, since workerd runs the first one, then what the bundler put beside it. */
function modulesOf(options: WorkerdOptions): string[] {
  const entry = entryOf(options)
  const kinds: Record<string, string> = {
    js: 'esModule',
    mjs: 'esModule',
    wasm: 'wasm',
    txt: 'text',
    html: 'text',
  }
  const others = readdirSync(options.bundleDirectory).filter((name) => name !== entry && name !== 'README.md')
  return [entry, ...others].flatMap((name) => {
    const kind = kinds[name.slice(name.lastIndexOf('.') + 1)]
    return kind === undefined
      ? []
      : [`(name = ${JSON.stringify(name)}, ${kind} = embed ${JSON.stringify(`bundle/${name}`)})`]
  })
}
