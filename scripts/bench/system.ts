import { existsSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseConfiguration } from '../../src/env.ts'
import { buildWorker } from '../build.ts'
import { wantedProviders } from '../demo-catalogue.ts'
import { organizationId } from '../demo-organizations.ts'
import { Children, StartError } from '../local/children.ts'
import { freePorts } from '../local/ports.ts'
import { type StackPlan, stackCommands, stackUrls } from '../local/stack.ts'
import { type RunningWorkerd, startWorkerd } from '../local/workerd.ts'
import { readRuntimeSettings } from '../local/wrangler-settings.ts'
import { createLocalSecrets, type LocalSecrets } from '../local-secrets.ts'
import { migrateDatabase } from '../migrate.ts'
import { seedDatabase } from '../seed.ts'
import { workerVariables } from '../worker-variables.ts'
import { allScenarios, deltasOf, type Scenario, scriptName } from './scenarios.ts'

const ROOT = join(import.meta.dirname, '../..')

/** No call of a bench may be refused: the limits are checked as always, only their numbers are out of reach. */
const RATE_LIMIT = String(1_000_000_000)
const CREDITS = 1_000_000_000_000
/** A busy machine must not make the gateway go on without Redis, which would refuse calls and cost nothing. */
const LIMITS_TIMEOUT_MS = String(10_000)

export interface BenchSystem {
  gateway: RunningWorkerd
  bare: RunningWorkerd
  /** A proxy that makes the gateway's round trips and does nothing else. */
  roundTrips: RunningWorkerd
  /** Folder of the bundle that the gateway runs, source map included. */
  bundle: string
  /** URL of the model upstream, `http://127.0.0.1:<port>`. */
  upstream: string
  redis: string
  postgres: string
  scenarios: Scenario[]
  /** The gateway's variables, for a restart with some of them changed. */
  variables: Record<string, string>
  /** Ends every process that was started and removes the files. */
  stop(): Promise<void>
}

export interface SystemOptions {
  /** Port on 127.0.0.1 for the gateway's inspector; none without it, and the bundle is not minified with it. */
  inspectorPort?: number
  /** Folder under which Durable Objects keep their data; see `defaultStorage`. */
  storage: string
}

/**
 * Where Durable Objects keep their data unless one says otherwise: in memory if the system has a folder for that.
 * `workerd` flushes to disk before it answers, so on a disk the bench would measure the disk: Cloudflare's objects
 * write to replicas over the network instead.
 */
export function defaultStorage(): string {
  return existsSync('/dev/shm') ? '/dev/shm' : tmpdir()
}

/**
 * Builds the Worker and starts all that is measured: the stand-ins and both Workers, each a process of its own.
 *
 * @throws StartError when any of it does not start; nothing is left running then
 */
export async function startSystem(options: SystemOptions): Promise<BenchSystem> {
  const folder = mkdtempSync(join(tmpdir(), 'headgate-bench-'))
  const storage = mkdtempSync(join(options.storage, 'headgate-bench-'))
  const children = new Children(join(folder, 'logs'), (message) => {
    console.error(`bench: ${message}`)
  })
  const workers: RunningWorkerd[] = []
  const stop = async (): Promise<void> => {
    await Promise.all(workers.splice(0).map((worker) => worker.stop()))
    await children.stop()
    for (const directory of [folder, storage]) rmSync(directory, { recursive: true, force: true })
  }
  try {
    const started = await start(folder, storage, children, workers, options.inspectorPort)
    return { ...started, stop }
  } catch (error) {
    await stop()
    throw error
  }
}

async function start(
  folder: string,
  storage: string,
  children: Children,
  workers: RunningWorkerd[],
  inspectorPort: number | undefined,
): Promise<Omit<BenchSystem, 'stop'>> {
  const secrets = createLocalSecrets()
  const standIns = await startStandIns(children, secrets, join(storage, 'content'))
  const bundle = join(folder, 'bundle')
  await buildWorker(bundle, inspectorPort === undefined ? {} : { minify: false })
  const variables = workerVariables(
    { ORGANIZATION_RATE_LIMIT: RATE_LIMIT, USER_RATE_LIMIT: RATE_LIMIT, LIMITS_TIMEOUT_MS },
    secrets,
    { baseUrl: 'http://127.0.0.1', qstash: null, ...standIns },
  )
  await fillDatabase(variables, secrets, standIns.modelUpstream)
  const settings = readRuntimeSettings(join(ROOT, 'wrangler.toml'))
  const run = async (options: Omit<Parameters<typeof startWorkerd>[0], 'compatibilityDate' | 'flags'>) => {
    const worker = await startWorkerd({ ...settings, ...options })
    workers.push(worker)
    return worker
  }
  const gateway = await run({
    storageDirectory: join(storage, 'objects'),
    bundleDirectory: bundle,
    bindings: variables,
    buckets: { CONTENT: standIns.contentStore },
    logFile: join(folder, 'logs/gateway.log'),
    ...(inspectorPort !== undefined && { inspectorPort }),
  })
  const proxies = { bundleDirectory: join(import.meta.dirname, 'workers'), cache: false }
  const bare = await run({
    ...proxies,
    entry: 'bare-proxy.js',
    bindings: { UPSTREAM: standIns.modelUpstream },
    durableObjects: {},
    logFile: join(folder, 'logs/bare-proxy.log'),
  })
  const roundTrips = await run({
    ...proxies,
    entry: 'round-trips.js',
    bindings: {
      UPSTREAM: standIns.modelUpstream,
      REDIS: standIns.redis,
      REDIS_TOKEN: secrets.redisToken,
    },
    durableObjects: { LEDGER: 'Ledger' },
    storageDirectory: join(storage, 'round-trips'),
    logFile: join(folder, 'logs/round-trips.log'),
  })
  await grantCredits(gateway.url, secrets.adminToken)
  const scenarios = await prepareAnswers(standIns.modelUpstream, allScenarios(secrets.keys))
  const { modelUpstream: upstream, redis, postgres } = standIns
  return { gateway, bare, roundTrips, bundle, upstream, redis, postgres, scenarios, variables }
}

