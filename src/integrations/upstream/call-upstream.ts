import { type CallToolResult, ProtocolError, type Tool } from '@modelcontextprotocol/client'
import { redactJson } from '../../lib/secret-spellings.ts'
import type { CatalogueTool, OperationBinding, UpstreamCredential, UpstreamToolResult } from '../types.ts'
import { callOperation } from './call-operation.ts'
import { openMcpSession } from './mcp-session.ts'
import { UpstreamError } from './upstream-fetch.ts'

export interface UpstreamDeps {
  configuration: { EGRESS_ALLOW: readonly string[] }
  waitUntil: (work: Promise<unknown>) => void
}

interface UpstreamCall {
  tool: CatalogueTool
  arguments: Record<string, unknown>
  credential: UpstreamCredential
  signal: AbortSignal
}

/** Bytes of the answers to one call. The result is limited again, as JSON, by `callTool`. */
const MOST_ANSWER_BYTES = 4 * 1024 * 1024
/** `callTool` has a time limit of its own. */
const TIME_LIMIT_MS = 120_000
const LONGEST_ERROR = 2_000

/**
 * Calls a tool of an upstream, once: a call that may have been executed is never repeated. An error that the upstream
 * states is a result with `isError`, for the model to read. Secrets of the credential are cut out of the result.
 * @throws CredentialsUnavailable when the upstream refuses the credential; UpstreamError when it cannot be reached, breaks
 * off, or sends what is not valid; the reason of the signal.
 */
export async function callUpstream(deps: UpstreamDeps, call: UpstreamCall): Promise<UpstreamToolResult> {
  const result = call.tool.binding ? await callApi(deps, call, call.tool.binding) : await callMcp(deps, call)
  return redactJson(result, call.credential)
}

async function callApi(
  deps: UpstreamDeps,
  { tool, arguments: given, credential, signal }: UpstreamCall,
  binding: OperationBinding,
): Promise<UpstreamToolResult> {
  const { url } = tool.integration
  const allow = deps.configuration.EGRESS_ALLOW
  const mostBytes = MOST_ANSWER_BYTES
  try {
    return await callOperation({ url, binding, arguments: given, allow, credential, mostBytes, signal })
  } catch (error) {
    throw signal.aborted ? signal.reason : error
  }
}

async function callMcp(deps: UpstreamDeps, call: UpstreamCall): Promise<UpstreamToolResult> {
  const { tool, credential, signal } = call
  const session = await openMcpSession({
    url: tool.integration.url,
    allow: deps.configuration.EGRESS_ALLOW,
    credential,
    protocol: tool.protocol,
    mostBytes: MOST_ANSWER_BYTES,
    timeLimit: TIME_LIMIT_MS,
    signal,
  })
  try {
    const request = { name: tool.definition.name, arguments: call.arguments }
    // Headers that a schema declares come from the pinned definition; what a result has is for its reader to check.
    const toolDefinition = { ...tool.definition, outputSchema: undefined } as unknown as Tool
    const options = { signal, timeout: TIME_LIMIT_MS, toolDefinition }
    return passedResult(await session.client.callTool(request, options))
  } catch (error) {
    if (error instanceof ProtocolError) return statedError(error)
    throw session.failureOf(error)
  } finally {
    deps.waitUntil(session.close())
  }
}

/** `resultType` belongs to the exchange with the upstream. */
function passedResult(result: CallToolResult): UpstreamToolResult {
  const { resultType, ...rest } = result as CallToolResult & { resultType?: string }
  if (resultType !== undefined && resultType !== 'complete') {
    throw new UpstreamError('The upstream of the integration requires input that calls cannot give.')
  }
  return rest as UpstreamToolResult
}

/** An error of JSON-RPC, which says why the call cannot be made. */
function statedError({ code, message }: ProtocolError): UpstreamToolResult {
  const text = `The upstream refused the call (${code}): ${message.slice(0, LONGEST_ERROR)}`
  return { content: [{ type: 'text', text }], isError: true }
}
