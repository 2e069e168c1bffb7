import type { Next } from 'hono'
import { type CallOpening, outcomeOf } from '../../governance/audit-record.ts'
import { type CallRequest, refuse } from '../../governance/governed-call.ts'
import { MOST_ADMISSIONS, renewRights } from '../../governance/renew-rights.ts'
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
  if (isCounted && (await recordCounted(context, { identity, rights, counted: true }, error))) return
  await record(context, { ...identity, organizationId, modelId: null })
}

/**
 * Records the refused call of a valid key, which counts against the limits of its caller. A limit that is reached replaces
 * the answer.
 * @returns false where the caller has lost its rights meanwhile, or they cannot be read: nothing is recorded then.
 */
async function recordCounted(
  context: AppContext,
  request: Pick<CallRequest, 'identity' | 'rights' | 'counted'>,
  error: ApiError,
): Promise<boolean> {
  const { deps } = context.var
  let { rights } = request
  for (let admissions = 0; admissions < MOST_ADMISSIONS; admissions++) {
    const result = await refuse(deps, { ...request, rights }, error, { target: null })
    if (result.kind === 'refused') {
      context.set('rateLimit', result.rateLimit ?? null)
      if (result.error === error) setRateLimitHeaders(context)
      else context.res = renderError(result.error, context)
      return true
    }
    try {
      rights = await renewRights(deps, rights, result)
    } catch {
      return false
    }
  }
  return false
}

async function record(context: AppContext, opening: CallOpening): Promise<void> {
  const { deps, errorCode } = context.var
  const outcome = outcomeOf(opening, deps.clock(), { status: context.res.status, errorCode })
  try {
    await deps.ledgerOf(opening.organizationId, opening.shard).record(opening, outcome)
  } catch (error) {
    logEvent('error', 'audit_failed', { request_id: opening.requestId, error: errorText(error) })
    // A successful answer must not be sent without a record; a refusal is sent anyway.
    if (context.res.status < 400) context.res = renderError(error, context)
  }
}