async function startStandIns(children: Children, secrets: LocalSecrets, content: string) {
  const [postgres = 0, redis = 0, qstash = 0, modelUpstream = 0, contentStore = 0] = await freePorts(5)
  const plan: StackPlan = {
    postgres: { folder: 'memory' },
    redis: { token: secrets.redisToken },
    modelUpstream: { record: false },
    contentStore: { folder: content },
    control: false,
  }
  const ports = { postgres, redis, qstash, modelUpstream, contentStore }
  const commands = stackCommands(plan, ports)
  // A line for each call would be work that no real provider does on this machine.
  commands.modelUpstream?.arguments.push('--quiet')
  // Everything is waited for, also after a failure, so that nothing starts behind the clean-up's back.
  const outcomes = await Promise.allSettled(
    Object.values(commands).map((command) => children.startStandIn(command)),
  )
  for (const outcome of outcomes) if (outcome.status === 'rejected') throw outcome.reason
  return stackUrls(plan, ports) as Record<'postgres' | 'redis' | 'modelUpstream' | 'contentStore', string>
}

async function fillDatabase(
  variables: Record<string, string>,
  secrets: LocalSecrets,
  upstream: string,
): Promise<void> {
  const configuration = parseConfiguration(variables)
  const { DATABASE_URL, DATABASE_FETCH_ENDPOINT } = configuration
  await migrateDatabase({ DATABASE_URL, DATABASE_FETCH_ENDPOINT })
  await seedDatabase({
    DATABASE_URL,
    DATABASE_FETCH_ENDPOINT,
    keyPeppers: configuration.KEY_PEPPERS,
    vaultKeys: configuration.VAULT_KEYS,
    keys: secrets.keys,
    providers: wantedProviders({}, upstream),
    disableOthers: true,
  })
}

async function grantCredits(gateway: string, adminToken: string): Promise<void> {
  const response = await fetch(`${gateway}/api/organizations/${organizationId('acme')}/credits`, {
    method: 'POST',
    headers: { authorization: `Bearer ${adminToken}`, 'content-type': 'application/json' },
    body: JSON.stringify({ amount: CREDITS, reason: 'bench' }),
  })
  await expectSuccess(response, 'granting credits')
}

/**
 * Registers the answer of each scenario at the upstream. A streamed one is cut into its frames, and each leaves as a
 * packet of its own, as from a model that writes token by token.
 */
async function prepareAnswers(upstream: string, scenarios: Scenario[]): Promise<Scenario[]> {
  const prepared: Scenario[] = []
  for (const scenario of scenarios) {
    const { steps, events } = await recordAnswer(upstream, scenario)
    const response = await fetch(`${upstream}/control/scripts/${scriptName(scenario)}`, {
      method: 'PUT',
      body: JSON.stringify({ steps }),
    })
    await expectSuccess(response, 'registering an answer')
    prepared.push({ ...scenario, events })
  }
  return prepared
}

/**
 * Takes the answer from the upstream's own scripts, once. A streamed chat is asked for its usage, as the gateway asks
 * for it whether the caller does or not.
 */
async function recordAnswer(upstream: string, scenario: Scenario) {
  const { stream, baseline } = scenario
  const script = stream ? `long-stream tokens=${deltasOf(scenario)}` : 'canned'
  const text = baseline.body.replace(`script:${scriptName(scenario)}`, `script:${script}`)
  const withUsage = stream && baseline.path === '/v1/chat/completions'
  const body = withUsage ? text.replace(/}$/, ',"stream_options":{"include_usage":true}}') : text
  const response = await fetch(upstream + baseline.path, { method: 'POST', headers: baseline.headers, body })
  await expectSuccess(response, 'recording an answer')
  const answer = await response.text()
  const headers = { 'content-type': response.headers.get('content-type') ?? '' }
  if (!stream) return { steps: [{ status: 200, headers, body: answer }], events: 0 }
  const frames = answer.split(/(?<=\n\n)/)
  return { steps: [{ status: 200, headers }, { sse: frames }], events: frames.length }
}

async function expectSuccess(response: Response, what: string): Promise<void> {
  if (!response.ok) throw new StartError(`${what}: status ${response.status}`)
}
