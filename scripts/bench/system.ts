import { existsSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseConfiguration } from '../../src/env.ts'
import { type Bundle, buildScripts, TOOLS_CONFIGURATION, toolsBundle } from '../build.ts'
import { openDatabase } from '../database.ts'
import { wantedProviders } from '../demo-catalogue.ts'
import { organizationId } from '../demo-organizations.ts'
import { Children } from '../local/children.ts'
import { freePorts } from '../local/ports.ts'
import { type StackPlan, type StandInName, stackCommands, stackUrls } from '../local/stack.ts'
import { type RunningTools, startTools, TOOLS_RUNTIME } from '../local/tools.ts'
import { type RunningWorkerd, startWorkerd, type WorkerdOptions } from '../local/workerd.ts'
import { readRuntimeSettings } from '../local/wrangler-settings.ts'
import { createLocalSecrets, type LocalSecrets } from '../local-secrets.ts'
import { migrateDatabase } from '../migrate.ts'
import { seedDatabase } from '../seed.ts'
import { workerVariables } from '../worker-variables.ts'
import { expectSuccess, prepareAnswers } from './answers.ts'
import { type RunningPortkey, startPortkey } from './portkey.ts'
import { allScenarios, type Scenario } from './scenarios.ts'
import { prepareShards } from './shards.ts'

const ROOT = join(import.meta.dirname, '../..')

/** No call of a bench may be refused: the limits are checked as always, only their numbers are out of reach. */
const RATE_LIMIT = String(1_000_000_000)
const CREDITS = 1_000_000_000_000
/** A busy machine must not make the gateway go on without Redis, which would refuse calls and cost nothing. */
const LIMITS_TIMEOUT_MS = String(10_000)

export interface BenchSystem {
  gateway: RunningWorkerd
  bare: RunningWorkerd
  /** The script of tools. */
  tools: RunningTools
  /** Null where it is not installed. */
  portkey: RunningPortkey | null
  /** Folder of the bundle that the gateway runs, source map included. */
  bundle: string
  scripts: { gateway: Bundle; tools: Bundle }
  /** How each script is started, for starting it again elsewhere. */
  runtimes: Record<'bare' | 'gateway' | 'tools', WorkerdOptions>
  /** URL of the model upstream, `http://127.0.0.1:<port>`. */
  upstream: string
  redis: string
  postgres: string
  postgresPid: number
  scenarios: Scenario[]
  /** The gateway's variables, for a restart with some of them changed. */
  variables: Record<string, string>
  /** Ends every process that was started and removes the files. */
  stop(): Promise<void>
}

export interface SystemOptions {
  /** Port on 127.0.0.1 for the gateway's inspector; none without it, and the bundle is not minified with it. */
  inspectorPort?: number
  /** The server of an installed Portkey; null measures without it. */
  portkey: string | null
}

/**
 * Where Durable Objects store their data: in memory if the system has a folder for that. `workerd` flushes to disk before
 * it answers, so that on a disk the bench would measure the disk: Cloudflare's objects write to replicas over the network
 * instead.
 */
export const STORAGE = existsSync('/dev/shm') ? '/dev/shm' : tmpdir()

/**
 * Builds the Worker and starts all that is measured: the stand-ins and both Workers, each a process of its own.
 *
 * @throws StartError when any of it does not start; nothing is left running then
 */
export async function startSystem(options: SystemOptions): Promise<BenchSystem> {
  const folder = mkdtempSync(join(tmpdir(), 'headgate-bench-'))
  const storage = mkdtempSync(join(STORAGE, 'headgate-bench-'))
  const children = new Children(join(folder, 'logs'), (message) => {
    console.error(`bench: ${message}`)
  })
  const workers: Stoppable[] = []
  const stop = async (): Promise<void> => {
    await Promise.all(workers.splice(0).map((worker) => worker.stop()))
    await children.stop()
    for (const directory of [folder, storage]) rmSync(directory, { recursive: true, force: true })
  }
  try {
    const started = await start(folder, storage, children, workers, options)
    return { ...started, stop }
  } catch (error) {
    await stop()
    throw error
  }
}

interface Stoppable {
  stop(): Promise<void>
}

