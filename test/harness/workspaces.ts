import { newId } from '../../src/lib/ids.ts'
import type { ToolResult } from '../../src/responses/model/tool-result.ts'
import type { HostedTool } from '../../src/responses/tools/hosted-tool.ts'
import { workspaceClient } from '../../src/responses/tools/workspace/workspace-client.ts'
import { workspaceTools } from '../../src/responses/tools/workspace/workspace-tools.ts'
import { DEFAULT_TOOL_RIGHTS } from './tool-rights.ts'

type Fetch = (url: string, init: RequestInit) => Promise<Response>

/** The binding of a script of tools that runs at a URL. @param through can lose requests and answers. */
export const toolsService = (toolsUrl: string, through: Fetch = fetch) => ({
  fetch: (url: string, init: RequestInit) => through(url.replace('https://tools', toolsUrl), init),
})

export interface WorkspaceCaller {
  organizationId: string
  userId: string
  workspaceId: string
  /** Calls a tool as the registry does. Rejects with the ApiError of a refusal. */
  call(name: string, arguments_: unknown, callId?: string, signal?: AbortSignal): Promise<ToolResult>
  /** The first command's stdout and stderr. */
  shell(command: string, more?: object): Promise<ShellOutput>
  tools: HostedTool[]
}

export interface ShellOutput {
  stdout: string
  stderr: string
  outcome: { type: string; exit_code?: number }
}

/** A caller of the workspace tools; without ids, in a workspace of its own. */
export function workspaceCaller(
  toolsUrl: string,
  {
    organizationId = crypto.randomUUID() as string,
    userId = crypto.randomUUID() as string,
    workspaceId = newId('conv'),
    through = fetch as Fetch,
    shell = DEFAULT_TOOL_RIGHTS.shell,
  } = {},
): WorkspaceCaller {
  const tools = workspaceTools(workspaceClient(toolsService(toolsUrl, through)))
  const responseId = newId('resp')
  const call: WorkspaceCaller['call'] = async (name, arguments_, callId = newId('call'), signal) => {
    const tool = tools.find(({ definition }) => definition.name === name)
    if (!tool) throw new Error(`there is no tool ${name}`)
    const json = typeof arguments_ === 'string' ? arguments_ : JSON.stringify(arguments_)
    const owner = { organizationId, userId }
    const rights = { ...DEFAULT_TOOL_RIGHTS, shell }
    const hosted = { owner, workspaceId, responseId, callId, arguments: json, rights }
    return tool.run(hosted, signal ?? AbortSignal.timeout(60_000))
  }
  return {
    organizationId,
    userId,
    workspaceId,
    tools,
    call,
    shell: async (command, more = {}) => {
      const { members } = await call('shell', { commands: [command], ...more })
      return (members.output as ShellOutput[])[0] as ShellOutput
    },
  }
}
