import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { wantedProviders } from '../../scripts/demo-catalogue.ts'
import { type Child, Children } from '../../scripts/local/children.ts'
import { type StackPlan, type StandInName, stackCommands, stackUrls } from '../../scripts/local/stack.ts'
import { createLocalSecrets, type DemoKeys } from '../../scripts/local-secrets.ts'
import { migrateDatabase } from '../../scripts/migrate.ts'
import { startHostForwarder } from '../../scripts/node/host-forwarder.ts'
import type { RunningServer } from '../../scripts/node/loopback-server.ts'
import { freePorts } from '../../scripts/node/ports.ts'
import { type RunningTools, startTools } from '../../scripts/node/tools-script.ts'
import { type RunningWorkerd, startWorkerd, type WorkerdOptions } from '../../scripts/node/workerd.ts'
import { readRuntimeSettings } from '../../scripts/node/wrangler-settings.ts'
import { type SeedReport, seedDatabase } from '../../scripts/seed.ts'
import { DEFAULT_LLM_HOST, workerVariables } from '../../scripts/worker-variables.ts'
import { parseConfiguration } from '../../src/env.ts'
import { migratedDatabase } from './migrated-database.ts'

export const TOOLS_WRANGLER_FILE = join(import.meta.dirname, '../../workers/tools/wrangler.toml')
export const WRANGLER_FILE = join(import.meta.dirname, '../../wrangler.toml')

export interface GatewayOptions {
  /** Folder with the built Worker. */
  bundleDirectory: string
  /** Worker variables over the local system's own, such as short time-outs. */
  variables?: Record<string, string>
  /** Whether it runs for seconds only, so that nothing is done for its speed later. */
  isBrief?: boolean
  /** A real PostgreSQL in place of the embedded one. */
  postgresUrl?: string
  /** Folder with embedded Postgres' data, which are kept while it is stopped; without it they are in memory. */
  postgresFolder?: string
  /** Addresses that outbound requests may reach; public and private ones by default. */
  network?: WorkerdOptions['network']
  /** Another Worker than the gateway in the same system. */
  worker?: Pick<WorkerdOptions, 'entry' | 'durableObjects'>
  /**
   * For the bench: nothing is recorded, clocks cannot be moved and there are no triggers by time, which would be work.
   * `storage`: folder for the data of objects. `inspectorPort`: as `WorkerdOptions` has it.
   */
  measured?: { storage: string; inspectorPort?: number }
}

/** Addresses and secrets of a gateway for tests; plain data, so that they can be passed to test processes. */
export interface GatewayAddress {
  baseUrl: string
  /** URL of the gateway under its LLM host. */
  llmUrl: string
  llmHost: string
  adminToken: string
  keys: DemoKeys
  /** Every model id, and those that the `restricted` key may not use. */
  models: string[]
  deniedModels: string[]
  /** URL of each stand-in. */
  standIns: Record<StandInName, string>
  /** URL of the script of tools. */
  toolsUrl: string
  /** The Worker's variables, secrets included. */
  variables: Record<string, string>
  /** Log files of every process, `workerd.log` among them. */
  logFolder: string
  /** Process ids by name. */
  pids: Record<StandInName | 'workerd', number>
}

/** A gateway with a whole local system of its own, to be broken at will. */
export interface StartedGateway extends GatewayAddress {
  workerd: RunningWorkerd
  /** Null beside another Worker than the gateway. */
  tools: RunningTools | null
  processes: Record<StandInName, Child>
  /** Kills a stand-in, so that its port refuses connections. `SIGSTOP` instead makes it hang: `processes.x.signal`. */
  killStandIn(name: StandInName): Promise<void>
  /** Starts a killed stand-in again on its port. Postgres in memory comes back with the schema alone; seed anew then. */
  startStandIn(name: StandInName): Promise<void>
  /** Starts workerd again with other variables, on the same port and storage. */
  restartWorkerd(variables?: Record<string, string>): Promise<void>
  stop(): Promise<void>
}

/**
 * Starts Postgres in memory, Redis, QStash, the scripted model upstream, the content store and the built Worker under
 * workerd, migrated and seeded, on ports of their own.
 *
 * @throws StartError when any of it does not start; nothing is left running then
 */
export async function startGateway(options: GatewayOptions): Promise<StartedGateway> {
  const folder = mkdtempSync(join(tmpdir(), 'headgate-test-'))
  // A test that ends a stand-in means it; the test tells what is wrong when one ends by itself.
  const children = new Children(join(folder, 'logs'), () => {})
  const cleanUps: Array<() => Promise<void>> = [async () => children.stop()]
  const stop = async (): Promise<void> => {
    for (const cleanUp of cleanUps.splice(0).reverse()) await cleanUp()
    rmSync(folder, { recursive: true, force: true })
  }
  try {
    return await start(options, folder, children, cleanUps, stop)
  } catch (error) {
    await stop()
    throw error
  }
}

