import { callTool, type ToolCallResult } from '../../calls/call-tool.ts'
import type { CallIdentity } from '../../calls/governed-call.ts'
import { renderFailure, type ToolFailure } from '../../calls/tool-failure.ts'
import { hasScope, type Principal } from '../../identity/principal.ts'
import { callIntegrationTool, type IntegrationCallDeps } from '../../integrations/call-integration-tool.ts'
import { ApiError } from '../../lib/api-error.ts'
import type { OfferedTool } from '../model/offered-tools.ts'
import type { StoredToolCall, ToolResult } from '../model/tool-result.ts'
import type { Owner } from '../model/types.ts'
import type { HostedTool, IntegrationTool, ServiceTool, ToolSearch } from '../tools/hosted-tool.ts'
import { isRequired } from '../tools/integrations/approvals.ts'
import { toolResultOf } from '../tools/integrations/tool-output.ts'
import { searchTools } from '../tools/integrations/tool-search.ts'

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
  /** Tools that the model may call from the next turn on. */
  found?: readonly OfferedTool[]
}

/** Whether the caller has approved a call; `used`: another call was made for its approval. */
export type Approval = 'none' | 'given' | 'used'

/** A call to run. */
interface CallToRun {
  call: StoredToolCall
  identity: CallIdentity
  caller: ToolCaller
  approval: Approval
  /** `CallRequest.creditsLeft`. */
  creditsLeft: number | undefined
}

/**
 * Runs one governed tool call of a response. A failure is a result for the model, which may continue without the tool.
 * @param tool undefined for one that does not exist any more. @throws as `callTool`.
 */
export async function runToolCall(
  deps: IntegrationCallDeps,
  tool: ServiceTool | undefined,
  run: CallToRun,
  signal: AbortSignal,
): Promise<ToolRun> {
  signal.throwIfAborted()
  const { principal } = run.caller
  if (!tool) return { result: failedResult('The tool is not available any more.'), principal, closing: null }
  if (tool.purpose === 'search') return runSearch(deps, tool, run, signal)
  return tool.purpose === 'hosted'
    ? runHosted(deps, tool, run, signal)
    : runIntegration(deps, tool, run, signal)
}

async function runHosted(
  deps: IntegrationCallDeps,
  { definition, family, price = 0, timeLimit, membersOf, run }: HostedTool,
  { call, identity, caller, creditsLeft }: CallToRun,
  signal: AbortSignal,
): Promise<ToolRun> {
  const { principal, ...place } = caller
  const made = await callTool(
    deps,
    {
      ...{ identity, principal, price, timeLimit, creditsLeft, arguments: call.arguments },
      target: { kind: 'tool', id: definition.name, family },
      execute: (json, { tools: rights }, stop) =>
        run({ ...place, callId: call.callId, arguments: json, rights }, stop),
    },
    signal,
  )
  const { end, arguments: inspected, principal: current, closing } = made
  const { status, members } = end.kind === 'answered' ? end.answer : resultOfFailure(end)
  // A failed call shows as well what was to be executed.
  const intended = status === 'failed' && inspected !== null ? membersOf?.(inspected) : undefined
  return { result: { status, members: { ...intended, ...members } }, principal: current, closing }
}

const SEARCH_TIME_LIMIT_MS = 30_000

async function runSearch(
  deps: IntegrationCallDeps,
  { definition, family, scope }: ToolSearch,
  { call, identity, caller: { principal } }: CallToRun,
  signal: AbortSignal,
): Promise<ToolRun> {
  const made = await callTool<readonly OfferedTool[]>(
    deps,
    {
      ...{ identity, principal, price: 0, timeLimit: SEARCH_TIME_LIMIT_MS, arguments: call.arguments },
      target: { kind: 'tool', id: definition.name, family },
      async execute(json, current) {
        const { answer, found } = await searchTools(deps, current, scope, json)
        return { ...answer, beside: found }
      },
    },
    signal,
  )
  const { end, principal: current, closing } = made
  if (end.kind !== 'answered') return { result: resultOfFailure(end), principal: current, closing }
  const { status, members, beside: found = [] } = end.answer
  return { result: { status, members }, principal: current, closing, found }
}

async function runIntegration(
  deps: IntegrationCallDeps,
  { offered }: IntegrationTool,
  { call, identity, caller: { principal }, approval, creditsLeft }: CallToRun,
  signal: AbortSignal,
): Promise<ToolRun> {
  const { tool, connectionId, needsApproval } = offered
  const refusalOf = (current: Principal): ToolFailure | null => {
    if (!hasScope(current, 'mcp')) return { kind: 'refused', error: scopeMissing() }
    if (approval === 'used') return { kind: 'approval_used' }
    // The rules may have changed since the tool was offered.
    const isMissing = needsApproval || isRequired(current.tools.approvals, tool)
    return approval === 'none' && isMissing ? { kind: 'approval_required' } : null
  }
  const made = await callIntegrationTool(
    deps,
    { identity, principal, tool, connectionId, arguments: call.arguments, refusalOf, creditsLeft },
    signal,
  )
  const { end, principal: current, closing } = made
  const result = end.kind === 'answered' ? toolResultOf(end.answer) : resultOfFailure(end)
  return { result, principal: current, closing }
}

const resultOfFailure = (failure: ToolFailure): ToolResult => failedResult(renderFailure(failure).forModel)

const scopeMissing = () => new ApiError('forbidden', 'This API key does not have the scope mcp.')

export const failedResult = (error: string): ToolResult => ({ status: 'failed', members: { error } })
