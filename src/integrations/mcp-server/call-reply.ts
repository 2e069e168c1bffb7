import type { ToolAnswer } from '../../calls/call-tool.ts'
import { renderFailure, type ToolFailure } from '../../calls/tool-failure.ts'
import type { ApiError } from '../../lib/api-error.ts'
import type { UsedConnection } from '../call-integration-tool.ts'
import { errorContent, errorResult, type PlatformTool } from '../platform-tools/platform-tool.ts'
import { disabledTool, unknownTool } from './find-callable-tool.ts'
import { CODES, failure, type RpcReply } from './json-rpc.ts'

/** `refusal`: an error that answers the whole request, such as a limit. */
export type CallReply = RpcReply | { kind: 'refusal'; error: ApiError }

/** The tool that was called. `isDelegated`: by a tool of the platform, whose form its errors have then. */
type CalledTool =
  | { kind: 'platform'; tool: Pick<PlatformTool<never>, 'name' | 'hints'> }
  | { kind: 'integration'; name: string; isDelegated: boolean }

/** The keys of `_meta` that name the connection which a call used, and how it was chosen. */
const CONNECTION_KEY = 'service.dev/connection-id'
const CHOICE_KEY = 'service.dev/connection-choice'

/** The reply with the answer of a tool. @param used null for a tool without a connection. */
export function answerReply(
  { members }: Pick<ToolAnswer, 'members'>,
  used: UsedConnection | null,
): CallReply {
  if (used === null) return { kind: 'result', result: members }
  const own = { [CONNECTION_KEY]: used.connection.id, [CHOICE_KEY]: used.chosenBy }
  const meta = members._meta as Record<string, unknown> | undefined
  return { kind: 'result', result: { ...members, _meta: { ...meta, ...own } } }
}

/** The reply to a call without an answer of its tool (interface: Errors, MCP gateway). */
export function failureReply(failed: ToolFailure, called: CalledTool): CallReply {
  const { errorCode, message, mcp } = renderFailure(failed)
  const name = called.kind === 'platform' ? called.tool.name : called.name
  switch (mcp.form) {
    case 'http_error':
      return { kind: 'refusal', error: mcp.error }
    case 'unknown_tool':
      return unknownTool(name)
    case 'disabled_tool':
      return disabledTool(name)
    case 'server_error':
      return serverError(errorCode, message, mcp.data)
    case 'tool_error':
      return called.kind === 'platform'
        ? platformError(failed, message, called.tool)
        : toolError(mcp.code ?? errorCode, message, mcp.more, called.isDelegated)
  }
}

/** A repeated call has the same answer (interface: Errors, MCP gateway). */
const serverError = (reason: string, message: string, data: Record<string, unknown> = {}): RpcReply =>
  failure({ code: CODES.serverError, message, data: { reason, ...data }, auditCode: reason })

function toolError(
  code: string,
  message: string,
  more: Record<string, unknown> | undefined,
  isDelegated: boolean,
): RpcReply {
  const result = isDelegated
    ? errorResult(code, message, more)
    : { content: errorContent(code, message, more), isError: true }
  return { kind: 'result', result }
}

/** Errors of the platform's tools have codes of their own (interface: Errors, MCP gateway, Tool level). */
function platformError(
  { kind }: ToolFailure,
  message: string,
  { hints }: Pick<PlatformTool<never>, 'hints'>,
): RpcReply {
  const code = kind === 'timed_out' ? 'unavailable' : 'internal'
  // A tool with effects may have had them.
  const retryable = (hints.readOnlyHint || hints.idempotentHint === true) && kind !== 'result_too_large'
  return { kind: 'result', result: errorResult(code, message, { retryable }) }
}
