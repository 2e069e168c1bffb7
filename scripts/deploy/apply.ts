import { type MigrationReport, migrateDatabase } from '../migrate.ts'
import { type AccountSources, databaseAddress, hasAuditRecord, type ReadAccount } from './account.ts'
import type { DeployClock } from './deploy-clock.ts'
import { DeployError } from './deploy-error.ts'
import type { DeployLease } from './lease.ts'
import type { DeploymentPlan, ScriptChange, StepName } from './plan-types.ts'
import type { Release } from './release.ts'
import { generateSecret, isGenerated } from './secrets.ts'
import { testedOrigin } from './settings.ts'
import { runSmokeTest } from './smoke-test.ts'
import type { Wrangler } from './wrangler.ts'

/** What the steps work with. */
export interface Deployment extends AccountSources {
  plan: DeploymentPlan
  account: ReadAccount
  /** Describes the release again, once the address of Redis is known. */
  describeRelease: (account: ReadAccount) => Release
  wrangler: Wrangler
  lease: DeployLease
  secretsFile: string
  fetch: typeof fetch
  clock: DeployClock
  /** Tells what is done, in one line. */
  report: (line: string) => void
}

export interface DeploymentResult {
  outcome: 'applied' | 'rolled_back' | 'failed_test'
  /** Version of the gateway that has all traffic; null if it is not known. */
  version: string | null
  /** What the smoke test found, and what a person should do. */
  problems: string[]
}

/** What the steps before have made. */
interface Progress {
  release: Release
  /** Version of the tools that served before; null if it cannot be returned to. */
  toolsBase: string | null
}

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
  const progress: Progress = { release: deployment.describeRelease(account), toolsBase: null }
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
      if (undo) await confirmForRollback(lease, result.problems)
      await undo?.(deployment, progress)
    }
    return result
  }
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

async function generateSecrets({ plan, secrets, secretsFile, report }: Deployment): Promise<void> {
  const generated = plan.secrets.filter((name) => isGenerated(name) && secrets.get(name) === undefined)
  for (const name of generated) generateSecret(name, secretsFile, secrets)
  if (generated.length > 0)
    report(`secrets: generated into ${secretsFile}; store it safely, it cannot be read back`)
}

