import { mayUse } from '../../calls/access.ts'
import { callPreparedTool } from '../../calls/call-tool.ts'
import type { CallIdentity, GovernedCall } from '../../calls/governed-call.ts'
import type { ToolFailure } from '../../calls/tool-failure.ts'
import type { Principal } from '../../identity/principal.ts'
import type { CallOutcome } from '../../ledger/audit-record.ts'
import type { RateLimit } from '../../ledger/contract.ts'
import { callIntegrationTool } from '../call-integration-tool.ts'
import { EXECUTE_TOOL } from '../platform-tools/execute-tool.ts'
import { toolAnswerOf } from '../platform-tools/platform-tool.ts'
import { answerReply, type CallReply, failureReply } from './call-reply.ts'
import type { CallableTool, McpDeps } from './find-callable-tool.ts'
import { mcpAccessError } from './mcp-access.ts'
import { isInScope, platformTarget } from './visible-tools.ts'

/** A call that was made, or refused with a record. */
interface GovernedReply {
  reply: CallReply
  /** The end of the call, which the caller settles; null for a refused call. */
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
  const { end, closing, rateLimit } = await callPreparedTool(
    deps,
    { ...caller, arguments: JSON.stringify(input), timeLimit: PLATFORM_TIME_LIMIT_MS, counted: true },
    async (principal) => {
      const failure = accessFailure(principal) ?? (isInScope(tool, principal) ? null : NOT_ALLOWED)
      return failure === null ? { target, price: 0, execute } : { target, failure }
    },
    signal,
  )
  const reply =
    end.kind === 'answered' ? answerReply(end.answer, null) : failureReply(end, { kind: 'platform', tool })
  return { reply, closing, rateLimit }
}

async function callOfIntegration(
  deps: McpDeps,
  found: Extract<CallableTool, { kind: 'integration' }>,
  caller: Caller,
  signal: AbortSignal,
): Promise<GovernedReply> {
  const { tool, connectionId, isDelegated } = found
  const { end, closing, rateLimit } = await callIntegrationTool(
    deps,
    {
      ...caller,
      tool,
      connectionId,
      arguments: JSON.stringify(found.arguments),
      counted: true,
      refusalOf: (principal) => accessFailure(principal, isDelegated),
    },
    signal,
  )
  const reply =
    end.kind === 'answered'
      ? answerReply(end.answer, end.answer.beside ?? null)
      : failureReply(end, { kind: 'integration', name: tool.name, isDelegated })
  return { reply, closing, rateLimit }
}

/** Rights of the surface, and of the tool of the platform that calls the other one. */
function accessFailure(principal: Principal, isDelegated = false): ToolFailure | null {
  const error = mcpAccessError(principal)
  if (error !== null) return { kind: 'refused', error }
  return isDelegated && !mayUse(principal, platformTarget(EXECUTE_TOOL)) ? NOT_ALLOWED : null
}

const NOT_ALLOWED: ToolFailure = { kind: 'tool_unknown' }
