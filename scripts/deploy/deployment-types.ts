import type { AccountSources, ReadAccount } from './account.ts'
import type { DeployClock } from './deploy-clock.ts'
import type { DeployLease } from './lease.ts'
import type { DeploymentPlan } from './plan-types.ts'
import type { Release } from './release.ts'
import type { RollbackTargets } from './rollback-targets.ts'
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
  /** No signal ends its waits. */
  rollbackClock: DeployClock
  /** Interrupts the deployment before its next step. Rollbacks are made all the same. */
  signal: AbortSignal
  /** Prints what is done, in one line. */
  report: (line: string) => void
}

export interface DeploymentResult {
  outcome: 'applied' | 'rolled_back' | 'failed_test'
  /** Version of the gateway that has all traffic; null if it is not known. */
  version: string | null
  /** What the smoke test found, and what to do next. */
  problems: string[]
}

/** What the steps before have made. */
export interface Progress {
  release: Release
  /** Where a failed test goes back to. */
  targets: RollbackTargets
  /** Version of the tools that serves; null if it is not known. */
  toolsVersion: string | null
}
