import { mcpAccessError } from '../integrations/mcp-server/mcp-access.ts'
import { ApiError } from '../lib/api-error.ts'
import { missingTypes } from './accepted-types.ts'
import type { AppContext } from './context.ts'
import { requireRoom } from './governed-body.ts'
import { ownOrigin } from './own-origin.ts'

/**
 * Refuses a request to the MCP endpoint by its caller and its headers, before its body is read.
 * @throws ApiError forbidden (interface, Authentication 4; MCP, Transports, Origin), unsupported_media_type, not_acceptable
 *   (interface: Errors, MCP gateway), and what `requireRoom` throws.
 */
export async function requireMcpRequest(context: AppContext): Promise<void> {
  if (mcpAccessError(context.var.rights.principal) !== null) {
    // The right may have been given a moment ago.
    await requireRoom(context)
    requireMcpAccess(context)
  }
  requireKnownOrigin(context)
  const type = context.req.header('content-type')?.split(';')[0]?.trim().toLowerCase()
  if (type !== 'application/json') {
    throw new ApiError('unsupported_media_type', 'The header Content-Type must be application/json.')
  }
  const missing = missingTypes(context.req.header('accept'), ['application/json', 'text/event-stream'])
  if (missing.length > 0) {
    throw new ApiError('not_acceptable', `The header Accept must list ${missing.join(' and ')}.`)
  }
}

/** Checks the rights of the moment, which an admission may have renewed. @throws ApiError forbidden */
export function requireMcpAccess(context: AppContext): void {
  const error = mcpAccessError(context.var.rights.principal)
  if (error !== null) throw error
}

/** A page of another origin must not use a key that a program on the same machine holds (MCP, Transports, Security). */
function requireKnownOrigin(context: AppContext): void {
  const origin = context.req.header('origin')
  if (origin === undefined) return
  const { CORS_ORIGINS: allowed } = context.var.deps.configuration
  if (origin === ownOrigin(context) || origin === new URL(context.req.url).origin || allowed.includes(origin))
    return
  const message = 'Pages of this origin may not call the MCP endpoint.'
  throw new ApiError('forbidden', message, { code: 'origin_not_allowed' })
}

/** Interface: MCP gateway. */
export const RESOURCE_METADATA_PATH = '/.well-known/oauth-protected-resource'

/** The challenge of a 401, which points to the endpoint's metadata (interface, Authentication 5; RFC 9728, 5.1). */
export const mcpChallenge = (context: AppContext): string =>
  `Bearer resource_metadata="${ownOrigin(context)}${RESOURCE_METADATA_PATH}"`
