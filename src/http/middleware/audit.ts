import type { MiddlewareHandler } from 'hono'
import ipaddr from 'ipaddr.js'
import { emptyOutcome, openingOf } from '../../gateway/call-record.ts'
import { newId } from '../../lib/ids.ts'
import { errorText, logEvent, redactEncoded } from '../../lib/log.ts'
import type { AppContext, AppEnv } from '../context.ts'
import { renderError } from '../errors.ts'

/**
 * One audit record for every call, whatever ends it. A model call is recorded by the ledger that opened it; every
 * other call whose organization is known is recorded here before the answer leaves.
 */
export function audit(): MiddlewareHandler<AppEnv> {
  return async function auditMiddleware(context, next) {
    context.set('call', {
      callId: newId('call'),
      requestId: context.get('requestId'),
      startedAt: context.get('startedAt'),
      actor: { userId: null, keyId: null, administrator: null, ip: callerAddress(context) },
      surface: context.get('surface'),
      // Ids in a path come from callers, and may be a key that was pasted into the wrong place.
      action: redactEncoded(`${context.req.method} ${context.req.path}`.slice(0, 300)),
      modelId: null,
      flags: [],
      opened: false,
    })
    await next()
    await recordCall(context)
  }
}

/** Cloudflare sets the header itself and drops what a caller sends under this name. */
export function callerAddress(context: AppContext): string | null {
  const address = context.req.header('cf-connecting-ip')
  // Without the platform's edge anybody can send it, and it becomes part of an index.
  return address !== undefined && ipaddr.isValid(address) ? address : null
}

async function recordCall(context: AppContext): Promise<void> {
  const call = context.get('call')
  if (call.opened) return
  const { deps, errorCode, principal, refusedKeyOrganizationId } = context.var
  const organizationId = principal?.organizationId ?? refusedKeyOrganizationId
  if (organizationId === undefined) return
  const outcome = emptyOutcome(call, deps.clock(), context.res.status, errorCode)
  try {
    await deps.ledgerOf(organizationId).record(openingOf(call, organizationId), outcome)
  } catch (error) {
    logEvent('error', 'audit_failed', { request_id: call.requestId, error: errorText(error) })
    // An answer that gave something may not go unrecorded; a refusal stays the refusal it is.
    if (context.res.status < 400) context.res = renderError(error, context)
  }
}
