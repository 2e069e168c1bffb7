import { DeployError } from './deploy-error.ts'
import type { Deployment, DeploymentResult, Progress } from './deployment-types.ts'
import type { ScriptRelease } from './release.ts'

/** Waits before a rollback is repeated, which does no harm: it names the version that gets all traffic. */
const WAITS_MS = [5_000, 10_000, 20_000, 40_000]

/** A version of the gateway that failed its test, its percentage of the traffic, and the version that has the rest. */
interface FailedVersion {
  id: string
  share: number
  base: string | null
}

/**
 * Rolls the gateway back. If that fails, the version keeps its share, which the result says.
 *
 * @param target version that gets all traffic
 * @param problems what the test found
 * @throws DeployError with what the test found, if the lease was lost
 */
export async function rollBackGateway(
  deployment: Deployment,
  progress: Progress,
  failed: FailedVersion,
  target: string,
  problems: string[],
): Promise<DeploymentResult> {
  const { report } = deployment
  const { gateway, tools } = progress.release
  const failure = await rollBack(deployment, gateway, target, problems)
  if (failure === null) {
    report(`gateway: rolled back to ${target}`)
    return { outcome: 'rolled_back', version: target, problems }
  }
  // Left by a deployment that was cut: it is newer than the target, whose tools it may not work with.
  const leftOver = failed.share < 100 && failed.base !== target ? failed.base : null
  // Where it has most of the traffic, the tools of its release stay with it.
  if (failed.share > 50 || leftOver !== null) {
    progress.targets = { ...progress.targets, tools: null }
    report(`${tools.name} stays with the gateway`)
  }
  const rest = leftOver === null ? '' : ` and version ${leftOver} keeps ${100 - failed.share} %`
  const kept = keptText(failure, failed.id, gateway, `${failed.share} %${rest}`)
  const version = failed.share === 100 ? failed.id : failed.share === 0 ? failed.base : null
  return { outcome: 'failed_test', version, problems: [...problems, kept] }
}

/**
 * Rolls the tools back after a failed test, unless the gateway of their release stays.
 *
 * @param result of the gateway
 * @throws DeployError with what the test found, if the lease was lost
 */
export async function rollBackTools(
  deployment: Deployment,
  { release: { tools }, targets, toolsVersion }: Progress,
  result: DeploymentResult,
): Promise<DeploymentResult> {
  const { plan, report } = deployment
  if (targets.tools === null) {
    if (plan.tools.kind === 'deploy' && plan.gateway.kind !== 'deploy')
      report(`${tools.name} keeps its new version: there is none to go back to`)
    return result
  }
  const failure = await rollBack(deployment, tools, targets.tools, result.problems)
  if (failure === null) {
    report(`${tools.name} rolled back to ${targets.tools}`)
    return result
  }
  const kept = keptText(failure, toolsVersion ?? 'that failed', tools, '100 %')
  return { ...result, outcome: 'failed_test', problems: [...result.problems, kept] }
}

/** Repeats a rollback until it has its effect or the waits are over. @returns why it failed; null if it did not */
async function rollBack(
  deployment: Deployment,
  release: ScriptRelease,
  target: string,
  problems: readonly string[],
): Promise<string | null> {
  const { wrangler, rollbackClock, report } = deployment
  for (let attempt = 0; ; attempt++) {
    await confirmForRollback(deployment, problems)
    try {
      await wrangler.rollBack(release, target)
      return null
    } catch (error) {
      const waitMs = WAITS_MS[attempt]
      const reason = textOf(error)
      if (waitMs === undefined) return reason
      report(`${release.name} is not rolled back yet: ${reason}`)
      await rollbackClock.sleep(waitMs)
    }
  }
}

/**
 * Confirms the lease before something is rolled back: the tests take minutes, in which another deployment may have taken over, whose
 * version a rollback would replace.
 *
 * @throws DeployError with what the test found, and why nothing is rolled back
 */
async function confirmForRollback(
  { lease, rollbackClock }: Deployment,
  problems: readonly string[],
): Promise<void> {
  try {
    await lease.confirm(rollbackClock)
  } catch (error) {
    throw new DeployError([...problems, `not rolled back: ${textOf(error)}`].join('; '), { cause: error })
  }
}

const keptText = (failure: string, version: string, { name }: ScriptRelease, shares: string): string =>
  `not rolled back: ${failure}; version ${version} of ${name} keeps ${shares} of the traffic: run again, or use wrangler rollback`

const textOf = (error: unknown): string => (error instanceof Error ? error.message : String(error))
