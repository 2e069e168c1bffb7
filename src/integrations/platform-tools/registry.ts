import { type AccountDeps, accountTools } from './account.ts'
import { type AgentToolDeps, agentTools } from './agents.ts'
import { type ConnectionToolDeps, connectionTools } from './connections.ts'
import { executeTool } from './execute-tool.ts'
import type { PlatformTool } from './platform-tool.ts'
import { type ToolSearchDeps, toolTools } from './tools.ts'

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
