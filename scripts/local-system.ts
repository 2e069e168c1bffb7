// Code that `npm run dev` and `npm run services` share: the stand-ins, their settings and data, start and end.

import { randomBytes } from 'node:crypto'
import { mkdirSync, readdirSync, rmSync } from 'node:fs'
import { join, relative } from 'node:path'
import { parseArgs } from 'node:util'
import { parseConfiguration } from '../src/env.ts'
import { REPORT_AGENT } from './demo-agents.ts'
import { type WantedProvider, wantedProviders } from './demo-catalogue.ts'
import { DEMO_CALLERS, organizationId, userId } from './demo-organizations.ts'
import { readPort, stackPlan } from './dev-plan.ts'
import { Children, type StandInCommand } from './local/children.ts'
import { watchLauncher } from './local/launcher-watch.ts'
import { stackCommands, stackUrls } from './local/stack.ts'
import { type LocalSecrets, loadLocalSecrets } from './local-secrets.ts'
import { migrateDatabase } from './migrate.ts'
import { claimPath } from './node/folder-claim.ts'
import { startHostForwarder } from './node/host-forwarder.ts'
import { freePorts, portProblem } from './node/ports.ts'
import { writePrivateFile } from './node/private-file.ts'
import { StartError } from './node/start-error.ts'
import { loadDotEnv } from './script-environment.ts'
import { type SeedReport, seedDatabase } from './seed.ts'
import type { DemoUpstreams } from './seed-integrations.ts'
import { dropShellEnvironment, shellEnvironment } from './shell-environment.ts'
import { workerVariables } from './worker-variables.ts'

export interface LocalSystemOptions {
  /** The npm script, as messages name it. */
  command: 'npm run dev' | 'npm run services'
  /** Data, logs and secrets. */
  folder: string
  /** Members of the folder that `--fresh` leaves. */
  kept: string[]
  /** Called by `--fresh` after the folder is emptied. */
  removeMore?: () => void
  /** Whether this system listens on PORT itself; PORT + 1 is its forwarder's in any case. */
  takesPort: boolean
  /** Called before anything is written or started. @throws StartError */
  check?: () => void
  /** Starts what runs beside the stand-ins, concurrently with them. */
  startGateway(system: LocalSystem): Promise<void>
  /** Called when everything is up, before `announcement` is printed. */
  checkGateway?(system: LocalSystem): Promise<void>
  /** The first lines of what is printed at the end of a start. */
  announcement(system: LocalSystem, seconds: string): string
}

/** A local system that starts or runs. */
export interface LocalSystem {
  folder: string
  /** Addresses for callers. */
  port: number
  /** A free port for a Worker behind PORT. */
  workerPort: number
  /** A free port for the script of tools. */
  toolsPort: number
  /** The Worker's variables, secrets included. */
  variables: Record<string, string>
  secrets: LocalSecrets
  urls: ReturnType<typeof stackUrls>
  upstreams: DemoUpstreams
  /** Functions that end parts of the system, called in reverse order. */
  cleanUps: Array<() => unknown>
  /** Ends everything with one line on stderr and exit code 1. */
  fail(error: unknown): void
}

/** Runs a local system until a signal, or the end of npm, ends it. */
export function runLocalSystem(options: LocalSystemOptions): void {
  const cleanUps: Array<() => unknown> = []
  let ending = false
  const end = (exitCode: number): void => {
    if (ending) return
    ending = true
    endAll(cleanUps).finally(() => process.exit(exitCode))
  }
  const fail = (error: unknown): void => {
    const message = error instanceof Error ? error.message : String(error)
    if (!ending) process.stderr.write(`headgate: ${message.split('\n', 1)[0]}\n`)
    end(1)
  }
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => end(0))
  watchLauncher(() => end(0))
  start(options, cleanUps, fail).catch(fail)
}

async function endAll(cleanUps: Array<() => unknown>): Promise<void> {
  for (const cleanUp of cleanUps.splice(0).reverse()) await cleanUp()
}

