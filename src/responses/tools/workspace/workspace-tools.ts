import type { HostedTool } from '../hosted-tool.ts'
import { fileTools } from './file-tools.ts'
import { shellTool } from './shell-tool.ts'
import type { WorkspaceOf } from './workspace-client.ts'

/** The shell and the tools on files, in the order in which models see them. */
export const workspaceTools = (workspaceOf: WorkspaceOf): HostedTool[] => [
  shellTool(workspaceOf),
  ...fileTools(workspaceOf),
]
