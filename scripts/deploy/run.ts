import { join } from 'node:path'
import { ConfigurationError, parseConfiguration } from '../../src/env.ts'
import { buildScripts } from '../build.ts'
import type { AccountSources, ReadAccount } from './account.ts'
import { CloudflareApi } from './cloudflare-api.ts'
import type { DeployClock } from './deploy-clock.ts'
import { DeployError } from './deploy-error.ts'
import { NeonApi } from './neon.ts'
import { planDeployment } from './plan.ts'
import type { DeploymentPlan, KnownSecrets } from './plan-types.ts'
import { type Release, readRelease } from './release.ts'
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

/** What surrounds a deployment; tests have one of their own. */
export interface DeployWorld {
  environment: NodeJS.ProcessEnv
  fetch: typeof fetch
  clock: DeployClock
  /** Lines for the person on stdout, or on stderr beside a JSON document. */
  print: (line: string) => void
  complain: (line: string) => void
  /** Asks a person; undefined without a terminal. */
  ask?: (question: string) => Promise<string>
  signal: AbortSignal
  /** Folder of built scripts; default: they are built. */
  bundle?: string
}

/** The parts of one run. */
export interface Run {
  settings: DeploySettings
  folder: string
  secretsFile: string
  bundle: string
  sources: AccountSources
  world: DeployWorld
}

/** Reads the settings and secrets, and builds both scripts. @param config path of the settings @throws DeployError, StartError */
export async function prepareRun(
  config: string,
  world: DeployWorld,
  say: (line: string) => void,
): Promise<Run> {
  const { environment } = world
  const settings = readSettings(config)
  const folder = join(environment.HEADGATE_FOLDER || join(ROOT, '.headgate'), 'deploy', settings.stage)
  const secretsFile =
    settings.secretsFile === undefined ? join(folder, 'secrets.json') : join(ROOT, settings.secretsFile)
  const token = required(environment, 'CLOUDFLARE_API_TOKEN')
  if (testedOrigin(settings) === null) {
    throw new DeployError('the gateway has no address: give gateway.hosts or smokeTest.url')
  }
  const { fetch, clock } = world
  const sources: AccountSources = {
    settings,
    environment,
    secrets: readSecrets(environment, secretsFile),
    cloudflare: new CloudflareApi(token, settings.account, {
      fetch,
      clock,
      baseUrl: environment.CLOUDFLARE_API_BASE_URL,
    }),
    neon: neonOf(settings, world),
    upstash: upstashOf(settings, world),
  }
  const bundle = world.bundle ?? join(folder, 'bundle')
  if (world.bundle === undefined) {
    say('building both scripts …')
    await buildScripts(bundle)
  }
  return { settings, folder, secretsFile, bundle, sources, world }
}

function neonOf({ database }: DeploySettings, { environment, fetch, clock }: DeployWorld): NeonApi | null {
  if (database === 'environment') return null
  return new NeonApi(required(environment, 'NEON_API_KEY'), {
    fetch,
    clock,
    baseUrl: environment.NEON_API_BASE_URL,
  })
}

function upstashOf({ redis }: DeploySettings, { environment, fetch, clock }: DeployWorld): UpstashApi | null {
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
  const plan = planDeployment(run.settings, release, account.state, knownSecrets(run, account))
  return { ...plan, problems: [...plan.problems, ...configurationProblems(release, secrets)] }
}

/** Secrets that a step creates count as known. */
function knownSecrets({ settings, sources }: Run, account: ReadAccount): KnownSecrets {
  const known = [...UPLOADED_SECRETS, SMOKE_TEST_KEY].flatMap((name) => {
    const source = sources.secrets.source(name)
    return source === undefined ? [] : [[name, source] as const]
  })
  const createsDatabase = settings.database !== 'environment' && !account.state.database.exists
  const createsRedis = settings.redis !== 'environment' && !account.state.redis.exists
  return {
    ...(createsDatabase && { DATABASE_URL: 'Neon' as const }),
    ...(createsRedis && { UPSTASH_REDIS_REST_TOKEN: 'Upstash' as const }),
    ...Object.fromEntries(known),
  }
}

/** The release for an account: its variables have the address of Redis. */
export function releaseOf({ settings, bundle }: Run, { redisUrl }: ReadAccount): Release {
  const first = settings.gateway.hosts[0]
  return readRelease(settings, bundle, {
    ...(first !== undefined && { BASE_URL: `https://${first}` }),
    ...(redisUrl !== undefined && { UPSTASH_REDIS_REST_URL: redisUrl }),
    ...settings.gateway.variables,
  })
}

/** What the Worker would refuse at its first request. */
function configurationProblems({ gateway }: Release, secrets: SecretValues): string[] {
  const given = UPLOADED_SECRETS.flatMap((name) => {
    const value = secrets.get(name)
    return value === undefined ? [] : [[name, value]]
  })
  const redis = { UPSTASH_REDIS_REST_URL: 'https://created.later' }
  try {
    parseConfiguration({
      ...placeholderSecrets(),
      ...redis,
      ...gateway.variables,
      ...Object.fromEntries(given),
    })
    return []
  } catch (error) {
    if (error instanceof ConfigurationError) return [error.message]
    throw error
  }
}
