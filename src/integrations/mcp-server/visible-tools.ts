import { mayUse } from '../../governance/access.ts'
import type { Principal } from '../../governance/principal.ts'
import { PLATFORM_TOOLS, type PlatformDeps } from '../platform-tools/registry.ts'
import { PLATFORM } from '../tool-name.ts'
import type { ToolDefinition } from '../types.ts'

/** A tool as callers see it. */
export interface VisibleTool {
  /** The name under which callers call it. */
  name: string
  definition: ToolDefinition
}

export const platformTarget = (name: string) => ({ kind: 'tool', id: name, family: 'platform' }) as const

/**
 * The tools that a caller may call, in order of their names.
 * @param filter slugs of integrations; null for all tools. `platform` stands for the tools of this service.
 */
export async function visibleTools(
  _deps: PlatformDeps,
  principal: Principal,
  filter: readonly string[] | null,
): Promise<VisibleTool[]> {
  return platformTools(principal, filter)
}

function platformTools(principal: Principal, filter: readonly string[] | null): VisibleTool[] {
  const isWanted = filter === null || filter.includes(PLATFORM)
  if (!isWanted || !mayUse(principal, platformTarget(PLATFORM))) return []
  return [...PLATFORM_TOOLS.values()]
}
