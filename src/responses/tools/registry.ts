import type { HostedTool } from './hosted-tool.ts'
import { type WebToolDeps, webTools } from './web/web-tools.ts'
import type { WorkspaceOf } from './workspace/workspace-client.ts'
import { workspaceTools } from './workspace/workspace-tools.ts'

/** Every tool that this service runs, in the order in which models see them. */
export const hostedTools = (web: WebToolDeps, workspaceOf: WorkspaceOf): readonly HostedTool[] => [
  ...workspaceTools(workspaceOf),
  ...webTools(web),
]
