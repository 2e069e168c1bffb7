import type { CallIdentity } from '../../governance/governed-call.ts'
import { hasScope, type Principal } from '../../governance/principal.ts'
import { callIntegrationTool, type IntegrationCallDeps } from '../../integrations/call-integration-tool.ts'
import { callTool, type ToolCallResult } from '../../integrations/call-tool.ts'
import { ApiError } from '../../lib/api-error.ts'
import type { HostedTool, IntegrationTool, ServerTool, ToolResult, ToolSearch } from '../tools/hosted-tool.ts'
import { isRequired } from '../tools/integrations/approvals.ts'
import type { OfferedTool } from '../tools/integrations/offered-tools.ts'
import { toolResultOf } from '../tools/integrations/tool-output.ts'
import { searchTools } from '../tools/integrations/tool-search.ts'
import type { Owner } from '../types.ts'

/** A call as it is stored: before it is dispatched, while it runs, and with its result. */
export interface StoredToolCall {
  callId: string
  upstreamName: string
  arguments: string
  state: 'intended' | 'dispatched' | 'done'
  result: ToolResult | null
  /** Id of its governed call. Stored before it is dispatched: a repetition after a restart opens, and pays, one call. */
  governedCallId?: string
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
  /** Tools that the model may call from the next turn on. */
  found?: readonly OfferedTool[]
}

/** One call to run. */
export interface CallToRun {
  call: StoredToolCall
  identity: CallIdentity
  caller: ToolCaller
  /** Whether the caller has approved it. */
  isApproved: boolean
  /** `CallRequest.creditsLeft`. */
  creditsLeft: number | undefined
}

/**
 * Runs one governed tool call of a response. A failure is a result for the model, which may continue without the tool.
 * @param tool undefined for one that does not exist any more. @throws as `callTool`.
 */
export async function runToolCall(
  deps: IntegrationCallDeps,
  tool: ServerTool | undefined,
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
  const { answer, arguments: inspected, principal: current, closing } = made
  const ended = { principal: current, closing }
  if (answer.status === 'completed' || inspected === null) return { result: answer, ...ended }
  // A failed call shows as well what was to be executed.
  const members = { ...membersOf?.(inspected), ...answer.members }
  return { result: { status: answer.status, members }, ...ended }
}

const SEARCH_TIME_LIMIT_MS = 30_000

async function runSearch(
  deps: IntegrationCallDeps,
  { definition, family, scope }: ToolSearch,
  { call, identity, caller: { principal } }: CallToRun,
  signal: AbortSignal,
): Promise<ToolRun> {
  let found: readonly OfferedTool[] = []
  const made = await callTool(
    deps,
    {
      ...{ identity, principal, price: 0, timeLimit: SEARCH_TIME_LIMIT_MS, arguments: call.arguments },
      target: { kind: 'tool', id: definition.name, family },
      async execute(json, current) {
        const search = await searchTools(deps, current, scope, json)
        found = search.found
        return search.answer
      },
    },
    signal,
  )
  const { answer, principal: current, closing } = made
  return { result: answer, principal: current, closing, found: answer.status === 'completed' ? found : [] }
}

async function runIntegration(
  deps: IntegrationCallDeps,
  { offered }: IntegrationTool,
  { call, identity, caller: { principal }, isApproved, creditsLeft }: CallToRun,
  signal: AbortSignal,
): Promise<ToolRun> {
  const { tool, connectionId, needsApproval } = offered
  const accessError = (current: Principal): ApiError | null => {
    if (!hasScope(current, 'mcp')) return scopeMissing()
    // The rules may have changed since the tool was offered.
    return !isApproved && (needsApproval || isRequired(current.tools.approvals, tool)) ? notApproved() : null
  }
  const made = await callIntegrationTool(
    deps,
    { identity, principal, tool, connectionId, arguments: call.arguments, accessError, creditsLeft },
    signal,
  )
  const { answer, principal: current, closing } = made
  return { result: toolResultOf(answer), principal: current, closing }
}

const notApproved = () =>
  new ApiError(
    'forbidden',
    'The call was not made: it needs an approval of the user, who has approved no call with these arguments.',
    { code: 'approval_required' },
  )

const scopeMissing = () => new ApiError('forbidden', 'This API key does not have the scope mcp.')

export const failedResult = (error: string): ToolResult => ({ status: 'failed', members: { error } })
