import type { MiddlewareHandler } from 'hono'
import { confirmCatalogueEpoch, confirmRights } from '../../governance/epochs.ts'
import { checkLimits, decideByNewLimits, haveSameLimits } from '../../governance/limits.ts'
import { ApiError } from '../../lib/api-error.ts'
import { counted } from '../../lib/counted.ts'
import type { AppEnv } from '../context.ts'
import { refuse, refusedBy } from './authenticate.ts'

/**
 * Counts the call against its organization and user, and on the same round trip confirms that the rights it was
 * identified with are still the current ones: a key that was revoked a moment ago fails here, and limits that were
 * changed hold.
 */
export function rateLimit(): MiddlewareHandler<AppEnv> {
  return async function rateLimitMiddleware(context, next) {
    const deps = context.get('deps')
    const principal = context.get('principal')
    const known = await checkLimits(deps, principal)
    if (known.degraded) context.get('call').flags.push('limits_degraded')
    const identification = await confirmRights(deps, context.get('presentedKey'), principal, known)
    if (identification.kind === 'refused') {
      refusedBy(context, identification.owner)
      throw refuse(context)
    }
    context.set('principal', identification.principal)
    const decision = haveSameLimits(principal, identification.principal)
      ? known
      : await decideByNewLimits(deps, known, identification.principal)
    if (!decision.allowed) {
      const whose = decision.scope === 'user' ? 'Your' : "Your organization's"
      const seconds = Math.max(1, decision.retryAfterSeconds)
      const told = `${whose} rate limit is reached. Try again in ${counted(seconds, 'second')}.`
      throw new ApiError('rate_limited', told, { retryAfterSeconds: seconds })
    }
    context.set('catalogueEpoch', await confirmCatalogueEpoch(deps, identification.principal, known))
    await next()
  }
}
