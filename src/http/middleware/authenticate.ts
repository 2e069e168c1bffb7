import type { Next } from 'hono'
import type { CallIdentity } from '../../calls/governed-call.ts'
import { identify, type KeyOwner, knownPrincipal } from '../../identity/identify.ts'
import { keyIdOf, type Principal } from '../../identity/principal.ts'
import { countRefusedCall } from '../../identity/refused-calls.ts'
import { ApiError } from '../../lib/api-error.ts'
import { counted } from '../../lib/counted.ts'
import { redactEncoded } from '../../lib/log.ts'
import { callerAddress, storedAddress } from '../caller-address.ts'
import type { AppContext } from '../context.ts'
import { hasChosenText, recordedPath, withoutChosenTexts } from '../recorded-path.ts'
import { KEY_HEADERS, type KeyHeader } from '../surfaces.ts'

/** Finds the principal by the key of a request (interface: Authentication). No fallback after a failed check. */
export async function authenticate(context: AppContext, next: Next): Promise<void> {
  const address = callerAddress(context)
  const key = presentedKey(context, KEY_HEADERS[context.get('host')][context.get('surface')] ?? [])
  const identification = key === null ? null : await identify(context.get('deps'), key, address)
  if (identification?.kind !== 'known') throw await refused(context, identification?.owner ?? null)
  const { principal } = identification
  const { path } = context.req
  const recorded = hasChosenText(path) ? await recordedPath(context.get('deps'), principal, path) : path
  setCaller(context, principal, recorded)
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
  const { path } = context.req
  if (hasChosenText(path)) return false
  setCaller(context, principal, path)
  return true
}

/** @param path as it may be recorded. */
function setCaller(context: AppContext, principal: Principal, path: string): void {
  const { organizationId, userId } = principal
  const identity = callIdentity(context, { userId, keyId: keyIdOf(principal) }, path)
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
async function refused(context: AppContext, owner: KeyOwner | null): Promise<ApiError> {
  const { deps, startedAt, surface } = context.var
  if (owner) {
    const { organizationId, userId, keyId } = owner
    const identity = callIdentity(context, { userId, keyId })
    context.set('caller', { organizationId, identity })
    const retryAfterSeconds = await countRefusedCall(deps, owner)
    if (retryAfterSeconds > 0) {
      const message = `Too many calls with a key that is not valid. Try again in ${counted(retryAfterSeconds, 'second')}.`
      return new ApiError('rate_limited', message, { retryAfterSeconds })
    }
  } else {
    deps.waitUntil(
      deps.countRejectedCall({ ip: storedAddress(context) ?? 'unknown', at: startedAt, surface }),
    )
  }
  return new ApiError('unauthorized', 'A valid API key is required.')
}

/**
 * The identity of a request whose caller is known.
 * @param path as it may be recorded.
 */
export function callIdentity(
  context: AppContext,
  { userId, keyId }: { userId: string; keyId: string | null },
  path = withoutChosenTexts(context.req.path),
): CallIdentity {
  const requestId = context.get('requestId')
  return {
    // The random part of the request's id, since a request is one call.
    callId: requestId.replace('req_', 'call_'),
    requestId,
    at: context.get('startedAt'),
    actor: { userId, keyId, administrator: null, ip: storedAddress(context) },
    surface: context.get('surface'),
    // Redacted, because a key can be pasted in place of an id.
    action: redactEncoded(`${methodOf(context)} ${path}`.slice(0, 300)),
  }
}

/** A caller can make up a method as well. */
const methodOf = ({ req }: AppContext): string => (METHODS.has(req.method) ? req.method : 'OTHER')
const METHODS = new Set(['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'])
