import { spawnSync } from 'node:child_process'
import { cpSync } from 'node:fs'
import { isAbsolute, join, relative, resolve } from 'node:path'
import { ConfigurationError, parseConfiguration } from '../../src/env.ts'
import { buildWorker, TOOLS_CONFIGURATION, toolsBundle } from '../build.ts'
import type { AccountSources, ReadAccount } from './account.ts'
import { CloudflareApi } from './cloudflare-api.ts'
import { type DeployClock, interruptedBy, type MachineClock } from './deploy-clock.ts'
import { DeployError } from './deploy-error.ts'
import type { DeployOptions } from './deploy-options.ts'
import { NeonApi } from './neon.ts'
import { planDeployment } from './plan.ts'
import type { DeploymentPlan, KnownSecrets } from './plan-types.ts'
import { type BuiltFiles, type Release, readRelease, STATIC_FILES } from './release.ts'
import { pendingRotations } from './rotate-secrets.ts'
import { makeRunFolder } from './run-folder.ts'
import {
  placeholderSecrets,
  readSecrets,
  type SecretValues,
  SMOKE_TEST_KEY,
  UPLOADED_SECRETS,
} from './secrets.ts'
import { type DeploySettings, readSettings, testedOrigin } from './settings.ts'
import { UpstashApi } from './upstash.ts'

const ROOT = join(import.meta.dirname, '../..')

/** What a deployment gets from its process. */
export interface DeployContext {
  environment: NodeJS.ProcessEnv
  fetch: typeof fetch
  clock: MachineClock
  /** Prints a line on stdout. */
  print: (line: string) => void
  /** Prints a line on stderr. */
  printError: (line: string) => void
  /** Reads an answer from the terminal; undefined without one. */
  prompt?: (question: string) => Promise<string>
  signal: AbortSignal
  /** Folder of built scripts, which are copied; default: they are built. */
  bundle?: string
}

/** The parts of one run. */
export interface Run {
  settings: DeploySettings
  folder: string
  secretsFile: string
  built: BuiltFiles
  sources: AccountSources
  /** Names of secrets that get another value: those of `--rotate`, and those whose rotation was cut. */
  rotations: string[]
  /** Of everything but rollbacks: the signal ends its waits. */
  clock: DeployClock
  context: DeployContext
  /** Removes its files. */
  close: () => void
}

/** Reads the settings and secrets, and builds both scripts. The run has to be closed. @throws DeployError, StartError */
export async function prepareRun(
  { config, rotate }: Pick<DeployOptions, 'config' | 'rotate'>,
  context: DeployContext,
  report: (line: string) => void,
): Promise<Run> {
  const { environment } = context
  const settings = readSettings(config)
  const folder = join(environment.HEADGATE_FOLDER || join(ROOT, '.headgate'), 'deploy', settings.stage)
  const secretsFile =
    settings.secretsFile === undefined ? join(folder, 'secrets.json') : resolve(ROOT, settings.secretsFile)
  refuseCommittedFile(secretsFile)
  const token = required(environment, 'CLOUDFLARE_API_TOKEN')
  if (testedOrigin(settings) === null) {
    throw new DeployError('the gateway has no address: give gateway.hosts or smokeTest.url')
  }
  const { fetch } = context
  const clock = interruptedBy(context.signal, context.clock)
  const sources: AccountSources = {
    settings,
    environment,
    secrets: readSecrets(environment, secretsFile),
    cloudflare: new CloudflareApi(token, settings.account, {
      fetch,
      clock,
      baseUrl: environment.CLOUDFLARE_API_BASE_URL,
    }),
    neon: neonOf(settings, context, clock),
    upstash: upstashOf(settings, context, clock),
  }
  const rotations = [...rotate, ...pendingRotations(secretsFile)]
  const own = makeRunFolder(folder)
  try {
    const built = await buildInto(own.path, context.bundle, report)
    return { settings, folder, secretsFile, built, sources, rotations, clock, context, close: own.remove }
  } catch (error) {
    own.remove()
    throw error
  }
}

