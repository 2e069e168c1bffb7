import { mayUse } from '../../calls/access.ts'
import { callPreparedTool, TOOL_NOT_ALLOWED } from '../../calls/call-tool.ts'
import type { CallIdentity, GovernedCall } from '../../calls/governed-call.ts'
import type { Principal } from '../../identity/principal.ts'
import type { CallOutcome } from '../../ledger/audit-record.ts'
import type { RateLimit } from '../../ledger/contract.ts'
import { type ApiError, invalidRequest } from '../../lib/api-error.ts'
import { callIntegrationTool } from '../call-integration-tool.ts'
import { EXECUTE_TOOL } from '../platform-tools/execute-tool.ts'
import { toolAnswerOf } from '../platform-tools/platform-tool.ts'
import { type CallReply, integrationReply, platformReply } from './call-reply.ts'
import type { CallableTool, McpDeps } from './find-callable-tool.ts'
import { mcpAccessError } from './mcp-access.ts'
import { isInScope, platformTarget } from './visible-tools.ts'

/** A call that was made, or refused with a record. */
export interface GovernedReply {
  reply: CallReply
  /** For the caller to settle; null for a refused call. */
  closing: { call: GovernedCall; outcome: CallOutcome } | null
  rateLimit: RateLimit | undefined
}

interface Caller {
  identity: CallIdentity
  principal: Principal
}

const PLATFORM_TIME_LIMIT_MS = 30_000

/**
 * Makes the governed call of a tool. Its record is that of the request, which it counts as.
 * @throws ApiError unauthorized for a caller that may not call any more; what the ledger or Postgres throws.
 */
export const callFoundTool = (
  deps: McpDeps,
  found: Exclude<CallableTool, { kind: 'absent' }>,
  caller: Caller,
  signal: AbortSignal,
): Promise<GovernedReply> =>
  found.kind === 'platform'
    ? callPlatformTool(deps, found, caller, signal)
    : callOfIntegration(deps, found, caller, signal)

async function callPlatformTool(
  deps: McpDeps,
  { tool, arguments: input }: Extract<CallableTool, { kind: 'platform' }>,
  caller: Caller,
  signal: AbortSignal,
): Promise<GovernedReply> {
  const target = platformTarget(tool.name)
  const execute = async (json: string, principal: Principal, stop: AbortSignal) =>
    toolAnswerOf(await tool.call(deps, principal, JSON.parse(json), stop))
  const { answer, error, closing, rateLimit } = await callPreparedTool(
    deps,
    { ...caller, arguments: JSON.stringify(input), timeLimit: PLATFORM_TIME_LIMIT_MS, counted: true },
    async (principal) => {
      const refusal = mcpAccessError(principal)
      if (refusal !== null) return { target, error: refusal }
      return isInScope(tool, principal) ? { target, price: 0, execute } : { target, error: notAllowed() }
    },
    signal,
  )
  const result = { kind: 'result' as const, result: answer.members }
  return { reply: error === null ? result : platformReply(error, tool), closing, rateLimit }
}

async function callOfIntegration(
  deps: McpDeps,
  found: Extract<CallableTool, { kind: 'integration' }>,
  caller: Caller,
  signal: AbortSignal,
): Promise<GovernedReply> {
  const { tool, connectionId, isDelegated } = found
  const { answer, closing, rateLimit } = await callIntegrationTool(
    deps,
    {
      ...caller,
      tool,
      connectionId,
      arguments: JSON.stringify(found.arguments),
      counted: true,
      accessError: (principal) => accessError(principal, isDelegated),
    },
    signal,
  )
  return { reply: integrationReply(answer, tool.name, isDelegated), closing, rateLimit }
}

/** Rights of the surface, and of the tool of the platform that calls the other one. */
function accessError(principal: Principal, isDelegated: boolean): ApiError | null {
  const refusal = mcpAccessError(principal)
  if (refusal !== null || !isDelegated) return refusal
  return mayUse(principal, platformTarget(EXECUTE_TOOL)) ? null : notAllowed()
}

const notAllowed = () => invalidRequest('There is no such tool.', TOOL_NOT_ALLOWED)
