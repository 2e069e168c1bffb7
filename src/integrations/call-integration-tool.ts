/**
 * One call of a tool of an integration: connection, rights, policies, limits, credential, upstream. The MCP endpoint and
 * responses both call tools through it.
 */

import {
  callPreparedTool,
  type Preparation,
  TOOL_NOT_ALLOWED,
  type ToolAnswer,
  type ToolCallDeps,
  type ToolCallResult,
} from '../calls/call-tool.ts'
import type { CallIdentity } from '../calls/governed-call.ts'
import type { IntegrationTarget } from '../calls/target.ts'
import type { Principal } from '../identity/principal.ts'
import { ApiError, invalidRequest } from '../lib/api-error.ts'
import { type CredentialDeps, sendAuthorized } from './brokers/credentials.ts'
import { type CatalogDeps, findTool } from './catalog/tool-catalog.ts'
import { connectHint } from './connections/connect-url.ts'
import { resolveConnection } from './connections/resolve-connection.ts'
import { opaqueContent } from './opaque-content.ts'
import {
  type CatalogTool,
  type Connection,
  type ConnectionChoice,
  type ConnectionResolution,
  CredentialsUnavailable,
  type Integration,
  type UpstreamToolResult,
} from './types.ts'
import { callUpstream, type UpstreamDeps } from './upstream/call-upstream.ts'
import { UpstreamError } from './upstream/upstream-fetch.ts'

export type IntegrationCallDeps = ToolCallDeps & CatalogDeps & CredentialDeps & UpstreamDeps

export interface IntegrationCall {
  identity: CallIdentity
  principal: Principal
  tool: CatalogTool
  /** JSON, as the model or the client wrote it. */
  arguments: string
  /** The connection to use; null to choose one of the caller. */
  connectionId: string | null
  /** Whether the call counts against the limits, as a request of its own does. */
  counted?: boolean
  /** `CallRequest.creditsLeft`. */
  creditsLeft?: number | undefined
  /** Why a caller with renewed rights may not call at all; for surfaces that need a right of their own. */
  accessError?(principal: Principal): ApiError | null
}

/** The account with which a call was made. */
export interface UsedConnection {
  connection: Connection
  chosenBy: ConnectionChoice
}

export type IntegrationAnswer =
  /** `used`: null for an integration that needs no connection. */
  | { kind: 'completed'; result: UpstreamToolResult; used: UsedConnection | null }
  | {
      kind: 'connection_ambiguous'
      message: string
      candidates: ReadonlyArray<{ id: string; displayName: string }>
    }
  | { kind: 'connection_required'; message: string }
  /** The explicit connection does not exist for this caller, or belongs to another integration. */
  | { kind: 'connection_unknown'; message: string }
  /** `integrationId`: the public id. */
  | { kind: 'credentials_unavailable'; message: string; integrationId: string; hint: string }
  | { kind: 'uninspectable'; message: string; contentKind: string }
  | { kind: 'dlp_unavailable'; message: string }
  | { kind: 'dlp_blocked'; message: string }
  /** The tool was switched off, or is not the caller's any more: rights changed between finding and calling it. */
  | { kind: 'tool_disabled' }
  | { kind: 'tool_unknown' }
  /** A limit, the credits, or a right of the surface. */
  | { kind: 'refused'; error: ApiError }
  /** The upstream, or the gateway while it called it. `retryable`: nothing was executed. */
  | { kind: 'failed'; message: string; code: string; retryable: boolean }

export interface IntegrationCallResult
  extends Pick<ToolCallResult, 'principal' | 'closing' | 'arguments' | 'rateLimit'> {
  answer: IntegrationAnswer
}

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
export async function callIntegrationTool(
  deps: IntegrationCallDeps,
  call: IntegrationCall,
  signal: AbortSignal,
): Promise<IntegrationCallResult> {
  const { identity, principal, arguments: json, counted = false, creditsLeft } = call
  const request = { identity, principal, arguments: json, counted, creditsLeft, timeLimit: TIME_LIMIT_MS }
  // Of the last preparation, which is the one that is executed.
  let used: UsedConnection | null = null
  const prepare = async (current: Principal): Promise<Preparation> => {
    const prepared = await prepareCall(deps, call, current)
    used = 'used' in prepared ? prepared.used : null
    return prepared
  }
  const { answer, error, ...rest } = await callPreparedTool(deps, request, prepare, signal)
  const tagged = error === null ? completed(answer, used) : errorAnswer(error, call.tool)
  return { answer: tagged, ...rest }
}

