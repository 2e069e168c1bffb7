// npm run dev: the whole gateway on this machine, in one command. `-- --fresh` begins with empty data, PORT moves it.
import { mkdirSync, readdirSync, rmSync } from 'node:fs'
import { join, relative } from 'node:path'
import { parseArgs } from 'node:util'
import { parseConfiguration } from '../src/env.ts'
import { buildWorker } from './build.ts'
import { type WantedProvider, wantedProviders } from './demo-catalogue.ts'
import { readPort, stackPlan } from './dev-plan.ts'
import { Children, StartError } from './local/children.ts'
import { type Edge, startEdge } from './local/edge.ts'
import { claimPath } from './local/folder-claim.ts'
import { startHostForwarder } from './local/host-forwarder.ts'
import { watchLauncher } from './local/launcher-watch.ts'
import { type LocalWorker, runLocalWorker } from './local/local-worker.ts'
import { freePorts, portProblem } from './local/ports.ts'
import { writePrivateFile } from './local/private-file.ts'
import { type StackPlan, stackCommands, stackUrls } from './local/stack.ts'
import type { RunningStandIn } from './local/stand-in-process.ts'
import { startWorkerd } from './local/workerd.ts'
import { readRuntimeSettings } from './local/wrangler-settings.ts'
import { type LocalSecrets, loadLocalSecrets } from './local-secrets.ts'
import { migrateDatabase } from './migrate.ts'
import { LOCAL_FOLDER, loadDotEnv } from './script-environment.ts'
import { type SeedReport, seedDatabase } from './seed.ts'
import { workerVariables } from './worker-variables.ts'

const ROOT = join(import.meta.dirname, '..')
const DEV_FILE = join(LOCAL_FOLDER, 'dev.json')
const VARIABLES_FILE = join(LOCAL_FOLDER, 'worker.json')

/** What has to be ended, in reverse order of its start. */
interface Running {
  children?: Children
  worker?: LocalWorker
  edge?: Edge
  forwarder?: RunningStandIn
  releaseFolder?: () => void
}

interface Settings {
  /** Where callers come in. */
  port: number
  /** Where workerd listens, behind the edge and the forwarder. */
  workerPort: number
  secrets: LocalSecrets
  plan: StackPlan
  variables: Record<string, string>
  urls: ReturnType<typeof stackUrls>
  commands: ReturnType<typeof stackCommands>
}

const running: Running = {}
let ending = false

async function main(): Promise<void> {
  const begun = performance.now()
  const { fresh } = readArguments()
  loadDotEnv()
  const port = readPort(process.env)
  mkdirSync(LOCAL_FOLDER, { recursive: true, mode: 0o700 })
  running.releaseFolder = claimFolder()
  await checkPorts(port)
  rmSync(DEV_FILE, { force: true })
  if (fresh) removeData()
  const settings = await readSettings(port)
  const report = await start(settings)
  const seconds = (performance.now() - begun) / 1000
  announce(settings, report, seconds)
}

function readArguments(): { fresh: boolean } {
  try {
    const { values } = parseArgs({ options: { fresh: { type: 'boolean', default: false } } })
    return { fresh: values.fresh }
  } catch {
    throw new StartError('usage: npm run dev [-- --fresh]')
  }
}

/** One local system for each folder: a second one, or `--fresh` beside a running one, would destroy its data. */
function claimFolder(): () => void {
  try {
    return claimPath(join(LOCAL_FOLDER, 'dev'))
  } catch (error) {
    const holder = /by process (\d+)/.exec(error instanceof Error ? error.message : '')?.[1]
    if (holder === undefined) throw error
    throw new StartError(`npm run dev runs already (process ${holder}); end it first`)
  }
}

async function checkPorts(port: number): Promise<void> {
  for (const wanted of [port, port + 1]) {
    const problem = await portProblem(wanted)
    if (problem === 'EADDRINUSE')
      throw new StartError(`port ${wanted} is in use; PORT=<number> takes another`)
    if (problem !== null) throw new StartError(`port ${wanted} cannot be used (${problem})`)
  }
}

