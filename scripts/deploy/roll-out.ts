import { databaseAddress, hasAuditRecord } from './account.ts'
import { refuseInterrupted } from './deploy-clock.ts'
import type { Deployment, DeploymentResult, Progress } from './deployment-types.ts'
import type { ScriptChange } from './plan-types.ts'
import { rollBackGateway } from './roll-back.ts'
import { testedOrigin } from './settings.ts'
import { runSmokeTest } from './smoke-test.ts'

/** Gets the gateway's version in place, tested. */
export function rollOut(deployment: Deployment, progress: Progress): Promise<DeploymentResult> {
  const { gateway } = deployment.plan
  if (gateway.kind === 'version') return raiseTraffic(deployment, progress, gateway)
  return gateway.kind === 'deploy'
    ? deployAtOnce(deployment, progress, gateway)
    : testServing(deployment, progress)
}

/** Before each step that changes the account. @throws DeployError if it is interrupted, or if another deployment may have taken over */
export async function confirmStep({ signal, lease, clock }: Deployment): Promise<void> {
  refuseInterrupted(signal)
  await lease.confirm(clock)
}

/** Before the upload that may bring them: only a test with all traffic ends them. */
async function recordRotations({ plan, account, lease }: Deployment): Promise<void> {
  if (plan.rotated.length === 0) return
  await lease.recordRotations([...new Set([...account.state.database.begunRotations, ...plan.rotated])])
}

/** A new script has no traffic yet; other classes cannot be tested beside the old ones. */
async function deployAtOnce(
  deployment: Deployment,
  progress: Progress,
  { isNew }: Extract<ScriptChange, { kind: 'deploy' }>,
): Promise<DeploymentResult> {
  const { plan, wrangler, report } = deployment
  await confirmStep(deployment)
  await recordRotations(deployment)
  const { gateway } = progress.release
  report(`gateway: deploying ${gateway.name}`)
  const version = await wrangler.deploy(gateway, plan.secrets)
  const problems = await smokeTest(deployment, progress, version, isNew)
  if (problems.length === 0) return recordApplied(deployment, progress, version)
  const advice = isNew
    ? 'There is no version before it: mend what failed and run again, or remove the script with wrangler delete'
    : 'Cloudflare does not roll back past a change of classes. Mend the code and run again: a version with the same classes goes out with a test first'
  return { outcome: 'failed_test', version, problems: [...problems, advice] }
}

/** The version that serves: with other tools, or of an earlier run that did not test it to the end. */
async function testServing(deployment: Deployment, progress: Progress): Promise<DeploymentResult> {
  const { account, plan } = deployment
  const version = account.state.gateway?.traffic[0]?.versionId ?? null
  const isPlanned = plan.steps.some(({ step, action }) => step === 'smoke test' && action !== 'same')
  if (version === null || !isPlanned) return { outcome: 'applied', version, problems: [] }
  const problems = await smokeTest(deployment, progress, version, false)
  if (problems.length === 0) return recordApplied(deployment, progress, version)
  const { targets } = progress
  if (targets.gateway !== null)
    return rollBackGateway(
      deployment,
      progress,
      { id: version, share: 100, base: null },
      targets.gateway,
      problems,
    )
  // Only the tools have changed since the last test, and are rolled back next.
  if (targets.tools !== null) return { outcome: 'rolled_back', version, problems }
  const advice =
    'This version has all traffic. Mend the code and run again, or go back with wrangler rollback'
  return { outcome: 'failed_test', version, problems: [...problems, advice] }
}

/** Tests a version at 0 %, then at each share, and rolls back when a test fails. */
async function raiseTraffic(
  deployment: Deployment,
  progress: Progress,
  change: Extract<ScriptChange, { kind: 'version' }>,
): Promise<DeploymentResult> {
  const { release } = progress
  const { plan, wrangler, report, settings, clock, account } = deployment
  await confirmStep(deployment)
  await recordRotations(deployment)
  report(`gateway: uploading ${release.gateway.name}`)
  const version = change.versionId ?? (await wrangler.uploadVersion(release.gateway, plan.secrets))
  const present = account.state.gateway?.traffic.find(({ versionId }) => versionId === version)?.percentage
  const { steps, waitSeconds } = settings.rollout
  const shares =
    present === undefined ? [0, ...steps] : [present, ...steps.filter((share) => share > present)]
  for (const share of shares) {
    await confirmStep(deployment)
    if (share !== present)
      await wrangler.divideTraffic(release.gateway, sharesOf(version, change.base, share))
    report(`gateway: ${share} % of traffic on ${version}`)
    if (share > 0 && share < 100) {
      await clock.sleep(waitSeconds * 1000)
      // A machine that was asleep for longer than its lease has lost it, and tests the release of another one.
      await confirmStep(deployment)
    }
    const problems = await smokeTest(deployment, progress, version, false)
    if (problems.length === 0) continue
    const target = progress.targets.gateway ?? change.base
    return rollBackGateway(deployment, progress, { id: version, share, base: change.base }, target, problems)
  }
  return recordApplied(deployment, progress, version)
}

/** @throws DeployError if another deployment may have changed what was tested */
async function recordApplied(
  { lease, clock }: Deployment,
  { toolsVersion }: Progress,
  version: string,
): Promise<DeploymentResult> {
  await lease.confirm(clock)
  await lease.recordTested({ gateway: version, tools: toolsVersion })
  return { outcome: 'applied', version, problems: [] }
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

async function smokeTest(
  deployment: Deployment,
  { toolsVersion }: Progress,
  version: string,
  isNew: boolean,
): Promise<string[]> {
  const { settings, secrets, report, fetch, clock } = deployment
  const origin = testedOrigin(settings)
  const address = databaseAddress(deployment)
  if (origin === null || address === undefined) return ['there is no address to test']
  report(`smoke test: ${origin}`)
  return runSmokeTest({
    origin,
    version: { script: settings.gateway.name, id: version },
    toolsVersion,
    adminToken: secrets.get('ADMIN_TOKEN'),
    adminTokenPlace: secrets.source('ADMIN_TOKEN') === 'environment' ? 'the environment' : 'the file',
    key: secrets.get('SMOKE_TEST_KEY'),
    model: settings.smokeTest.model,
    hasRecord: (requestId) => hasAuditRecord(address, requestId),
    patienceMs: isNew ? NEW_HOST_PATIENCE_MS : PATIENCE_MS,
    fetch,
    clock,
  })
}
