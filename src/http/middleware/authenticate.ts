import type { Next } from 'hono'
import type { CallIdentity } from '../../governance/governed-call.ts'
import { identify, type KeyOwner, knownPrincipal } from '../../governance/identity/identify.ts'
import { countRefusedCall } from '../../governance/identity/refused-calls.ts'
import { keyIdOf, type Principal } from '../../governance/principal.ts'
import { ApiError } from '../../lib/api-error.ts'
import { counted } from '../../lib/counted.ts'
import { redactEncoded } from '../../lib/log.ts'
import { callerAddress } from '../caller-address.ts'
import type { AppContext } from '../context.ts'
import { KEY_HEADERS, type KeyHeader } from '../surfaces.ts'

/** Finds the principal by the key of a request (interface: Authentication). No fallback after a failed check. */
export async function authenticate(context: AppContext, next: Next): Promise<void> {
  const address = callerAddress(context)
  const key = presentedKey(context, KEY_HEADERS[context.get('host')][context.get('surface')] ?? [])
  const identification = key === null ? null : await identify(context.get('deps'), key, address)
  if (identification?.kind !== 'known') throw await refused(context, identification?.owner ?? null, address)
  setCaller(context, identification.principal, address)
  await next()
}

/**
 * Sets the principal of a request whose key this isolate knows to be valid.
 * @returns false for any other request: `authenticate` decides about it.
 */
export function recallCaller(context: AppContext): boolean {
  const accepted = KEY_HEADERS[context.get('host')][context.get('surface')]
  const key = accepted ? presentedKey(context, accepted) : null
  const principal = key === null ? null : knownPrincipal(context.get('deps'), key)
  if (principal === null) return false
  setCaller(context, principal, callerAddress(context))
  return true
}

function setCaller(context: AppContext, principal: Principal, address: string | null): void {
  const { organizationId, userId } = principal
  const identity = callIdentity(context, { userId, keyId: keyIdOf(principal) }, address)
  context.set('caller', { organizationId, identity })
  context.set('rights', { principal, catalogueEpoch: null, learned: null })
}

/** The key of a request, in the first accepted form that is present. If there is an `Authorization` header, only that counts. */
function presentedKey(context: AppContext, accepted: readonly KeyHeader[]): string | null {
  const authorization = context.req.raw.headers.get('authorization')
  if (authorization !== null) return /^Bearer +([^\s]+) *$/i.exec(authorization)?.[1] ?? null
  const other = accepted.find((name) => name !== 'authorization')
  return (other && context.req.header(other)?.trim()) || null
}

/** The refusal: recorded in the organization of the key, or counted by address and minute when that is unknown. */
async function refused(
  context: AppContext,
  owner: KeyOwner | null,
  address: string | null,
): Promise<ApiError> {
  const { deps, startedAt, surface } = context.var
  if (owner) {
    const { organizationId, userId, keyId } = owner
    const identity = callIdentity(context, { userId, keyId }, address)
    context.set('caller', { organizationId, identity })
    const retryAfterSeconds = await countRefusedCall(deps, owner)
    if (retryAfterSeconds > 0) {
      const message = `Too many calls with a key that is not valid. Try again in ${counted(retryAfterSeconds, 'second')}.`
      return new ApiError('rate_limited', message, { retryAfterSeconds })
    }
  } else {
    deps.waitUntil(deps.countRejectedCall({ ip: address ?? 'unknown', at: startedAt, surface }))
  }
  return new ApiError('unauthorized', 'A valid API key is required.')
}

/** The identity of a request whose caller is known. @param ip null when the address is unknown. */
export function callIdentity(
  context: AppContext,
  { userId, keyId }: { userId: string; keyId: string | null },
  ip: string | null,
): CallIdentity {
  const requestId = context.get('requestId')
  return {
    // The random part of the request's id, since a request is one call.
    callId: requestId.replace('req_', 'call_'),
    requestId,
    at: context.get('startedAt'),
    actor: { userId, keyId, administrator: null, ip },
    surface: context.get('surface'),
    // Redacted, because a key can be pasted in place of an id.
    action: redactEncoded(`${context.req.method} ${context.req.path}`.slice(0, 300)),
  }
}