/** A real database outlives the folder, and what was sealed and digested for it needs the same secrets. */
function removeData(): void {
  const kept = ['dev.lock', 'clients', ...(process.env.DATABASE_URL ? ['secrets.json'] : [])]
  for (const name of readdirSync(LOCAL_FOLDER)) {
    if (!kept.includes(name)) rmSync(join(LOCAL_FOLDER, name), { recursive: true, force: true })
  }
}

/** Reads and checks everything before anything starts. */
async function readSettings(port: number): Promise<Settings> {
  const secrets = loadLocalSecrets(join(LOCAL_FOLDER, 'secrets.json'))
  const plan = stackPlan(process.env, secrets, LOCAL_FOLDER)
  const [postgres = 0, redis = 0, qstash = 0, modelUpstream = 0, contentStore = 0, workerPort = 0] =
    await freePorts(6)
  const ports = { postgres, redis, qstash, modelUpstream, contentStore }
  const urls = stackUrls(plan, ports)
  const variables = workerVariables(process.env, secrets, { baseUrl: `http://127.0.0.1:${port}`, ...urls })
  wantedProviders(process.env, urls.modelUpstream)
  writePrivateFile(VARIABLES_FILE, `${JSON.stringify(variables, null, 2)}\n`)
  return { port, workerPort, secrets, plan, variables, urls, commands: stackCommands(plan, ports) }
}

async function start(settings: Settings): Promise<SeedReport> {
  const { port, workerPort, commands, variables } = settings
  const children = new Children(join(LOCAL_FOLDER, 'logs'), (message) => fail(message))
  running.children = children
  const [postgres, ...others] = [
    commands.postgres,
    commands.redis,
    commands.qstash,
    commands.modelUpstream,
    commands.contentStore,
  ].map(async (command) => command && children.startStandIn(command))
  const workerUp = startWorker(settings).then((worker) => {
    running.worker = worker
  })
  const edge = startEdge(`http://127.0.0.1:${workerPort}`, port).then((started) => {
    running.edge = started
  })
  const forwarder = startHostForwarder({
    port: port + 1,
    targetPort: workerPort,
    host: variables.LLM_HOST?.split(',')[0] ?? '',
  }).then((started) => {
    running.forwarder = started
  })
  const seeded = (postgres ?? Promise.resolve()).then(() => migrateAndSeed(settings))
  const [report] = await Promise.all([seeded, ...others, workerUp, edge, forwarder])
  await checkGateway(settings)
  return report
}

function startWorker({ workerPort, variables, urls }: Settings): Promise<LocalWorker> {
  const bundleDirectory = join(LOCAL_FOLDER, 'bundle')
  return runLocalWorker({
    root: ROOT,
    build: async () => {
      await buildWorker(bundleDirectory)
    },
    start: (onCrash) =>
      startWorkerd({
        ...readRuntimeSettings(join(ROOT, 'wrangler.toml')),
        bundleDirectory,
        folder: join(LOCAL_FOLDER, 'workerd'),
        port: workerPort,
        bindings: variables,
        storageDirectory: join(LOCAL_FOLDER, 'state'),
        buckets: { CONTENT: urls.contentStore },
        logFile: join(LOCAL_FOLDER, 'logs/worker.log'),
        onCrash,
      }),
    report: (message, final) => {
      if (final) fail(message)
      else process.stderr.write(`headgate: ${message}\n`)
    },
  })
}

