import type { CallIdentity } from '../../governance/governed-call.ts'
import type { Principal } from '../../governance/principal.ts'
import { callTool, type ToolCallDeps, type ToolCallResult } from '../../integrations/call-tool.ts'
import type { HostedTool, ToolResult } from '../tools/hosted-tool.ts'
import type { Owner } from '../types.ts'

/** A call as it is stored: before it is dispatched, while it runs, and with its result. */
export interface StoredToolCall {
  callId: string
  upstreamName: string
  arguments: string
  state: 'intended' | 'dispatched' | 'done'
  result: ToolResult | null
}

/** The caller of the tools of a response. */
export interface ToolCaller {
  owner: Owner
  principal: Principal
  /** See `object/response-files`. */
  workspaceId: string
  responseId: string
}

/** A call that was made: its result, and what its caller has to store. */
export interface ToolRun extends Pick<ToolCallResult, 'principal' | 'closing'> {
  result: ToolResult
}

/**
 * Runs one governed tool call of a response. A failure is a result for the model, which may continue without the tool.
 * @param tool undefined for one that does not exist any more. @throws as `callTool`.
 */
export async function runToolCall(
  deps: ToolCallDeps,
  tool: HostedTool | undefined,
  call: StoredToolCall,
  identity: CallIdentity,
  { owner, principal, workspaceId, responseId }: ToolCaller,
  signal: AbortSignal,
): Promise<ToolRun> {
  signal.throwIfAborted()
  if (!tool) return { result: failedResult('The tool is not available any more.'), principal, closing: null }
  const { definition, family, price = 0, timeLimit } = tool
  const {
    answer,
    arguments: inspected,
    ...rest
  } = await callTool(
    deps,
    {
      ...{ identity, principal, price, timeLimit, arguments: call.arguments },
      target: family
        ? { kind: 'tool', id: definition.name, family }
        : { kind: 'integration', id: definition.name, slug: '', tool: definition.name, connectionId: null },
      execute: (json, { tools: rights }, stop) =>
        tool.run({ owner, workspaceId, responseId, callId: call.callId, arguments: json, rights }, stop),
    },
    signal,
  )
  const { status, members } = answer
  if (status === 'completed' || inspected === null) return { result: answer, ...rest }
  // A failed call shows as well what was to be executed.
  return { result: { status, members: { ...tool.membersOf?.(inspected), ...members } }, ...rest }
}

export const failedResult = (error: string): ToolResult => ({ status: 'failed', members: { error } })
