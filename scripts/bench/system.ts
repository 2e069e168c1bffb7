import { existsSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseConfiguration } from '../../src/env.ts'
import { type StartedGateway, startGateway, WRANGLER_FILE } from '../../test/harness/start-gateway.ts'
import { type Bundle, buildScripts, TOOLS_CONFIGURATION, toolsBundle } from '../build.ts'
import { openDatabase } from '../database.ts'
import { organizationId } from '../demo-organizations.ts'
import { Children } from '../local/children.ts'
import { freePorts } from '../node/ports.ts'
import { TOOLS_RUNTIME } from '../node/tools-script.ts'
import { type RunningWorkerd, startWorkerd, type WorkerdOptions } from '../node/workerd.ts'
import { readRuntimeSettings } from '../node/wrangler-settings.ts'
import { expectSuccess, prepareAnswers } from './answers.ts'
import { type RunningPortkey, startPortkey } from './portkey.ts'
import { allScenarios, type Scenario } from './scenarios.ts'
import { prepareShards } from './shards.ts'

/** No call of a bench may be refused: the limits are checked as always, only their numbers are out of reach. */
const RATE_LIMIT = String(1_000_000_000)
const CREDITS = 1_000_000_000_000
export const VARIABLES = {
  ORGANIZATION_RATE_LIMIT: RATE_LIMIT,
  USER_RATE_LIMIT: RATE_LIMIT,
  // On a busy machine, Redis must not time out: the gateway would refuse calls, which cost nothing.
  LIMITS_TIMEOUT_MS: String(10_000),
}

export interface BenchSystem {
  gateway: RunningWorkerd
  bare: RunningWorkerd
  /** Null where it is not installed. */
  portkey: RunningPortkey | null
  /** Folder of the bundle that the gateway runs, source map included. */
  bundle: string
  scripts: { gateway: Bundle; tools: Bundle }
  /** Options with which each script was started, to start another copy. */
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
 * Folder for the data of Durable Objects: in memory if the system has such a folder. `workerd` flushes to disk before
 * it answers, so that on a disk the bench would measure the disk: Cloudflare's objects write to replicas over the
 * network instead.
 */
export const STORAGE = existsSync('/dev/shm') ? '/dev/shm' : tmpdir()

/**
 * Builds the Worker and starts all that is measured: the local system of the tests, a bare proxy, and Portkey on request,
 * each a process of its own.
 *
 * @throws StartError when any of it does not start; nothing is left running then
 */
export async function startSystem(options: SystemOptions): Promise<BenchSystem> {
  const folder = mkdtempSync(join(STORAGE, 'headgate-bench-'))
  const cleanUps: Array<() => Promise<void>> = []
  const stop = async (): Promise<void> => {
    await Promise.all(cleanUps.splice(0).map((cleanUp) => cleanUp()))
    rmSync(folder, { recursive: true, force: true })
  }
  try {
    return { ...(await start(folder, cleanUps, options)), stop }
  } catch (error) {
    await stop()
    throw error
  }
}

async function start(
  folder: string,
  cleanUps: Array<() => Promise<void>>,
  { inspectorPort, portkey: server }: SystemOptions,
): Promise<Omit<BenchSystem, 'stop'>> {
  const bundle = join(folder, 'bundle')
  const scripts = await buildScripts(bundle, inspectorPort === undefined ? {} : { minify: false })
  const measured = { storage: folder, ...(inspectorPort !== undefined && { inspectorPort }) }
  const system = await startGateway({ bundleDirectory: bundle, variables: VARIABLES, measured })
  cleanUps.push(system.stop)
  const runtimes = runtimesOf(system, bundle)
  const bare = await startWorkerd(runtimes.bare)
  cleanUps.push(bare.stop)
  const portkey = server === null ? null : await startOther(server, folder, cleanUps)
  const shardKeys = await addShards(system.variables)
  for (const slug of ['acme', 'other'] as const) await grantCredits(system, slug)
  const { modelUpstream: upstream, redis, postgres } = system.standIns
  return {
    gateway: system.workerd,
    bare,
    portkey,
    bundle,
    scripts,
    runtimes,
    upstream,
    redis,
    postgres,
    postgresPid: system.pids.postgres,
    scenarios: await prepareAnswers(upstream, allScenarios(system.keys, shardKeys)),
    variables: system.variables,
  }
}

function runtimesOf(system: StartedGateway, bundle: string): BenchSystem['runtimes'] {
  const { variables, standIns, toolsUrl } = system
  const settings = readRuntimeSettings(WRANGLER_FILE)
  return {
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
      services: { TOOLS: toolsUrl },
    },
    tools: {
      ...readRuntimeSettings(TOOLS_CONFIGURATION),
      ...TOOLS_RUNTIME,
      bundleDirectory: toolsBundle(bundle),
    },
  }
}

async function startOther(
  server: string,
  folder: string,
  cleanUps: Array<() => Promise<void>>,
): Promise<RunningPortkey> {
  const children = new Children(join(folder, 'logs'), (message) => console.error(`bench: ${message}`))
  cleanUps.push(() => children.stop())
  const [port = 0] = await freePorts(1)
  return startPortkey(children, server, port)
}

/** @returns keys of many users by ledger shards */
async function addShards(variables: Record<string, string>): Promise<ReadonlyMap<number, string[]>> {
  const { DATABASE_URL, DATABASE_FETCH_ENDPOINT, KEY_PEPPERS } = parseConfiguration(variables)
  const { database, close } = await openDatabase({ DATABASE_URL, DATABASE_FETCH_ENDPOINT })
  return prepareShards(database, KEY_PEPPERS).finally(close)
}

export async function grantCredits(
  { baseUrl, adminToken }: Pick<StartedGateway, 'baseUrl' | 'adminToken'>,
  slug: 'acme' | 'other',
): Promise<void> {
  const response = await fetch(`${baseUrl}/api/organizations/${organizationId(slug)}/credits`, {
    method: 'POST',
    headers: { authorization: `Bearer ${adminToken}`, 'content-type': 'application/json' },
    body: JSON.stringify({ amount: CREDITS, reason: 'bench' }),
  })
  await expectSuccess(response, 'granting credits')
}
