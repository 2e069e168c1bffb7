import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { databaseAddress, type ReadAccount, readAccount } from './account.ts'
import { applyPlan, type DeploymentResult } from './apply.ts'
import { DeployError } from './deploy-error.ts'
import { DeployLease } from './lease.ts'
import { hasChanges } from './plan.ts'
import type { DeploymentPlan } from './plan-types.ts'
import { renderPlan } from './render-plan.ts'
import { type DeployWorld, makePlan, prepareRun, type Run, releaseOf, required } from './run.ts'
import type { SecretValues } from './secrets.ts'
import { Wrangler } from './wrangler.ts'

const ROOT = join(import.meta.dirname, '../..')
const USAGE = 'usage: npm run deploy -- [--plan] [--yes] [--json] [--config <file>]'

interface Options {
  plan: boolean
  yes: boolean
  json: boolean
  config: string
}

type Outcome = DeploymentResult['outcome'] | 'planned' | 'no_change' | 'declined' | 'refused' | 'failed'

/** The document of `--json`. */
interface DeployDocument {
  outcome: Outcome
  stage?: string
  account?: string
  steps?: DeploymentPlan['steps']
  version?: string | null
  problems: string[]
}

const EXIT_CODES: Record<Outcome, number> = {
  applied: 0,
  no_change: 0,
  planned: 2,
  declined: 1,
  refused: 1,
  failed: 1,
  failed_test: 1,
  rolled_back: 1,
}

/** Runs `npm run deploy`. @returns the exit code: 0 done or no change, 1 failed, 2 `--plan` has changes */
export async function runDeploy(parameters: string[], world: DeployWorld): Promise<number> {
  let options: Options
  try {
    options = readOptions(parameters)
  } catch {
    world.complain(USAGE)
    return 1
  }
  const say = options.json ? world.complain : world.print
  const document = await deploy(options, world, say)
  if (options.json) world.print(JSON.stringify(document, null, 2))
  else for (const problem of document.problems) world.complain(`deploy: ${problem}`)
  return EXIT_CODES[document.outcome]
}

function readOptions(parameters: string[]): Options {
  const { values } = parseArgs({
    args: parameters,
    options: {
      plan: { type: 'boolean', default: false },
      yes: { type: 'boolean', default: false },
      json: { type: 'boolean', default: false },
      config: { type: 'string', default: join(ROOT, 'deploy.json') },
    },
  })
  return values
}

async function deploy(
  options: Options,
  world: DeployWorld,
  say: (line: string) => void,
): Promise<DeployDocument> {
  let secrets: SecretValues | undefined
  try {
    const run = await prepareRun(options.config, world, say)
    secrets = run.sources.secrets
    return await planAndApply(run, options, say)
  } catch (error) {
    const text = error instanceof Error ? error.message : String(error)
    return { outcome: 'failed', problems: [secrets?.redact(text) ?? text] }
  }
}

async function planAndApply(
  run: Run,
  options: Options,
  say: (line: string) => void,
): Promise<DeployDocument> {
  const account = await readAccount(run.sources)
  const plan = makePlan(run, account)
  const { settings, world } = run
  const document = {
    stage: settings.stage,
    account: settings.account,
    steps: plan.steps,
    problems: plan.problems,
  }
  if (!options.json) say(renderPlan(settings, account.state.accountName, plan))
  if (plan.problems.length > 0)
    return { ...document, outcome: 'refused', problems: options.json ? plan.problems : [] }
  if (!hasChanges(plan)) return { ...document, outcome: 'no_change' }
  if (options.plan) return { ...document, outcome: 'planned' }
  if (!options.yes) {
    if (world.ask === undefined)
      throw new DeployError('there is no terminal to ask at: --yes applies the plan')
    if (!/^y(es)?$/i.test(await world.ask('Continue? [y/N] '))) return { ...document, outcome: 'declined' }
  }
  const result = await applyUnderLease(run, account, plan, say)
  if (result.outcome === 'applied') say('deployed')
  return { ...document, ...result }
}

async function applyUnderLease(
  run: Run,
  account: ReadAccount,
  plan: DeploymentPlan,
  say: (line: string) => void,
): Promise<DeploymentResult> {
  const { sources, settings, folder, secretsFile, world } = run
  refuseLostSecrets(plan, sources.secrets, world.environment)
  await createDatabase(run, account, say)
  const address = databaseAddress(sources)
  if (address === undefined) throw new DeployError('DATABASE_URL is not given')
  const lease = await DeployLease.acquire(address, settings.gateway.name, world.clock)
  try {
    // Between the plan and the lease, another deployment may have run.
    const current = await readAccount(sources)
    const currentPlan = makePlan(run, current)
    if (essence(currentPlan) !== essence(plan)) {
      throw new DeployError('the account has changed since the plan was made; run again')
    }
    const wrangler = new Wrangler({
      folder,
      account: settings.account,
      token: required(world.environment, 'CLOUDFLARE_API_TOKEN'),
      baseUrl: world.environment.CLOUDFLARE_API_BASE_URL,
      clock: world.clock,
      secrets: sources.secrets,
      signal: world.signal,
    })
    const describeRelease = (read: ReadAccount) => releaseOf(run, read)
    const tools = { ...sources, fetch: world.fetch, clock: world.clock, report: say }
    return await applyPlan({
      ...tools,
      plan: currentPlan,
      account: current,
      describeRelease,
      wrangler,
      lease,
      secretsFile,
    })
  } finally {
    await lease.release()
  }
}

/** The lease is in the database, so that one is created before. */
async function createDatabase(
  { sources }: Run,
  account: ReadAccount,
  say: (line: string) => void,
): Promise<void> {
  const { neon, settings, secrets } = sources
  if (neon === null || settings.database === 'environment' || account.state.database.exists) return
  say(`database: Neon ${settings.database.neon.project}`)
  const { url } = await neon.createProject(settings.database.neon)
  secrets.add('DATABASE_URL', url, 'Neon')
}

/** A file on a machine that is thrown away after the job would lose what it generated. */
function refuseLostSecrets(
  plan: DeploymentPlan,
  secrets: SecretValues,
  environment: NodeJS.ProcessEnv,
): void {
  if (!environment.CI) return
  const generated = plan.secrets.filter((name) => secrets.get(name) === undefined && name !== 'DATABASE_URL')
  const lost = generated.filter((name) => name !== 'UPSTASH_REDIS_REST_TOKEN')
  if (lost.length > 0) {
    throw new DeployError(
      `${lost.join(', ')} would be generated on a machine of CI and lost with it: give them in the environment`,
    )
  }
}

/** What two plans must have in common. Details name versions and an address that a step before makes. */
const essence = ({ steps, secrets, tools, gateway }: DeploymentPlan): string =>
  JSON.stringify([
    steps.filter(({ step }) => step !== 'database').map(({ step, name, action }) => [step, name, action]),
    secrets,
    tools,
    gateway,
  ])