/** The gateway reaches it by its name, so that all of its calls get the new version at once. */
async function deployTools({ plan, wrangler }: Deployment, progress: Progress): Promise<void> {
  const { tools } = progress.release
  const change = plan.tools
  if (change.kind === 'version' && change.versionId !== null) {
    await wrangler.divideTraffic(tools, [[change.versionId, 100]])
  } else {
    await wrangler.deploy(tools)
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

/** Gets the gateway's version in place, tested. */
function rollOut(deployment: Deployment, progress: Progress): Promise<DeploymentResult> {
  const { gateway } = deployment.plan
  if (gateway.kind === 'version') return raiseTraffic(deployment, progress, gateway)
  return gateway.kind === 'deploy' ? deployAtOnce(deployment, progress, gateway) : testServing(deployment)
}

/** A new script has no traffic yet; other classes cannot be tested beside the old ones. */
async function deployAtOnce(
  deployment: Deployment,
  { release }: Progress,
  { isNew }: Extract<ScriptChange, { kind: 'deploy' }>,
): Promise<DeploymentResult> {
  const { plan, wrangler, lease, report } = deployment
  await lease.confirm()
  report(`gateway: deploying ${release.gateway.name}`)
  const version = await wrangler.deploy(release.gateway, plan.secrets)
  const problems = await test(deployment, version, isNew)
  if (problems.length === 0) {
    await lease.recordTested(version)
    return { outcome: 'applied', version, problems }
  }
  const advice = isNew
    ? 'There is no version before it: mend what failed and run again, or remove the script with wrangler delete'
    : 'Cloudflare does not roll back past a change of classes. Mend the code and run again: a version with the same classes goes out with a test first'
  return { outcome: 'failed_test', version, problems: [...problems, advice] }
}

/** The version of an earlier run, which serves and was not tested to the end. */
async function testServing(deployment: Deployment): Promise<DeploymentResult> {
  const { account, plan, lease } = deployment
  const version = account.state.gateway?.traffic[0]?.versionId ?? null
  const isPlanned = plan.steps.some(({ step, action }) => step === 'smoke test' && action !== 'same')
  if (version === null || !isPlanned) return { outcome: 'applied', version, problems: [] }
  const problems = await test(deployment, version, false)
  if (problems.length === 0) {
    await lease.recordTested(version)
    return { outcome: 'applied', version, problems }
  }
  const advice =
    'This version has all traffic. Mend the code and run again, or go back with wrangler rollback'
  return { outcome: 'failed_test', version, problems: [...problems, advice] }
}

/** Tests a version at 0 %, then at each share, and goes back to the one before it when a test fails. */
async function raiseTraffic(
  deployment: Deployment,
  { release }: Progress,
  change: Extract<ScriptChange, { kind: 'version' }>,
): Promise<DeploymentResult> {
  const { plan, wrangler, lease, report, settings, clock, account } = deployment
  await lease.confirm()
  report(`gateway: uploading ${release.gateway.name}`)
  const version = change.versionId ?? (await wrangler.uploadVersion(release.gateway, plan.secrets))
  const present = account.state.gateway?.traffic.find(({ versionId }) => versionId === version)?.percentage
  const { steps, waitSeconds } = settings.rollout
  const shares =
    present === undefined ? [0, ...steps] : [present, ...steps.filter((share) => share > present)]
  for (const share of shares) {
    await lease.confirm()
    if (share !== present)
      await wrangler.divideTraffic(release.gateway, sharesOf(version, change.base, share))
    report(`gateway: ${share} % of traffic on ${version}`)
    if (share > 0 && share < 100) await clock.sleep(waitSeconds * 1000)
    const problems = await test(deployment, version, false)
    if (problems.length > 0) {
      await confirmForRollback(lease, problems)
      await wrangler.rollBack(release.gateway, change.base)
      report(`gateway: rolled back to ${change.base}`)
      return { outcome: 'rolled_back', version: change.base, problems }
    }
  }
  await lease.recordTested(version)
  return { outcome: 'applied', version, problems: [] }
}

/**
 * Confirms the lease before something is rolled back: the tests take minutes, in which another deployment may have taken over, whose
 * version a rollback would replace.
 * @throws DeployError with what the test found, and why nothing is rolled back
 */
async function confirmForRollback(lease: DeployLease, problems: readonly string[]): Promise<void> {
  try {
    await lease.confirm()
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error)
    throw new DeployError([...problems, `not rolled back: ${reason}`].join('; '), { cause: error })
  }
}

const sharesOf = (version: string, base: string, share: number): Array<[string, number]> =>
  share === 100
    ? [[version, 100]]
    : [
        [base, 100 - share],
        [version, share],
      ]

const PATIENCE_MS = 60_000
/** The certificate of a new host takes minutes. */
const NEW_HOST_PATIENCE_MS = 600_000

async function test(deployment: Deployment, version: string, isNew: boolean): Promise<string[]> {
  const { settings, secrets, report, fetch, clock } = deployment
  const origin = testedOrigin(settings)
  const address = databaseAddress(deployment)
  if (origin === null || address === undefined) return ['there is no address to test']
  report(`smoke test: ${origin}`)
  return runSmokeTest({
    origin,
    version: { script: settings.gateway.name, id: version },
    adminToken: secrets.get('ADMIN_TOKEN'),
    key: secrets.get('SMOKE_TEST_KEY'),
    model: settings.smokeTest.model,
    hasRecord: (requestId) => hasAuditRecord(address, requestId),
    patienceMs: isNew ? NEW_HOST_PATIENCE_MS : PATIENCE_MS,
    fetch,
    clock,
  })
}