/** Finds tool and connection for the rights of the caller. */
async function prepareCall(
  deps: IntegrationCallDeps,
  call: IntegrationCall,
  principal: Principal,
): Promise<Preparation & { used?: UsedConnection | null }> {
  const target = targetOf(call.tool, null)
  const refusal = call.accessError?.(principal)
  if (refusal) return { target, error: refusal }
  const tool = await currentTool(deps, call, principal)
  if (tool instanceof ApiError) return { target, error: tool }
  const resolution = await resolveConnection(deps, principal, tool.integration, call.connectionId)
  if (resolution.kind !== 'none' && resolution.kind !== 'connection') {
    return { target, error: resolutionError(resolution, tool) }
  }
  const used = resolution.kind === 'none' ? null : resolution
  const connection = used?.connection ?? null
  return {
    target: targetOf(tool, connection?.id ?? null),
    price: tool.integration.price,
    longestResult: LONGEST_RESULT,
    opaqueContent,
    execute: (json, _principal, stop) => execute(deps, tool, connection, json, stop),
    used,
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
): Promise<CatalogTool | ApiError> {
  const found = await findTool(deps, current, tool.name)
  if (found.kind === 'tool') return found.tool.hash === tool.hash ? found.tool : toolUnknown()
  return found.kind === 'disabled' ? toolDisabled() : toolUnknown()
}

const toolDisabled = () => invalidRequest('The tool is switched off.', 'tool_disabled')
const toolUnknown = () => invalidRequest('There is no such tool.', TOOL_NOT_ALLOWED)

const targetOf = (
  { name, integration, definition }: CatalogTool,
  connectionId: string | null,
): IntegrationTarget => ({
  kind: 'integration',
  id: name,
  slug: integration.slug,
  tool: definition.name,
  connectionId,
})

function resolutionError(
  resolution: Exclude<ConnectionResolution, { kind: 'none' | 'connection' }>,
  { integration }: CatalogTool,
): ApiError {
  const { displayName } = integration
  if (resolution.kind === 'unusable') return credentialsUnavailable(integration, resolution.connection)
  if (resolution.kind === 'unknown') {
    const message = `The connection does not exist, or is none of ${displayName}.`
    return invalidRequest(message, 'connection_unknown')
  }
  if (resolution.kind === 'required') {
    return invalidRequest(connectHint(integration, null), 'connection_required')
  }
  const message = `You have several connections to ${displayName}, and none is your default.`
  const { candidates } = resolution
  return new ApiError('invalid_request', message, { code: 'connection_ambiguous', details: { candidates } })
}

function credentialsUnavailable(integration: Integration, connection: Connection | null): ApiError {
  const message = `The credentials of the connection to ${integration.displayName} were revoked or have expired.`
  const details = { hint: connectHint(integration, connection) }
  return new ApiError('upstream', message, { code: 'credentials_unavailable', details })
}

/** Calls the upstream. */
async function execute(
  deps: IntegrationCallDeps,
  tool: CatalogTool,
  connection: Connection | null,
  json: string,
  signal: AbortSignal,
): Promise<ToolAnswer> {
  const { integration } = tool
  const input = JSON.parse(json) as Record<string, unknown>
  try {
    return await sendAuthorized(deps, integration, connection, async (credential) =>
      answerOf(await callUpstream(deps, { tool, arguments: input, credential, signal })),
    )
  } catch (error) {
    if (!(error instanceof CredentialsUnavailable)) throw error
    throw credentialsUnavailable(integration, connection)
  }
}

/** Members of `_meta` that are of this service, or of its exchange with an upstream: an upstream cannot set them. */
const RESERVED_META = /^(service\.dev|io\.modelcontextprotocol)\//

/** The result of an upstream, with a text of structured content that has none: models and older clients read texts. */
function answerOf({ _meta: meta, ...result }: UpstreamToolResult): ToolAnswer {
  const own = Object.entries(meta ?? {}).filter(([key]) => !RESERVED_META.test(key))
  const { structuredContent } = result
  const lacksText = structuredContent !== undefined && result.content.length === 0
  const content = lacksText ? [{ type: 'text', text: JSON.stringify(structuredContent) }] : result.content
  const members = { ...result, content, ...(own.length > 0 && { _meta: Object.fromEntries(own) }) }
  return { status: result.isError === true ? 'failed' : 'completed', members }
}

const completed = ({ members }: ToolAnswer, used: UsedConnection | null): IntegrationAnswer => ({
  kind: 'completed',
  result: members as unknown as UpstreamToolResult,
  used,
})

function errorAnswer(error: ApiError, { integration }: CatalogTool): IntegrationAnswer {
  const { code, message, details, kind } = error
  if (kind === 'rate_limited') return { kind: 'refused', error }
  switch (code) {
    case 'tool_disabled':
      return { kind: 'tool_disabled' }
    case TOOL_NOT_ALLOWED:
      return { kind: 'tool_unknown' }
    case 'connection_ambiguous':
      return { kind: code, message, candidates: (details?.candidates ?? []) as never }
    case 'connection_required':
    case 'connection_unknown':
    case 'dlp_unavailable':
    case 'dlp_blocked':
      return { kind: code, message }
    case 'credentials_unavailable':
      return { kind: code, message, integrationId: integration.slug, hint: String(details?.hint) }
    case 'dlp_uninspectable_content':
      return { kind: 'uninspectable', message, contentKind: String(details?.contentKind) }
  }
  if (kind === 'forbidden') return { kind: 'refused', error }
  const retryable = error instanceof UpstreamError && !error.mayBeExecuted
  return { kind: 'failed', message, code: code ?? 'internal_error', retryable }
}
