import type { ScriptState } from './cloudflare-api.ts'
import type { AccountState, DeploymentPlan, ScriptChange } from './plan-types.ts'
import { isDeployedTag } from './release.ts'

/** The versions that a failed test goes back to; null: the script keeps the one that it has then. */
export interface RollbackTargets {
  gateway: string | null
  tools: string | null
}

/**
 * Finds where a failed test goes back to: to what serves before this deployment, unless an earlier one was cut before its last test and
 * has left that. Then it goes back to the versions that were tested last. Pure.
 */
export function rollbackTargets(
  plan: Pick<DeploymentPlan, 'tools' | 'gateway'>,
  { tools, gateway, database: { tested } }: AccountState,
): RollbackTargets {
  // A gateway with other classes stays, and the tools of its release with it.
  if (plan.gateway.kind === 'deploy') return { gateway: null, tools: null }
  const base = baseOf(plan.gateway, gateway)
  const gatewayAfter = targetOf(gateway, base, tested.gateway)
  const toolsBase = baseOf(plan.tools, tools)
  // One that was never tested cannot be left: neither are tools tested with a gateway of another release.
  const toolsAfter = isLeftOver(gateway, gatewayAfter, tested.gateway)
    ? toolsBase
    : targetOf(tools, toolsBase, tested.tools)
  return {
    gateway: plan.gateway.kind === 'none' && gatewayAfter === base ? null : gatewayAfter,
    tools: plan.tools.kind === 'none' && toolsAfter === toolsBase ? null : toolsAfter,
  }
}

/** What serves without the change; null if nothing does, or if it cannot be returned to. */
function baseOf(change: ScriptChange, script: ScriptState | null): string | null {
  if (change.kind === 'deploy') return null
  return change.kind === 'version' ? change.base : (script?.traffic[0]?.versionId ?? null)
}

function targetOf(script: ScriptState | null, base: string | null, tested: string | null): string | null {
  return isLeftOver(script, base, tested) ? (script?.testedVersion ?? base) : base
}

/**
 * Whether a version is of a deployment that ended before its last test. An older one than the tested one was rolled back to by a person,
 * and one without a tag of a deployment was made by a person: both serve on purpose.
 */
function isLeftOver(script: ScriptState | null, version: string | null, tested: string | null): boolean {
  if (script === null || version === null || tested === null) return false
  const indexOf = (wanted: string) => script.versions.findIndex(({ id }) => id === wanted)
  // Newest first; one that is not listed is older than all of them.
  const testedIndex = indexOf(tested) < 0 ? script.versions.length : indexOf(tested)
  const index = indexOf(version)
  return index >= 0 && index < testedIndex && isDeployedTag(script.versions[index]?.tag ?? null)
}
