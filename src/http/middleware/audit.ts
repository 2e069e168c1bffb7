import type { Next } from 'hono'
import type { CallRequest } from '../../calls/governed-call.ts'
import { refuseRequest } from '../../calls/refuse-request.ts'
import { type CallOpening, callOutcome } from '../../ledger/audit-record.ts'
import { ApiError } from '../../lib/api-error.ts'
import { errorText, logEvent } from '../../lib/log.ts'
import type { AppContext } from '../context.ts'
import { renderError } from '../errors.ts'
import { setRateLimitHeaders } from '../rate-limit-headers.ts'

/**
 * Makes sure that every call has one audit record. Calls that reach an admission are recorded with it; the others are
 * recorded here: a refused key of a known organization, a body that cannot be read, and internal errors.
 */
export async function audit(context: AppContext, next: Next): Promise<void> {
  await next()
  if (context.get('isRecorded')) return
  const { caller, rights } = context.var
  if (!caller) return
  const { identity, organizationId } = caller
  const { error } = context
  const isCounted = rights && error instanceof ApiError && error.kind !== 'rate_limited'
  if (isCounted && (await recordCounted(context, { identity, rights }, error))) return
  await record(context, { ...identity, organizationId, modelId: null })
}

/** @returns whether the refusal is recorded. A limit that is reached replaces the answer. */
async function recordCounted(
  context: AppContext,
  request: Pick<CallRequest, 'identity' | 'rights'>,
  error: ApiError,
): Promise<boolean> {
  const refused = await refuseRequest(context.var.deps, request, error)
  if (refused === null) return false
  context.set('rateLimit', refused.rateLimit ?? null)
  if (refused.error === error) setRateLimitHeaders(context)
  else context.res = renderError(refused.error, context)
  return true
}

async function record(context: AppContext, opening: CallOpening): Promise<void> {
  const { deps, errorCode } = context.var
  const outcome = callOutcome(opening, deps.clock(), { status: context.res.status, errorCode })
  try {
    await deps.ledgerOf(opening.organizationId, opening.shard).record(opening, outcome)
  } catch (error) {
    logEvent('error', 'audit_failed', { request_id: opening.requestId, error: errorText(error) })
    // A successful answer must not be sent without a record; a refusal is sent anyway.
    if (context.res.status < 400) context.res = renderError(error, context)
  }
}