/** The static files are copied, because another build of this checkout may replace them. */
async function buildInto(
  folder: string,
  bundle: string | undefined,
  report: (line: string) => void,
): Promise<BuiltFiles> {
  const built = { scripts: join(folder, 'scripts'), assets: join(folder, 'public') }
  if (bundle === undefined) {
    report('building both scripts …')
    await buildWorker(built.scripts)
  } else {
    cpSync(bundle, built.scripts, { recursive: true })
  }
  // Directly after the build that makes them.
  cpSync(STATIC_FILES, built.assets, { recursive: true })
  if (bundle === undefined)
    await buildWorker(toolsBundle(built.scripts), { configuration: TOOLS_CONFIGURATION })
  return built
}

/** Git's answer to a path that no rule ignores; others are of a folder without Git. */
const NOT_IGNORED = 1

/** @throws DeployError if the file is in this checkout and Git would add it */
function refuseCommittedFile(file: string): void {
  const path = relative(ROOT, file)
  if (path.startsWith('..') || isAbsolute(path)) return
  const { status } = spawnSync('git', ['check-ignore', '--quiet', '--', path], { cwd: ROOT })
  if (status === NOT_IGNORED) {
    throw new DeployError(
      `the file of secrets ${path} is in this repository, and git does not ignore it: give another secretsFile`,
    )
  }
}

function neonOf(
  { database }: DeploySettings,
  { environment, fetch }: DeployContext,
  clock: DeployClock,
): NeonApi | null {
  if (database === 'environment') return null
  return new NeonApi(required(environment, 'NEON_API_KEY'), {
    fetch,
    clock,
    baseUrl: environment.NEON_API_BASE_URL,
  })
}

function upstashOf(
  { redis }: DeploySettings,
  { environment, fetch }: DeployContext,
  clock: DeployClock,
): UpstashApi | null {
  if (redis === 'environment') return null
  const account = {
    email: required(environment, 'UPSTASH_EMAIL'),
    key: required(environment, 'UPSTASH_API_KEY'),
  }
  return new UpstashApi(account, { fetch, clock, baseUrl: environment.UPSTASH_API_BASE_URL })
}

export function required(environment: NodeJS.ProcessEnv, name: string): string {
  const value = environment[name]
  if (!value) throw new DeployError(`${name} is not set`)
  return value
}

/** The plan for an account, with what speaks against it. */
export function makePlan(run: Run, account: ReadAccount): DeploymentPlan {
  const release = releaseOf(run, account)
  const { secrets } = run.sources
  const known = knownSecrets(run, account)
  const plan = planDeployment(run.settings, release, account.state, known, run.rotations)
  const variables = {
    ...(createsRedis(run, account) && { UPSTASH_REDIS_REST_URL: 'https://created.later' }),
    ...release.gateway.variables,
  }
  return { ...plan, problems: [...plan.problems, ...configurationProblems(variables, secrets)] }
}

const createsRedis = ({ settings }: Run, { state }: ReadAccount): boolean =>
  settings.redis !== 'environment' && !state.redis.exists

/** Secrets that a step creates count as known. */
function knownSecrets(run: Run, account: ReadAccount): KnownSecrets {
  const { settings, sources } = run
  const known = [...UPLOADED_SECRETS, SMOKE_TEST_KEY].flatMap((name) => {
    const source = sources.secrets.source(name)
    return source === undefined ? [] : [[name, source] as const]
  })
  const createsDatabase = settings.database !== 'environment' && !account.state.database.exists
  return {
    ...(createsDatabase && { DATABASE_URL: 'Neon' as const }),
    ...(createsRedis(run, account) && { UPSTASH_REDIS_REST_TOKEN: 'Upstash' as const }),
    ...Object.fromEntries(known),
  }
}

/** The release for an account: its variables have the address of Redis. */
export function releaseOf({ settings, built }: Run, { redisUrl }: ReadAccount): Release {
  const first = settings.gateway.hosts[0]
  return readRelease(settings, built, {
    ...(first !== undefined && { BASE_URL: `https://${first}` }),
    ...(redisUrl !== undefined && { UPSTASH_REDIS_REST_URL: redisUrl }),
    ...settings.gateway.variables,
  })
}

/** What the Worker would refuse at its first request. */
function configurationProblems(variables: Record<string, string>, secrets: SecretValues): string[] {
  const given = UPLOADED_SECRETS.flatMap((name) => {
    const value = secrets.get(name)
    return value === undefined ? [] : [[name, value]]
  })
  try {
    parseConfiguration({
      ...placeholderSecrets(),
      ...variables,
      ...Object.fromEntries(given),
    })
    return []
  } catch (error) {
    if (error instanceof ConfigurationError) return [error.message]
    throw error
  }
}
