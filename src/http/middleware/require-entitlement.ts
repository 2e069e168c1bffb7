import type { MiddlewareHandler } from 'hono'
import type { Entitlement } from '../../identity/principal.ts'
import { ApiError } from '../../lib/api-error.ts'
import type { AppEnv } from '../context.ts'

const NAMES: Record<Entitlement, string> = {
  personal_api_key_access: 'Personal API Key Access',
  auditor: 'Auditor',
  billing: 'Billing',
  security: 'Security',
  operator: 'Operator',
}

/** Refuses a caller whose user does not have an entitlement (interface: Authentication 4). */
export function requireEntitlement(entitlement: Entitlement): MiddlewareHandler<AppEnv> {
  return async function requireEntitlementMiddleware(context, next) {
    const { principal } = context.get('rights')
    if (!principal.entitlements.includes(entitlement)) {
      const message = `The user of this API key does not have the entitlement ${NAMES[entitlement]}.`
      throw new ApiError('forbidden', message, { code: 'entitlement_missing' })
    }
    await next()
  }
}
