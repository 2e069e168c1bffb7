import { type AccountDeps, accountTools } from './account-tools.ts'
import { type AgentToolDeps, agentTools } from './agent-tools.ts'
import { type ConnectionToolDeps, connectionTools } from './connection-tools.ts'
import { executeTool } from './execute-tool.ts'
import type { PlatformTool } from './platform-tool.ts'
import { type ToolSearchDeps, toolTools } from './search-tools.ts'

export type PlatformDeps = AccountDeps & ToolSearchDeps & ConnectionToolDeps & AgentToolDeps

const tools: readonly PlatformTool<PlatformDeps>[] = [
  ...accountTools,
  ...toolTools,
  executeTool,
  ...connectionTools,
  ...agentTools,
]

/**
 * The tools of this service for clients of MCP, by name and in the order of their names (the interface leaves the set open:
 * MCP gateway).
 */
export const PLATFORM_TOOLS: ReadonlyMap<string, PlatformTool<PlatformDeps>> = new Map(
  tools.map((tool) => [tool.name, tool] as const).sort(([left], [right]) => (left < right ? -1 : 1)),
)
