import type { ApiError } from '../../lib/api-error.ts'
import type { IntegrationAnswer, UsedConnection } from '../call-integration-tool.ts'
import { errorContent, errorResult, type PlatformTool } from '../platform-tools/platform-tool.ts'
import type { UpstreamToolResult } from '../types.ts'
import { disabledTool, unknownTool } from './find-callable-tool.ts'
import { CODES, failure, type Reply } from './json-rpc.ts'

/** `refusal`: an error that answers the whole request, such as a limit. */
export type CallReply = Reply | { kind: 'refusal'; error: ApiError }

/** The keys of `_meta` that name the connection which a call used, and how it was chosen. */
const CONNECTION_KEY = 'service.dev/connection-id'
const CHOICE_KEY = 'service.dev/connection-choice'

/**
 * The reply to a call of a tool of an integration (interface: Errors, MCP gateway).
 * @param name of the tool. @param isDelegated whether a tool of the platform called it, whose form its errors have then.
 */
export function integrationReply(answer: IntegrationAnswer, name: string, isDelegated: boolean): CallReply {
  const toolError = (code: string, message: string, more: Record<string, unknown> = {}): Reply => ({
    kind: 'result',
    result: isDelegated
      ? errorResult(code, message, more)
      : { content: errorContent(code, message, more), isError: true },
  })
  switch (answer.kind) {
    case 'completed':
      return { kind: 'result', result: { ...withConnection(answer.result, answer.used) } }
    case 'connection_ambiguous': {
      const connections = answer.candidates.map(({ id, displayName }) => ({ id, display_name: displayName }))
      const message = `${answer.message} Name one by platform_execute_tool, or set a default.`
      return toolError(answer.kind, message, { connections })
    }
    case 'connection_required':
      return toolError(answer.kind, answer.message)
    case 'connection_unknown':
      return toolError('not_found', answer.message)
    case 'credentials_unavailable': {
      const { kind: reason, message, integrationId, hint } = answer
      return serverError(reason, message, { integrationId, hint })
    }
    case 'uninspectable':
      return serverError('dlp_uninspectable_content', answer.message, { contentKind: answer.contentKind })
    case 'dlp_unavailable':
    case 'dlp_blocked':
      return serverError(answer.kind, answer.message)
    case 'tool_disabled':
      return disabledTool(name)
    case 'tool_unknown':
      return unknownTool(name)
    case 'refused':
      return { kind: 'refusal', error: answer.error }
    case 'failed':
      return toolError(answer.code, answer.message, { retryable: answer.retryable })
  }
}

/** The reply to a call of a tool of the platform that ended with an error. */
export function platformReply(
  error: ApiError,
  { name, hints }: Pick<PlatformTool<never>, 'name' | 'hints'>,
): CallReply {
  const { code, kind, message, details } = error
  if (code === 'tool_not_allowed') return unknownTool(name)
  if (code?.startsWith('dlp_')) return serverError(code, message, details)
  if (kind === 'rate_limited' || kind === 'forbidden') return { kind: 'refusal', error }
  const own = code === 'tool_timed_out' ? 'unavailable' : 'internal'
  // A tool with effects may have had them.
  const retryable = (hints.readOnlyHint || hints.idempotentHint === true) && code !== 'tool_result_too_large'
  return { kind: 'result', result: errorResult(own, message, { retryable }) }
}

/** A repeated call has the same answer (interface: Errors, MCP gateway). */
const serverError = (reason: string, message: string, data: Record<string, unknown> = {}): Reply =>
  failure({ code: CODES.serverError, message, data: { reason, ...data }, auditCode: reason })

function withConnection(result: UpstreamToolResult, used: UsedConnection | null): UpstreamToolResult {
  if (used === null) return result
  const { connection, chosenBy } = used
  const own = { [CONNECTION_KEY]: connection.id, [CHOICE_KEY]: chosenBy }
  return { ...result, _meta: { ...result._meta, ...own } }
}
