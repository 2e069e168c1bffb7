import type { CallOutcome } from '../../governance/audit-record.ts'
import type { CallIdentity, GovernedCall } from '../../governance/governed-call.ts'
import type { RateLimit } from '../../governance/ledger/contract.ts'
import type { Principal } from '../../governance/principal.ts'
import type { ApiError } from '../../lib/api-error.ts'
import { callPreparedTool, type ToolCallDeps } from '../call-tool.ts'
import { errorResult, type PlatformTool, toolAnswerOf } from '../platform-tools/platform-tool.ts'
import { PLATFORM_TOOLS, type PlatformDeps } from '../platform-tools/registry.ts'
import { CODES, failure, invalidParams, type Reply } from './json-rpc.ts'
import { mcpAccessError } from './mcp-access.ts'
import type { Message } from './read-message.ts'
import { platformTarget } from './visible-tools.ts'

export type McpDeps = PlatformDeps & ToolCallDeps

/** A request of `tools/call` whose parameters have the form of the protocol. */
export interface ToolCallRequest {
  name: string
  arguments: Record<string, unknown>
}

/** A tool of the caller; `absent` with the reply for a call of it. */
export type FoundTool = { kind: 'platform'; tool: PlatformTool<McpDeps> } | { kind: 'absent'; reply: Reply }

/** A call that was made, or refused with a record. */
export interface GovernedReply {
  /** `refusal`: the error that answers the whole request, such as a limit. */
  reply: Reply | { kind: 'refusal'; error: ApiError }
  /** For the caller to settle; null for a refused call. */
  closing: { call: GovernedCall; outcome: CallOutcome } | null
  rateLimit: RateLimit | undefined
}

const PLATFORM_TIME_LIMIT_MS = 30_000

/** @returns the reply in place of it for parameters that are not those of `tools/call`. */
export function readToolCall({ params }: Message): ToolCallRequest | Reply {
  const { name, arguments: given = {} } = params
  if (typeof name !== 'string' || name === '') return invalidParams('params.name must be the name of a tool.')
  if (given === null || typeof given !== 'object' || Array.isArray(given)) {
    return invalidParams('params.arguments must be an object.')
  }
  return { name, arguments: given as Record<string, unknown> }
}

/** Finds a tool for the rights of a caller. */
export async function findCallableTool(
  _deps: McpDeps,
  _principal: Principal,
  name: string,
): Promise<FoundTool> {
  const platform = PLATFORM_TOOLS.get(name)
  if (platform) return { kind: 'platform', tool: platform }
  return { kind: 'absent', reply: unknownTool(name) }
}

/** Unknown and forbidden tools have the same reply (interface: Errors, MCP gateway). */
const unknownTool = (name: string): Reply =>
  invalidParams(`There is no tool named ${name.slice(0, 128)}.`, 'unknown_tool')

/**
 * Makes the governed call of a tool. Its record is that of the request.
 * @throws ApiError unauthorized for a caller that may not call any more; what the ledger or Postgres throws.
 */
export async function callFoundTool(
  deps: McpDeps,
  { tool }: Extract<FoundTool, { kind: 'platform' }>,
  request: ToolCallRequest,
  caller: { identity: CallIdentity; principal: Principal },
  signal: AbortSignal,
): Promise<GovernedReply> {
  const target = platformTarget(tool.name)
  const execute = async (json: string, principal: Principal, stop: AbortSignal) =>
    toolAnswerOf(await tool.call(deps, principal, JSON.parse(json), stop))
  const called = await callPreparedTool(
    deps,
    {
      ...caller,
      arguments: JSON.stringify(request.arguments),
      timeLimit: PLATFORM_TIME_LIMIT_MS,
      counted: true,
    },
    async (principal) => {
      const error = mcpAccessError(principal)
      return error === null ? { target, price: 0, execute } : { target, error }
    },
    signal,
  )
  const { answer, error, closing, rateLimit } = called
  const result = { kind: 'result' as const, result: answer.members }
  return { reply: error === null ? result : platformReply(error, request.name), closing, rateLimit }
}

/** The reply to a call of a tool of the platform that failed. */
function platformReply(error: ApiError, name: string): GovernedReply['reply'] {
  const refused = refusedReply(error, name)
  if (refused !== null) return refused
  const code = error.code === 'tool_timed_out' ? 'unavailable' : 'internal'
  return { kind: 'result', result: errorResult(code, error.message) }
}

/** The reply to a call that was refused, whatever the tool; null for a failure of the tool itself. */
function refusedReply(error: ApiError, name: string): GovernedReply['reply'] | null {
  const { code, kind, message, details } = error
  if (code === 'tool_not_allowed') return unknownTool(name)
  // Terminal: a repeated call has the same answer (interface: Errors, MCP gateway).
  if (code?.startsWith('dlp_')) return serverError(code, message, details)
  return kind === 'rate_limited' || kind === 'forbidden' ? { kind: 'refusal', error } : null
}

const serverError = (reason: string, message: string, data: Record<string, unknown> = {}): Reply =>
  failure({ code: CODES.serverError, message, data: { reason, ...data }, auditCode: reason })
