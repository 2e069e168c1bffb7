import { hasScope, type Principal } from '../../identity/principal.ts'
import { ApiError } from '../../lib/api-error.ts'

/**
 * Why a caller may not use the MCP gateway (interface, Authentication 4); null if it may. Decided again when its rights were
 * renewed.
 */
export function mcpAccessError(principal: Principal): ApiError | null {
  if (!principal.entitlements.includes('personal_api_key_access')) {
    return forbidden(
      'The user of this API key does not have the entitlement Personal API Key Access.',
      'entitlement_missing',
    )
  }
  if (hasScope(principal, 'mcp')) return null
  return forbidden('This API key does not have the scope mcp.', 'scope_missing')
}

const forbidden = (message: string, code: string) => new ApiError('forbidden', message, { code })
