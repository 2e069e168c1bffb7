import { type MigrationReport, migrateDatabase } from '../migrate.ts'
import { databaseAddress } from './account.ts'
import { DeployError } from './deploy-error.ts'
import type { Deployment, DeploymentResult, Progress } from './deployment-types.ts'
import type { StepName } from './plan-types.ts'
import { rollBackTools } from './roll-back.ts'
import { confirmStep, rollOut } from './roll-out.ts'
import { rollbackTargets } from './rollback-targets.ts'
import { finishRotations, rotateSecret } from './rotate-secrets.ts'
import { generateSecret, isGenerated } from './secrets.ts'

type Step = (deployment: Deployment, progress: Progress) => Promise<void>

/** The steps before the gateway gets its version, which `rollOut` tests and raises. */
const STEPS: Partial<Record<StepName, Step>> = {
  redis: createRedis,
  'restore point': createRestorePoint,
  migrations: applyMigrations,
  bucket: ({ wrangler, settings }) => wrangler.createBucket(settings.bucket),
  tools: deployTools,
  secrets: generateSecrets,
}

/**
 * Applies a plan, in its order. Every step was planned from what exists, so that a deployment that was cut continues where it
 * ended.
 *
 * @throws DeployError, MigrationError or DatabaseError; what is done by then stays
 */
export async function applyPlan(deployment: Deployment): Promise<DeploymentResult> {
  const { plan, account, report } = deployment
  const progress: Progress = {
    release: deployment.describeRelease(account),
    targets: rollbackTargets(plan, account.state),
    toolsVersion: account.state.tools?.traffic[0]?.versionId ?? null,
  }
  for (const [name, step] of Object.entries(STEPS) as Array<[StepName, Step]>) {
    const planned = plan.steps.filter((line) => line.step === name && line.action !== 'same')
    if (planned.length === 0) continue
    await confirmStep(deployment)
    report(`${name}: ${planned.map((line) => line.name).join(', ')}`)
    await step(deployment, progress)
  }
  // A host that an earlier run did not get to is what the test calls.
  if (plan.gateway.kind === 'none') await setTriggers(deployment, progress)
  const result = await rollOut(deployment, progress)
  if (result.outcome !== 'applied') return rollBackTools(deployment, progress, result)
  finishRotations(newValues(deployment), deployment.secretsFile)
  if (plan.gateway.kind === 'version') await setTriggers(deployment, progress)
  return result
}

async function createRedis(deployment: Deployment, progress: Progress): Promise<void> {
  const { settings, upstash, secrets, account } = deployment
  if (upstash === null || settings.redis === 'environment') return
  const { url, token } = await upstash.create(settings.redis.upstash)
  secrets.add('UPSTASH_REDIS_REST_TOKEN', token, 'Upstash')
  progress.release = deployment.describeRelease({ ...account, redisUrl: url })
}

/** Its name has the time: a branch that an earlier try has left lacks what was written since. */
async function createRestorePoint({ neon, account, plan, clock, report }: Deployment): Promise<void> {
  if (neon === null || account.neonProject === null || plan.restorePoint === null) return
  const time = new Date(clock.now()).toISOString().replace(/\.\d+|[-:]/g, '')
  const name = `${plan.restorePoint}-${time}`
  await neon.createBranch(account.neonProject, name)
  report(`restore point: Neon branch ${name}`)
}

async function applyMigrations(deployment: Deployment): Promise<void> {
  const address = databaseAddress(deployment)
  if (address === undefined) throw new DeployError('DATABASE_URL is not given')
  const { applied }: MigrationReport = await migrateDatabase(address)
  deployment.report(`migrations: ${applied.length} applied`)
}

async function generateSecrets(deployment: Deployment): Promise<void> {
  const { plan, secrets, secretsFile, report } = deployment
  const missing = plan.secrets.filter((name) => isGenerated(name) && secrets.get(name) === undefined)
  const rotated = newValues(deployment)
  for (const name of missing.filter((name) => !rotated.includes(name))) {
    generateSecret(name, secretsFile, secrets)
  }
  const advice = rotated.map((name) => rotateSecret(name, secretsFile, secrets))
  if (missing.length + rotated.length > 0)
    report(`secrets: generated into ${secretsFile}; store it safely, it cannot be read back`)
  for (const line of advice.filter((text) => text !== null)) report(`secrets: ${line}`)
}

/** Rotated secrets whose next value this deployment makes. One of the environment is given. */
const newValues = ({ plan, secrets }: Deployment): string[] =>
  plan.rotated.filter((name) => isGenerated(name) && secrets.source(name) !== 'environment')

/** The gateway reaches it by its name, so that all of its calls get the new version at once. */
async function deployTools({ plan, wrangler }: Deployment, progress: Progress): Promise<void> {
  const { tools } = progress.release
  const change = plan.tools
  if (change.kind === 'version' && change.versionId !== null) {
    await wrangler.divideTraffic(tools, [[change.versionId, 100]])
    progress.toolsVersion = change.versionId
  } else {
    progress.toolsVersion = await wrangler.deploy(tools)
  }
}

/** A plain deployment sets them itself. */
async function setTriggers(deployment: Deployment, { release }: Progress): Promise<void> {
  const { plan, report, wrangler } = deployment
  if (!plan.steps.some(({ step, action }) => step === 'triggers' && action !== 'same')) return
  await confirmStep(deployment)
  report('triggers')
  await wrangler.deployTriggers(release.gateway)
}