async function start(
  options: GatewayOptions,
  folder: string,
  children: Children,
  cleanUps: Array<() => Promise<void>>,
  stop: () => Promise<void>,
): Promise<StartedGateway> {
  const { measured } = options
  const secrets = createLocalSecrets()
  const template = await migratedDatabase()
  const [
    worker = 0,
    toolsPort = 0,
    postgres = 0,
    redis = 0,
    qstash = 0,
    modelUpstream = 0,
    contentStore = 0,
  ] = await freePorts(7)
  const plan: StackPlan = {
    postgres: postgresPlan(options, template),
    redis: { token: secrets.redisToken },
    qstash: {
      token: secrets.qstashToken,
      currentSigningKey: secrets.qstashCurrentSigningKey,
      nextSigningKey: secrets.qstashNextSigningKey,
    },
    modelUpstream: { record: measured === undefined },
    contentStore: { folder: join(measured?.storage ?? folder, 'content') },
    control: measured === undefined,
  }
  const ports = { postgres, redis, qstash, modelUpstream, contentStore }
  const urls = stackUrls(plan, ports)
  const services = { baseUrl: `http://127.0.0.1:${worker}`, ...urls }
  // Tests administer far more than people do, and most outages of Redis are not about that.
  const unlimited = { MANAGEMENT_RATE_LIMIT: '1000000', DEGRADED_RATE_LIMIT: '1000000' }
  // All stand-ins and tests share a small machine.
  const patient = { LIMITS_TIMEOUT_MS: '2000' }
  const variables = workerVariables({ ...unlimited, ...patient, ...options.variables }, secrets, services)
  const commands = stackCommands(plan, ports)
  const startOne = async (name: StandInName): Promise<Child> => {
    const command = commands[name]
    if (command === undefined) throw new Error(`${name} is not part of this gateway`)
    return (await children.startStandIn(command)).child
  }
  const started = {
    postgres: startOne('postgres'),
    redis: startOne('redis'),
    qstash: startOne('qstash'),
    modelUpstream: startOne('modelUpstream'),
    contentStore: startOne('contentStore'),
  }
  const seeded = started.postgres.then(() => migrateAndSeed(variables, secrets.keys, urls.modelUpstream))
  const workerd = startWorkerd({
    bundleDirectory: options.bundleDirectory,
    port: worker,
    bindings: variables,
    buckets: { CONTENT: urls.contentStore },
    services: { TOOLS: `http://127.0.0.1:${toolsPort}` },
    logFile: join(folder, 'logs/workerd.log'),
    scheduled: options.worker === undefined && measured === undefined,
    ...(measured && { storageDirectory: join(measured.storage, 'objects') }),
    ...(measured?.inspectorPort !== undefined && { inspectorPort: measured.inspectorPort }),
    ...(options.network && { network: options.network }),
    ...readRuntimeSettings(WRANGLER_FILE),
    ...options.worker,
  })
  const startOwnTools = () =>
    startTools({
      bundleDirectory: options.bundleDirectory,
      port: toolsPort,
      logFile: join(folder, 'logs/tools.log'),
      ...(measured && { storageDirectory: join(measured.storage, 'tools') }),
      ...readRuntimeSettings(TOOLS_WRANGLER_FILE),
    })
  const tools = options.worker ? Promise.resolve(null) : startOwnTools()
  const forwarder = startHostForwarder({ port: 0, targetPort: worker, host: DEFAULT_LLM_HOST })
  // Everything is waited for, also after a failure, so that nothing starts behind the clean-up's back.
  const outcomes = await Promise.allSettled([workerd, forwarder, tools, seeded, ...Object.values(started)])
  const [runtime, front, toolsRuntime] = outcomes
  if (runtime?.status === 'fulfilled') cleanUps.push(() => (runtime.value as RunningWorkerd).stop())
  if (front?.status === 'fulfilled') cleanUps.push(() => (front.value as RunningServer).close())
  if (toolsRuntime?.status === 'fulfilled')
    cleanUps.push(async () => (toolsRuntime.value as RunningTools | null)?.stop())
  const failure = outcomes.find((outcome) => outcome.status === 'rejected')
  if (failure !== undefined) throw failure.reason

  const processes = Object.fromEntries(
    await Promise.all(Object.entries(started).map(async ([name, child]) => [name, await child])),
  ) as Record<StandInName, Child>
  const report = await seeded
  const running = await workerd
  return {
    baseUrl: running.url,
    llmUrl: (await forwarder).url,
    llmHost: DEFAULT_LLM_HOST,
    adminToken: secrets.adminToken,
    keys: secrets.keys,
    models: report.models,
    deniedModels: report.deniedModels,
    standIns: urls as Record<StandInName, string>,
    toolsUrl: `http://127.0.0.1:${toolsPort}`,
    variables,
    logFolder: join(folder, 'logs'),
    get pids() {
      return {
        postgres: processes.postgres.pid,
        redis: processes.redis.pid,
        qstash: processes.qstash.pid,
        modelUpstream: processes.modelUpstream.pid,
        contentStore: processes.contentStore.pid,
        workerd: running.pid,
      }
    },
    workerd: running,
    tools: await tools,
    processes,
    killStandIn: (name) => processes[name].stop(0),
    startStandIn: async (name) => {
      processes[name] = await startOne(name)
    },
    restartWorkerd: (changed) => running.restart(changed && { ...variables, ...changed }),
    stop,
  }
}

function postgresPlan(
  { postgresUrl, postgresFolder, isBrief = false }: GatewayOptions,
  template: string,
): NonNullable<StackPlan['postgres']> {
  if (postgresUrl !== undefined) return { url: postgresUrl }
  return postgresFolder === undefined ? { template, isBrief } : { folder: postgresFolder }
}

/** Brings the database of these variables to the newest schema and fills it with the demo data. */
export async function migrateAndSeed(
  variables: Record<string, string>,
  keys: DemoKeys,
  modelUpstream: string | null,
): Promise<SeedReport> {
  const configuration = parseConfiguration(variables)
  const { DATABASE_URL, DATABASE_FETCH_ENDPOINT } = configuration
  await migrateDatabase({ DATABASE_URL, DATABASE_FETCH_ENDPOINT })
  return seedDatabase({
    DATABASE_URL,
    DATABASE_FETCH_ENDPOINT,
    keyPeppers: configuration.KEY_PEPPERS,
    vaultKeys: configuration.VAULT_KEYS,
    keys,
    providers: wantedProviders({}, modelUpstream),
    disableOthers: true,
  })
}
