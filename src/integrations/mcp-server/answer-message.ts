import type { Principal } from '../../identity/principal.ts'
import type { ToolCatalogueDeps } from '../catalogue/tool-catalogue.ts'
import { CODES, type Era, failure, JsonMembers, type RpcReply } from './json-rpc.ts'
import { toolsPage } from './list-tools.ts'
import type { RpcMessage } from './read-message.ts'
import {
  discoverResult,
  initializeResult,
  SERVER_INFORMATION,
  SERVER_INFORMATION_KEY,
} from './server-information.ts'
import { visibleTools } from './visible-tools.ts'

/** The method whose request is a governed tool call; all others only read. */
export const TOOL_CALL = 'tools/call'

/**
 * Answers a request that only reads.
 * @param filter slugs of the integrations to which a list is narrowed; null for all.
 * @throws ApiError internal when the catalogue cannot be read.
 */
export async function answerMessage(
  deps: ToolCatalogueDeps,
  { era, method, params }: RpcMessage,
  principal: Principal,
  filter: readonly string[] | null,
): Promise<RpcReply> {
  if (method === 'tools/list') {
    return toolsPage(await visibleTools(deps, principal, filter), params.cursor, era)
  }
  if (era === 'modern') {
    return method === 'server/discover' ? resultOf(discoverResult()) : unknownMethod(method, 404)
  }
  if (method === 'initialize') return resultOf(initializeResult(params.protocolVersion))
  // MCP 2025-11-25, Ping. The revision of 2026-07-28 has none.
  if (method === 'ping') return resultOf({})
  return unknownMethod(method, 200)
}

const resultOf = (result: Record<string, unknown>): RpcReply => ({ kind: 'result', result })

/** @param status 404 by MCP 2026-07-28, Transports; 200 by the interface for the clients before it. */
const unknownMethod = (method: string, status: number): RpcReply =>
  failure({
    code: CODES.methodNotFound,
    message: `The method ${method.slice(0, 100)} is not supported.`,
    status,
    auditCode: 'method_not_found',
  })

/** Members of `_meta` that a result of 2026-07-28 has. */
const SERVER = { [SERVER_INFORMATION_KEY]: SERVER_INFORMATION }
const SERVER_TEXT = `"resultType":"complete","_meta":${JSON.stringify(SERVER)}`

/** The reply with the members that its era gives every result, and without those that it does not have. */
export function inEra(reply: RpcReply, era: Era): RpcReply {
  if (reply.kind === 'error') return reply
  const { result } = reply
  if (era === 'legacy') {
    return result instanceof JsonMembers ? reply : resultOf(withObjectOnly(result))
  }
  if (result instanceof JsonMembers) {
    return { kind: 'result', result: new JsonMembers(`${result.text},${SERVER_TEXT}`) }
  }
  const meta = { ...(result._meta as Record<string, unknown> | undefined), ...SERVER }
  return resultOf({ ...result, resultType: 'complete', _meta: meta })
}

/** Before 2026-07-28 structured content is an object; the text of the result has the same content. */
function withObjectOnly(result: Record<string, unknown>): Record<string, unknown> {
  const { structuredContent, ...rest } = result
  const isObject = typeof structuredContent === 'object' && structuredContent !== null
  return structuredContent === undefined || (isObject && !Array.isArray(structuredContent)) ? result : rest
}
