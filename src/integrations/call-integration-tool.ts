/**
 * One call of a tool of an integration: connection, rights, policies, limits, credential, upstream. The MCP endpoint and
 * responses both call tools through it.
 */

import {
  callPreparedTool,
  type Preparation,
  type ToolAnswer,
  type ToolCallDeps,
  type ToolCallResult,
} from '../calls/call-tool.ts'
import type { CallIdentity } from '../calls/governed-call.ts'
import type { IntegrationTarget } from '../calls/target.ts'
import type { ToolFailure } from '../calls/tool-failure.ts'
import type { Principal } from '../identity/principal.ts'
import { type CredentialDeps, sendAuthorized } from './brokers/credentials.ts'
import { findTool, type ToolCatalogueDeps } from './catalogue/tool-catalogue.ts'
import { connectHint } from './connections/connect-url.ts'
import { resolveConnection } from './connections/resolve-connection.ts'
import { opaqueContent } from './opaque-content.ts'
import {
  type CatalogueTool,
  type Connection,
  type ConnectionChoice,
  type ConnectionResolution,
  CredentialsUnavailable,
  type Integration,
  type UpstreamToolResult,
} from './types.ts'
import { callUpstream, type UpstreamDeps } from './upstream/call-upstream.ts'
import { UpstreamError } from './upstream/upstream-fetch.ts'

export type IntegrationCallDeps = ToolCallDeps & ToolCatalogueDeps & CredentialDeps & UpstreamDeps

interface IntegrationCall {
  identity: CallIdentity
  principal: Principal
  tool: CatalogueTool
  /** JSON, as the model or the client wrote it. */
  arguments: string
  /** The connection to use; null to choose one of the caller. */
  connectionId: string | null
  /** Whether the call counts against the limits, as a request of its own does. */
  counted?: boolean
  /** `CallRequest.creditsLeft`. */
  creditsLeft?: number | undefined
  /** Why a caller with renewed rights may not call at all; for surfaces that need a right of their own. */
  refusalOf?(principal: Principal): ToolFailure | null
}

/** The account with which a call was made. */
export interface UsedConnection {
  connection: Connection
  chosenBy: ConnectionChoice
}

/** `beside` the answer: null for an integration that needs no connection. */
type IntegrationCallResult = ToolCallResult<UsedConnection | null>

/** Milliseconds that a call of an upstream may take. */
const TIME_LIMIT_MS = 60_000
/** Bytes of a result as JSON: images are returned in base64. */
const LONGEST_RESULT = 8 * 1024 * 1024

/**
 * Calls a tool of an integration once. The result is inspected by the policies of the organization, and fails closed.
 * @returns the answer with the call for its holder to settle, as `callTool` does.
 * @throws ApiError unauthorized for a caller that may not call any more; what the ledger or Postgres throws: nothing was
 *   executed then.
 */
export function callIntegrationTool(
  deps: IntegrationCallDeps,
  call: IntegrationCall,
  signal: AbortSignal,
): Promise<IntegrationCallResult> {
  const { identity, principal, arguments: json, counted = false, creditsLeft } = call
  const request = { identity, principal, arguments: json, counted, creditsLeft, timeLimit: TIME_LIMIT_MS }
  return callPreparedTool(deps, request, (current) => prepareCall(deps, call, current), signal)
}

/** Finds tool and connection for the rights of the caller. */
async function prepareCall(
  deps: IntegrationCallDeps,
  call: IntegrationCall,
  principal: Principal,
): Promise<Preparation<UsedConnection | null>> {
  const target = targetOf(call.tool, null)
  const refusal = call.refusalOf?.(principal)
  if (refusal) return { target, failure: refusal }
  const tool = await currentTool(deps, call, principal)
  if ('kind' in tool) return { target, failure: tool }
  const resolution = await resolveConnection(deps, principal, tool.integration, call.connectionId)
  if (resolution.kind !== 'none' && resolution.kind !== 'connection') {
    return { target, failure: unresolved(resolution, tool) }
  }
  const used = resolution.kind === 'none' ? null : resolution
  return {
    target: targetOf(tool, used?.connection.id ?? null),
    price: tool.integration.price,
    longestResult: LONGEST_RESULT,
    opaqueContent,
    execute: (json, _principal, stop) => execute(deps, tool, used, json, stop),
  }
}