async function start(
  options: LocalSystemOptions,
  cleanUps: LocalSystem['cleanUps'],
  fail: LocalSystem['fail'],
): Promise<void> {
  const begun = performance.now()
  const { folder, command } = options
  const fresh = readFresh(command)
  dropShellEnvironment(process.env)
  loadDotEnv()
  const port = readPort(process.env)
  options.check?.()
  mkdirSync(folder, { recursive: true, mode: 0o700 })
  cleanUps.push(claimFolder(folder, command))
  await checkPorts(options.takesPort ? [port, port + 1] : [port + 1])
  const files = ['dev.json', 'env.sh', 'worker.json'].map((name) => join(folder, name))
  removeFiles(files)
  if (fresh) removeData(options)
  cleanUps.push(() => removeFiles(files))
  const { commands, ...settings } = await readSettings(folder, port)
  const system: LocalSystem = { ...settings, cleanUps, fail }
  const report = await startAll(system, commands, options)
  await options.checkGateway?.(system)
  writeDevFile(join(folder, 'dev.json'), system, report)
  const agentId = report.agents[REPORT_AGENT]
  const adminToken = system.variables.ADMIN_TOKEN ?? system.secrets.adminToken
  const shell = { baseUrl: baseUrlOf(system), key: system.secrets.keys.owner, adminToken, agentId }
  writePrivateFile(join(folder, 'env.sh'), shellEnvironment(shell))
  const seconds = ((performance.now() - begun) / 1000).toFixed(1)
  console.log(announcementOf(options, system, report, seconds))
}

function readFresh(command: string): boolean {
  try {
    return parseArgs({ options: { fresh: { type: 'boolean', default: false } } }).values.fresh
  } catch {
    throw new StartError(`usage: ${command} [-- --fresh]`)
  }
}

/** Locks the folder: a second system, or `--fresh` beside a running one, would destroy its data. */
function claimFolder(folder: string, command: string): () => void {
  try {
    return claimPath(join(folder, 'dev'))
  } catch (error) {
    const holder = /by process (\d+)/.exec(error instanceof Error ? error.message : '')?.[1]
    if (holder === undefined) throw error
    throw new StartError(`${command} runs already (process ${holder}); end it first`)
  }
}

async function checkPorts(ports: number[]): Promise<void> {
  for (const wanted of ports) {
    const problem = await portProblem(wanted)
    if (problem === 'EADDRINUSE')
      throw new StartError(`port ${wanted} is in use; PORT=<number> takes another`)
    if (problem !== null) throw new StartError(`port ${wanted} cannot be used (${problem})`)
  }
}

/** A real database outlives the folder, and what was sealed and digested for it needs the same secrets. */
function removeData({ folder, kept, removeMore }: LocalSystemOptions): void {
  const all = ['dev.lock', ...kept, ...(process.env.DATABASE_URL ? ['secrets.json'] : [])]
  for (const name of readdirSync(folder)) {
    if (!all.includes(name)) rmSync(join(folder, name), { recursive: true, force: true })
  }
  removeMore?.()
}

function removeFiles(files: readonly string[]): void {
  for (const file of files) rmSync(file, { force: true })
}

/** Reads and checks everything before anything starts. */
async function readSettings(folder: string, port: number) {
  const secrets = loadLocalSecrets(join(folder, 'secrets.json'))
  const plan = stackPlan(process.env, secrets, folder)
  const [
    postgres = 0,
    redis = 0,
    qstash = 0,
    modelUpstream = 0,
    contentStore = 0,
    workerPort = 0,
    toolsPort = 0,
    integrationsPort = 0,
  ] = await freePorts(8)
  const ports = { postgres, redis, qstash, modelUpstream, contentStore }
  const urls = stackUrls(plan, ports)
  const integrations = `http://127.0.0.1:${integrationsPort}`
  const services = { baseUrl: `http://127.0.0.1:${port}`, ...urls, integrations }
  const startToken = randomBytes(32).toString('base64url')
  const environment = withLocalSignIn(process.env, services.baseUrl, startToken)
  const variables = workerVariables(environment, secrets, services)
  wantedProviders(process.env, urls.modelUpstream)
  writePrivateFile(join(folder, 'worker.json'), `${JSON.stringify(variables, null, 2)}\n`)
  return {
    folder,
    port,
    workerPort,
    toolsPort,
    secrets,
    variables,
    urls,
    upstreams: { url: integrations, ...DEMO_SECRETS },
    commands: stackCommands(plan, ports),
  }
}

/** Lets the console be entered as the demo callers, unless BASE_URL is another one or the variable is set. */
function withLocalSignIn(environment: NodeJS.ProcessEnv, baseUrl: string, token: string): NodeJS.ProcessEnv {
  if (environment.LOCAL_SIGN_IN || (environment.BASE_URL && environment.BASE_URL !== baseUrl))
    return environment
  const members = DEMO_CALLERS.map(
    ({ name, organization }) => `${organizationId(organization)}/${userId(name)}`,
  )
  return { ...environment, LOCAL_SIGN_IN: [token, ...members].join(',') }
}

