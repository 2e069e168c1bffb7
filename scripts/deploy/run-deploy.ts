import { databaseAddress, type ReadAccount, readAccount } from './account.ts'
import { applyPlan } from './apply.ts'
import { refuseInterrupted } from './deploy-clock.ts'
import { DeployError } from './deploy-error.ts'
import { type DeployOptions, readOptions, USAGE } from './deploy-options.ts'
import type { DeploymentResult } from './deployment-types.ts'
import { DeployLease } from './lease.ts'
import { hasChanges } from './plan.ts'
import type { DeploymentPlan } from './plan-types.ts'
import { renderPlan } from './render-plan.ts'
import { type DeployContext, makePlan, prepareRun, type Run, releaseOf, required } from './run.ts'
import { isGenerated, type SecretValues } from './secrets.ts'
import { Wrangler } from './wrangler.ts'

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
export async function runDeploy(parameters: string[], context: DeployContext): Promise<number> {
  let options: DeployOptions
  try {
    options = readOptions(parameters)
  } catch (error) {
    // Messages of the parser quote arguments, one of which may be a secret that was given by mistake.
    if (error instanceof DeployError) context.printError(`deploy: ${error.message}`)
    context.printError(USAGE)
    return 1
  }
  if (options.help) {
    context.print(USAGE)
    return 0
  }
  const report = options.json ? context.printError : context.print
  const document = await deploy(options, context, report)
  if (options.json) context.print(JSON.stringify(document, null, 2))
  else for (const problem of document.problems) context.printError(`deploy: ${problem}`)
  return EXIT_CODES[document.outcome]
}

async function deploy(
  options: DeployOptions,
  context: DeployContext,
  report: (line: string) => void,
): Promise<DeployDocument> {
  let run: Run | undefined
  try {
    run = await prepareRun(options, context, report)
    return await planAndApply(run, options, report)
  } catch (error) {
    const text = error instanceof Error ? error.message : String(error)
    return { outcome: 'failed', problems: [run?.sources.secrets.redact(text) ?? text] }
  } finally {
    run?.close()
  }
}

async function planAndApply(
  run: Run,
  options: DeployOptions,
  report: (line: string) => void,
): Promise<DeployDocument> {
  const account = await readAccount(run.sources)
  const plan = makePlan(run, account)
  const { settings, context } = run
  const document = {
    stage: settings.stage,
    account: settings.account,
    steps: plan.steps,
    problems: plan.problems,
  }
  // A document is read afterwards: what the question is about has to be seen before it.
  const isAsked = !options.yes && !options.plan
  if (!options.json || isAsked) report(renderPlan(settings, account.state.accountName, plan))
  if (plan.problems.length > 0)
    return { ...document, outcome: 'refused', problems: options.json ? plan.problems : [] }
  if (!hasChanges(plan)) return { ...document, outcome: 'no_change' }
  if (options.plan) return { ...document, outcome: 'planned' }
  refuseInterrupted(context.signal)
  if (!options.yes) {
    if (context.prompt === undefined)
      throw new DeployError('there is no terminal to ask at: --yes applies the plan')
    if (!/^y(es)?$/i.test(await context.prompt('Continue? [y/N] ')))
      return { ...document, outcome: 'declined' }
  }
  const result = await applyUnderLease(run, account, plan, report)
  if (result.outcome === 'applied') report('deployed')
  return { ...document, ...result }
}

async function applyUnderLease(
  run: Run,
  account: ReadAccount,
  plan: DeploymentPlan,
  report: (line: string) => void,
): Promise<DeploymentResult> {
  const { sources, settings, secretsFile, clock } = run
  const { environment, fetch, signal } = run.context
  refuseLostSecrets(plan, sources.secrets, environment)
  refuseInterrupted(signal)
  await createDatabase(run, account, report)
  const address = databaseAddress(sources)
  if (address === undefined) throw new DeployError('DATABASE_URL is not given')
  const lease = await DeployLease.acquire(address, settings.gateway.name)
  try {
    const current = await readAccount(sources)
    return await applyPlan({
      ...sources,
      plan: agreedPlan(run, current, plan),
      account: current,
      describeRelease: (read: ReadAccount) => releaseOf(run, read),
      wrangler: wranglerOf(run),
      lease,
      secretsFile,
      fetch,
      clock,
      rollbackClock: run.context.clock,
      signal,
      report,
    })
  } finally {
    await lease.release()
  }
}

/** Makes the plan again: between the first one and the lease, another deployment may have run. @throws DeployError if it differs */
function agreedPlan(run: Run, account: ReadAccount, agreed: DeploymentPlan): DeploymentPlan {
  const plan = makePlan(run, account)
  if (fingerprint(plan) !== fingerprint(agreed))
    throw new DeployError('the account has changed since the plan was made; run again')
  if (JSON.stringify(plan.tags) !== JSON.stringify(agreed.tags))
    throw new DeployError('the settings of a script have changed since the plan was made; run again')
  return plan
}

const wranglerOf = ({ folder, settings, sources, context: { environment, clock, signal } }: Run): Wrangler =>
  new Wrangler({
    folder,
    account: settings.account,
    token: required(environment, 'CLOUDFLARE_API_TOKEN'),
    baseUrl: environment.CLOUDFLARE_API_BASE_URL,
    clock,
    secrets: sources.secrets,
    signal,
  })

/** The lease is in the database, so that one is created before. */
async function createDatabase(
  { sources }: Run,
  account: ReadAccount,
  report: (line: string) => void,
): Promise<void> {
  const { neon, settings, secrets } = sources
  if (neon === null || settings.database === 'environment' || account.state.database.exists) return
  report(`database: Neon ${settings.database.neon.project}`)
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
  const lost = plan.secrets.filter(
    (name) =>
      isGenerated(name) &&
      (plan.rotated.includes(name)
        ? secrets.source(name) !== 'environment'
        : secrets.get(name) === undefined),
  )
  if (lost.length > 0) {
    throw new DeployError(
      `${lost.join(', ')} would be generated on a machine of CI and lost with it: give them in the environment`,
    )
  }
}

/** What two plans must have in common. Details name versions and an address that a step before makes. */
const fingerprint = ({ steps, problems, secrets, rotated, tools, gateway }: DeploymentPlan): string =>
  JSON.stringify([
    steps.filter(({ step }) => step !== 'database').map(({ step, name, action }) => [step, name, action]),
    problems,
    secrets,
    rotated,
    tools,
    gateway,
  ])