async function start(
  folder: string,
  storage: string,
  children: Children,
  workers: Stoppable[],
  { inspectorPort, portkey: server }: SystemOptions,
): Promise<Omit<BenchSystem, 'stop'>> {
  const secrets = createLocalSecrets()
  const standIns = await startStandIns(children, secrets, join(storage, 'content'))
  const bundle = join(folder, 'bundle')
  const scripts = await buildScripts(bundle, inspectorPort === undefined ? {} : { minify: false })
  const port = await freePort()
  const variables = workerVariables(
    { ORGANIZATION_RATE_LIMIT: RATE_LIMIT, USER_RATE_LIMIT: RATE_LIMIT, LIMITS_TIMEOUT_MS },
    secrets,
    { baseUrl: `http://127.0.0.1:${port}`, ...standIns },
  )
  const shardKeys = await fillDatabase(variables, secrets, standIns.modelUpstream)
  const settings = readRuntimeSettings(join(ROOT, 'wrangler.toml'))
  const own = <Server extends Stoppable>(server: Server): Server => {
    workers.push(server)
    return server
  }
  const toolsSettings = { ...readRuntimeSettings(TOOLS_CONFIGURATION), bundleDirectory: bundle }
  const tools = own(
    await startTools({
      ...toolsSettings,
      port: await freePort(),
      storageDirectory: join(storage, 'tools'),
      logFile: join(folder, 'logs/tools.log'),
    }),
  )
  const runtimes: BenchSystem['runtimes'] = {
    bare: {
      ...settings,
      bundleDirectory: join(import.meta.dirname, 'workers'),
      cache: false,
      entry: 'bare-proxy.js',
      bindings: { UPSTREAM: standIns.modelUpstream },
      durableObjects: {},
    },
    gateway: {
      ...settings,
      bundleDirectory: bundle,
      bindings: variables,
      buckets: { CONTENT: standIns.contentStore },
      services: { TOOLS: tools.url },
    },
    tools: { ...toolsSettings, ...TOOLS_RUNTIME, bundleDirectory: toolsBundle(bundle) },
  }
  const gateway = own(
    await startWorkerd({
      ...runtimes.gateway,
      port,
      storageDirectory: join(storage, 'objects'),
      logFile: join(folder, 'logs/gateway.log'),
      ...(inspectorPort !== undefined && { inspectorPort }),
    }),
  )
  const bare = own(await startWorkerd({ ...runtimes.bare, logFile: join(folder, 'logs/bare-proxy.log') }))
  const portkey = server === null ? null : await startPortkey(children, server, await freePort())
  for (const slug of ['acme', 'other'] as const) await grantCredits(gateway.url, secrets.adminToken, slug)
  const scenarios = await prepareAnswers(standIns.modelUpstream, allScenarios(secrets.keys, shardKeys))
  const { modelUpstream: upstream, redis, postgres, postgresPid } = standIns
  const running = { gateway, bare, tools, portkey, bundle, scripts, runtimes }
  return { ...running, upstream, redis, postgres, postgresPid, scenarios, variables }
}

async function startStandIns(children: Children, secrets: LocalSecrets, content: string) {
  const [postgres = 0, redis = 0, qstash = 0, modelUpstream = 0, contentStore = 0] = await freePorts(5)
  const plan: StackPlan = {
    postgres: { folder: 'memory' },
    redis: { token: secrets.redisToken },
    qstash: {
      token: secrets.qstashToken,
      currentSigningKey: secrets.qstashCurrentSigningKey,
      nextSigningKey: secrets.qstashNextSigningKey,
    },
    // Recording and logging each call would be work that no real provider does on this machine.
    modelUpstream: { record: false },
    contentStore: { folder: content },
    control: false,
  }
  const ports = { postgres, redis, qstash, modelUpstream, contentStore }
  const commands = stackCommands(plan, ports)
  // Everything is waited for, also after a failure, so that nothing starts behind the clean-up's back.
  const outcomes = await Promise.allSettled(
    Object.values(commands).map((command) => children.startStandIn(command)),
  )
  let postgresPid = 0
  for (const outcome of outcomes) {
    if (outcome.status === 'rejected') throw outcome.reason
    if (outcome.value.child.name === commands.postgres?.name) postgresPid = outcome.value.child.pid
  }
  return { ...(stackUrls(plan, ports) as Record<StandInName, string>), postgresPid }
}

/** @returns keys of many users by ledger shards */
async function fillDatabase(
  variables: Record<string, string>,
  secrets: LocalSecrets,
  upstream: string,
): Promise<ReadonlyMap<number, string[]>> {
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
  const { database, close } = await openDatabase({ DATABASE_URL, DATABASE_FETCH_ENDPOINT })
  return prepareShards(database, configuration.KEY_PEPPERS).finally(close)
}

async function freePort(): Promise<number> {
  const [port = 0] = await freePorts(1)
  return port
}

async function grantCredits(gateway: string, adminToken: string, slug: 'acme' | 'other'): Promise<void> {
  const response = await fetch(`${gateway}/api/organizations/${organizationId(slug)}/credits`, {
    method: 'POST',
    headers: { authorization: `Bearer ${adminToken}`, 'content-type': 'application/json' },
    body: JSON.stringify({ amount: CREDITS, reason: 'bench' }),
  })
  await expectSuccess(response, 'granting credits')
}
