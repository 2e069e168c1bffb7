import type { MiddlewareHandler } from 'hono'
import { identify } from '../../governance/identity/identify.ts'
import { ApiError } from '../../lib/api-error.ts'
import type { AppContext, AppEnv } from '../context.ts'
import { KEY_HEADERS, type KeyHeader } from '../surfaces.ts'

/** Finds the principal behind the key of a request (interface: Authentication). No fallback after a failed check. */
export function authenticate(): MiddlewareHandler<AppEnv> {
  return async function authenticateMiddleware(context, next) {
    const { actor } = context.get('call')
    const key = presentedKey(context, KEY_HEADERS[context.get('host')][context.get('surface')] ?? [])
    if (key === null) throw refuse(context)
    const identification = await identify(context.get('deps'), key, { address: actor.ip })
    if (identification.kind === 'refused') {
      refusedBy(context, identification.owner)
      throw refuse(context)
    }
    context.set('presentedKey', key)
    context.set('principal', identification.principal)
    actor.userId = identification.principal.userId
    actor.keyId = identification.principal.keyId
    await next()
  }
}

/**
 * The key a request carries, in the first accepted form that is present. `Authorization` decides alone as soon as it
 * is there, however malformed.
 */
function presentedKey(context: AppContext, accepted: readonly KeyHeader[]): string | null {
  const authorization = context.req.raw.headers.get('authorization')
  if (authorization !== null) return /^Bearer +([^\s]+) *$/i.exec(authorization)?.[1] ?? null
  const other = accepted.find((name) => name !== 'authorization')
  return (other && context.req.header(other)?.trim()) || null
}

/** Notes whose key was refused, so that the refusal stands in that organization's audit. */
export function refusedBy(
  context: AppContext,
  owner: { organizationId: string; userId: string; keyId: string } | null,
): void {
  if (!owner) return
  context.set('refusedKeyOrganizationId', owner.organizationId)
  const { actor } = context.get('call')
  actor.userId = owner.userId
  actor.keyId = owner.keyId
}

/** The refusal, counted by address and minute when no organization can be told. */
export function refuse(context: AppContext): ApiError {
  if (context.var.refusedKeyOrganizationId === undefined) {
    const { deps, call, surface } = context.var
    deps.waitUntil(deps.countRejectedCall({ ip: call.actor.ip ?? 'unknown', at: call.startedAt, surface }))
  }
  return new ApiError('unauthorized', 'A valid API key is required.')
}
