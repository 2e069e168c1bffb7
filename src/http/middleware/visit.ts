import type { MiddlewareHandler } from 'hono'
import { ApiError } from '../../lib/api-error.ts'
import type { SharedLimit } from '../../lib/shared-limits.ts'
import { callerAddress } from '../caller-address.ts'
import type { AppEnv } from '../context.ts'
import { requireOwnPage } from '../session-cookies.ts'
import { countOrRefuse, countRejected } from './administer.ts'

/** Requests a minute of one address to what signs in, and of all callers whose address is unknown. */
const SIGN_INS: SharedLimit = { name: 'sign-ins', perMinute: 30 }
const SIGN_INS_FROM_ANYWHERE: SharedLimit = { name: 'sign-ins', perMinute: 600 }

/**
 * Admits anyone to the endpoints that sign in, from pages of this gateway and up to a limit. Refused attempts are counted in the
 * audit as calls without a key.
 * @throws ApiError `not_found` for a deployment without a management API; `forbidden` for a page of another site; `rate_limited`.
 */
export function visit(): MiddlewareHandler<AppEnv> {
  return async function visit(context, next) {
    if (context.get('deps').configuration.ADMIN_TOKEN === undefined) {
      throw new ApiError('not_found', 'Not found.', { code: 'not_found' })
    }
    const address = callerAddress(context)
    await countOrRefuse(context, address === null ? SIGN_INS_FROM_ANYWHERE : SIGN_INS, address ?? 'unknown')
    requireOwnPage(context)
    context.set('managementCaller', { kind: 'visitor' })
    await next()
    if (context.res.status === 401) countRejected(context)
  }
}