/**
 * The tool that was found before. A response may have offered it long ago: a model that read one definition does not call
 * another, even if that one is approved too.
 */
async function currentTool(
  deps: IntegrationCallDeps,
  { tool }: IntegrationCall,
  current: Principal,
): Promise<CatalogueTool | ToolFailure> {
  const found = await findTool(deps, current, tool.name)
  if (found.kind === 'tool' && found.tool.hash === tool.hash) return found.tool
  return { kind: found.kind === 'disabled' ? 'tool_disabled' : 'tool_unknown' }
}

const targetOf = (
  { name, integration, definition }: CatalogueTool,
  connectionId: string | null,
): IntegrationTarget => ({
  kind: 'integration',
  id: name,
  slug: integration.slug,
  tool: definition.name,
  connectionId,
})

function unresolved(
  resolution: Exclude<ConnectionResolution, { kind: 'none' | 'connection' }>,
  { integration }: CatalogueTool,
): ToolFailure {
  const { displayName } = integration
  if (resolution.kind === 'unusable') return credentialsUnavailable(integration, resolution.connection)
  if (resolution.kind === 'unknown') {
    const message = `The connection does not exist, or is none of ${displayName}.`
    return { kind: 'connection_unknown', message }
  }
  if (resolution.kind === 'required') {
    return { kind: 'connection_required', message: connectHint(integration, null) }
  }
  const message = `You have several connections to ${displayName}, and none is your default.`
  return { kind: 'connection_ambiguous', message, candidates: resolution.candidates }
}

const credentialsUnavailable = (integration: Integration, connection: Connection | null): ToolFailure => ({
  kind: 'credentials_unavailable',
  message: `The credentials of the connection to ${integration.displayName} were revoked or have expired.`,
  integrationId: integration.slug,
  hint: connectHint(integration, connection),
})

/** Calls the upstream. */
async function execute(
  deps: IntegrationCallDeps,
  tool: CatalogueTool,
  used: UsedConnection | null,
  json: string,
  signal: AbortSignal,
): Promise<ToolAnswer<UsedConnection | null> | ToolFailure> {
  const { integration } = tool
  const connection = used?.connection ?? null
  const input = JSON.parse(json) as Record<string, unknown>
  try {
    const result = await sendAuthorized(deps, integration, connection, (credential) =>
      callUpstream(deps, { tool, arguments: input, credential, signal }),
    )
    return { ...answerOf(result), beside: used }
  } catch (error) {
    if (error instanceof CredentialsUnavailable) return credentialsUnavailable(integration, connection)
    if (error instanceof UpstreamError) return { kind: 'failed', error, retryable: !error.mayBeExecuted }
    throw error
  }
}

/** Members of `_meta` that are of this service, or of its exchange with an upstream: an upstream cannot set them. */
const RESERVED_META = /^(service\.dev|io\.modelcontextprotocol)\//

/** The result of an upstream, with a text of structured content that has none: models and older clients read texts. */
function answerOf({ _meta: meta, ...result }: UpstreamToolResult): Pick<ToolAnswer, 'status' | 'members'> {
  const own = Object.entries(meta ?? {}).filter(([key]) => !RESERVED_META.test(key))
  const { structuredContent } = result
  const lacksText = structuredContent !== undefined && result.content.length === 0
  const content = lacksText ? [{ type: 'text', text: JSON.stringify(structuredContent) }] : result.content
  const members = { ...result, content, ...(own.length > 0 && { _meta: Object.fromEntries(own) }) }
  return { status: result.isError === true ? 'failed' : 'completed', members }
}
