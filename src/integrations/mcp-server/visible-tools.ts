import { mayUse } from '../../calls/access.ts'
import { hasScope, type Principal } from '../../identity/principal.ts'
import { listTools, type ToolCatalogueDeps } from '../catalogue/tool-catalogue.ts'
import { PLATFORM } from '../catalogue/tool-name.ts'
import type { PlatformTool } from '../platform-tools/platform-tool.ts'
import { PLATFORM_TOOLS } from '../platform-tools/registry.ts'
import type { ToolDefinition } from '../types.ts'

/** A tool as callers see it. */
export interface VisibleTool {
  /** The name under which callers call it. */
  name: string
  definition: ToolDefinition
}

export const platformTarget = (name: string) => ({ kind: 'tool', id: name, family: 'platform' }) as const

/** Whether the caller's key may be used for a tool of this service. */
export const isInScope = ({ scope }: Pick<PlatformTool<never>, 'scope'>, principal: Principal): boolean =>
  scope === null || hasScope(principal, scope)

/**
 * The tools that a caller may call, in order of their names.
 * @param filter slugs of integrations; null for all tools. `platform` stands for the tools of this service.
 * @throws ApiError internal when the catalogue cannot be read, and this isolate never read it.
 */
export async function visibleTools(
  deps: ToolCatalogueDeps,
  principal: Principal,
  filter: readonly string[] | null,
): Promise<VisibleTool[]> {
  const tools = await listTools(deps, principal, filter)
  const isWanted = filter === null || filter.includes(PLATFORM)
  if (!isWanted || !mayUse(principal, platformTarget(PLATFORM))) return tools
  const platform = [...PLATFORM_TOOLS.values()].filter((tool) => isInScope(tool, principal))
  // Names of integrations before it, then it, then those after it: no other name begins with its prefix.
  const after = tools.findIndex(({ name }) => name > `${PLATFORM}_`)
  return after < 0 ? [...tools, ...platform] : [...tools.slice(0, after), ...platform, ...tools.slice(after)]
}