async function migrateAndSeed({ variables, secrets, urls }: Settings): Promise<SeedReport> {
  const configuration = parseConfiguration(variables)
  const { DATABASE_URL, DATABASE_FETCH_ENDPOINT } = configuration
  await migrateDatabase({ DATABASE_URL, DATABASE_FETCH_ENDPOINT })
  return seedDatabase({
    DATABASE_URL,
    DATABASE_FETCH_ENDPOINT,
    keyPeppers: configuration.KEY_PEPPERS,
    vaultKeys: configuration.VAULT_KEYS,
    keys: secrets.keys,
    providers: wantedProviders(process.env, urls.modelUpstream),
    disableOthers: true,
  })
}

/** One call through everything, so that "ready" means that a first call works. */
async function checkGateway({ port, secrets }: Settings): Promise<void> {
  const response = await fetch(`http://127.0.0.1:${port}/v1/models`, {
    headers: { authorization: `Bearer ${secrets.keys.owner}` },
    signal: AbortSignal.timeout(20_000),
  }).catch(() => null)
  await response?.body?.cancel()
  if (response?.ok) return
  const answer = response === null ? 'does not answer' : `answers ${response.status} to`
  throw new StartError(`the gateway ${answer} GET /v1/models; see ${shown('logs/worker.log')}`)
}

function announce({ port, secrets, variables, urls }: Settings, report: SeedReport, seconds: number): void {
  const baseUrl = `http://127.0.0.1:${port}`
  const llmUrl = `http://127.0.0.1:${port + 1}`
  const content = {
    base_url: baseUrl,
    llm_url: llmUrl,
    admin_token: variables.ADMIN_TOKEN,
    keys: secrets.keys,
    denied_models: report.deniedModels,
  }
  writePrivateFile(DEV_FILE, `${JSON.stringify(content, null, 2)}\n`)
  const first = wantedProviders(process.env, urls.modelUpstream)[0]
  console.log(`Headgate is ready after ${seconds.toFixed(1)} s

  Base URL  ${baseUrl}
  LLM URL   ${llmUrl}
  API key   ${secrets.keys.owner}
  Models    ${report.models.slice(0, 6).join(', ')}${report.models.length > 6 ? ', …' : ''}
  More      ${shown('dev.json')} (admin token, keys of other callers), ${shown('logs')}

  ${firstCall(baseUrl, secrets.keys.owner, first)}

Ctrl-C ends everything; the data stay (npm run dev -- --fresh begins anew).`)
}

/** A call to copy: of the first provider's first model, on the protocol it speaks. */
function firstCall(baseUrl: string, key: string, provider: WantedProvider | undefined): string {
  const model = provider?.models[0]?.id
  const curl = `curl ${baseUrl}`
  const authorization = `-H "Authorization: Bearer ${key}"`
  if (provider === undefined || model === undefined) return `${curl}/v1/models ${authorization}`
  const messages = [{ role: 'user', content: 'Hello' }]
  const [path, body] =
    provider.kind === 'anthropic'
      ? ['/v1/messages', { model, max_tokens: 100, messages }]
      : ['/v1/chat/completions', { model, messages }]
  return `${curl}${path} ${authorization} -H "Content-Type: application/json" -d '${JSON.stringify(body)}'`
}

const shown = (name: string): string => relative(process.cwd(), join(LOCAL_FOLDER, name))

/** Ends everything, the gateway before what it needs. */
async function end(): Promise<void> {
  // Both tell of a system that runs, which is another one when this one was refused the folder.
  if (running.releaseFolder) for (const file of [DEV_FILE, VARIABLES_FILE]) rmSync(file, { force: true })
  await Promise.all([running.edge?.close(), running.forwarder?.close()])
  await running.worker?.stop()
  await running.children?.stop()
  running.releaseFolder?.()
}

function fail(error: unknown): void {
  if (ending) return
  ending = true
  const message = error instanceof Error ? error.message : String(error)
  process.stderr.write(`headgate: ${message.split('\n', 1)[0]}\n`)
  end().finally(() => process.exit(1))
}

function interrupt(): void {
  if (ending) return
  ending = true
  end().finally(() => process.exit(0))
}

for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, interrupt)
watchLauncher(interrupt)
main().catch(fail)