/** The address of the console with the start token; browsers take passkeys at `localhost` only. */
function consoleUrl({ port, variables }: LocalSystem): string {
  const [token] = (variables.LOCAL_SIGN_IN ?? '').split(',')
  return `http://localhost:${port}/console${token ? `#start=${token}` : ''}`
}

async function startAll(
  system: LocalSystem,
  commands: ReturnType<typeof stackCommands>,
  options: LocalSystemOptions,
): Promise<SeedReport> {
  const { folder, port, variables, cleanUps } = system
  const children = new Children(join(folder, 'logs'), system.fail)
  cleanUps.push(() => children.stop())
  const { postgres, ...others } = commands
  const seeded = Promise.resolve(postgres && children.startStandIn(postgres)).then(() => seed(system))
  const forwarder = startHostForwarder({
    port: port + 1,
    targetPort: options.takesPort ? system.workerPort : port,
    host: variables.LLM_HOST?.split(',')[0] ?? '',
  }).then((started) => cleanUps.push(started.close))
  const [report] = await Promise.all([
    seeded,
    ...Object.values(others).map((command) => children.startStandIn(command)),
    children.startStandIn(upstreamsCommand(system)),
    forwarder,
    options.startGateway(system),
  ])
  return report
}

/** Requirements of the demo upstreams, which listen on loopback only. */
const DEMO_SECRETS = { memoryToken: 'demo-token-of-the-memory', ticketKey: 'demo-key-of-the-tickets' }

function upstreamsCommand({ folder, upstreams }: LocalSystem): StandInCommand {
  const { url, memoryToken, ticketKey } = upstreams
  return {
    name: 'integration-upstreams',
    port: Number(new URL(url).port),
    arguments: ['--data', join(folder, 'integrations')],
    environment: { MEMORY_TOKEN: memoryToken, TICKET_KEY: ticketKey },
  }
}

async function seed({ variables, secrets, urls, upstreams }: LocalSystem): Promise<SeedReport> {
  const { DATABASE_URL, DATABASE_FETCH_ENDPOINT, KEY_PEPPERS, VAULT_KEYS } = parseConfiguration(variables)
  await migrateDatabase({ DATABASE_URL, DATABASE_FETCH_ENDPOINT })
  return seedDatabase({
    DATABASE_URL,
    DATABASE_FETCH_ENDPOINT,
    keyPeppers: KEY_PEPPERS,
    vaultKeys: VAULT_KEYS,
    keys: secrets.keys,
    providers: wantedProviders(process.env, urls.modelUpstream),
    upstreams,
    disableOthers: true,
  })
}

const baseUrlOf = ({ port }: LocalSystem): string => `http://127.0.0.1:${port}`
const llmUrlOf = ({ port }: LocalSystem): string => `http://127.0.0.1:${port + 1}`

function writeDevFile(path: string, system: LocalSystem, report: SeedReport): void {
  const content = {
    base_url: baseUrlOf(system),
    console_url: consoleUrl(system),
    llm_url: llmUrlOf(system),
    admin_token: system.variables.ADMIN_TOKEN,
    keys: system.secrets.keys,
    denied_models: report.deniedModels,
    agents: report.agents,
  }
  writePrivateFile(path, `${JSON.stringify(content, null, 2)}\n`)
}

function announcementOf(
  { announcement, command }: LocalSystemOptions,
  system: LocalSystem,
  report: SeedReport,
  seconds: string,
): string {
  const baseUrl = baseUrlOf(system)
  const key = system.secrets.keys.owner
  const first = wantedProviders(process.env, system.urls.modelUpstream)[0]
  return `${announcement(system, seconds)}

  Console   ${consoleUrl(system)} (signs in once)
  Base URL  ${baseUrl}
  LLM URL   ${llmUrlOf(system)}
  API key   ${key}
  Models    ${report.models.slice(0, 6).join(', ')}${report.models.length > 6 ? ', …' : ''}
  Agents    ${Object.keys(report.agents).join(', ')} (GET /v1/agents/list)
  Shell     source ${shownPath(system, 'env.sh')} (for curl, the official SDKs and npm run admin)
  More      ${shownPath(system, 'dev.json')} (admin token, keys of other callers, ids of agents), ${shownPath(system, 'logs')}

  ${firstCall(baseUrl, key, first)}

Ctrl-C ends everything; the data stay (${command} -- --fresh begins anew).`
}

/** An example call: of the first provider's first model, in its protocol. */
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

/** A member of the system's folder, relative to where the command runs. */
export const shownPath = ({ folder }: LocalSystem, name: string): string =>
  relative(process.cwd(), join(folder, name))
