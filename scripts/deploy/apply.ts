import { type MigrationReport, migrateDatabase } from '../migrate.ts'
import { databaseAddress } from './account.ts'
import { DeployError } from './deploy-error.ts'
import type { Deployment, DeploymentResult, Progress } from './deployment-types.ts'
import type { StepName } from './plan-types.ts'
import { confirmForRollback, rollOut } from './roll-out.ts'
import { finishRotations, rotateSecret } from './rotate-secrets.ts'
import { generateSecret, isGenerated } from './secrets.ts'

/** One step: what applies it, and what takes it back after a failed test. */
interface Step {
  apply: (deployment: Deployment, progress: Progress) => Promise<void>
  undo?: (deployment: Deployment, progress: Progress) => Promise<void>
}

/** The steps before the gateway gets its version, which `rollOut` tests and raises. */
const STEPS: Partial<Record<StepName, Step>> = {
  redis: { apply: createRedis },
  'restore point': { apply: createRestorePoint },
  migrations: { apply: applyMigrations },
  bucket: { apply: ({ wrangler, settings }) => wrangler.createBucket(settings.bucket) },
  tools: { apply: deployTools, undo: rollBackTools },
  secrets: { apply: generateSecrets },
}

/**
 * Applies a plan, in its order. Every step was planned from what exists, so that a deployment that was cut continues where it
 * ended.
 *
 * @throws DeployError, MigrationError or DatabaseError; what is done by then stays
 */
export async function applyPlan(deployment: Deployment): Promise<DeploymentResult> {
  const { plan, account, lease, report } = deployment
  const progress: Progress = {
    release: deployment.describeRelease(account),
    toolsBase: null,
    toolsVersion: account.state.tools?.traffic[0]?.versionId ?? null,
  }
  const done: Step[] = []
  for (const [name, step] of Object.entries(STEPS) as Array<[StepName, Step]>) {
    const planned = plan.steps.filter((line) => line.step === name && line.action !== 'same')
    if (planned.length === 0) continue
    await lease.confirm()
    report(`${name}: ${planned.map((line) => line.name).join(', ')}`)
    await step.apply(deployment, progress)
    done.push(step)
  }
  // A host that an earlier run did not get to is what the test calls.
  if (plan.gateway.kind === 'none') await setTriggers(deployment, progress)
  const result = await rollOut(deployment, progress)
  if (result.outcome !== 'applied') {
    // A new gateway that keeps the traffic needs the tools of its own release.
    const isGatewayBefore = result.outcome === 'rolled_back' || plan.gateway.kind === 'none'
    if (!isGatewayBefore) return result
    for (const { undo } of done.reverse()) {
      if (undo === undefined) continue
      await confirmForRollback(lease, result.problems)
      await undo(deployment, progress)
    }
    return result
  }
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
  progress.toolsBase = change.kind === 'version' ? change.base : null
}

async function rollBackTools(
  { wrangler, report }: Deployment,
  { release, toolsBase }: Progress,
): Promise<void> {
  if (toolsBase === null)
    return report(`${release.tools.name} keeps its new version: there is none to go back to`)
  await wrangler.rollBack(release.tools, toolsBase)
  report(`${release.tools.name} rolled back to ${toolsBase}`)
}

/** A plain deployment sets them itself. */
async function setTriggers(
  { plan, lease, report, wrangler }: Deployment,
  { release }: Progress,
): Promise<void> {
  if (!plan.steps.some(({ step, action }) => step === 'triggers' && action !== 'same')) return
  await lease.confirm()
  report('triggers')
  await wrangler.deployTriggers(release.gateway)
}
