import type { Next } from 'hono'
import { type CallOpening, outcomeOf } from '../../governance/audit-record.ts'
import { errorText, logEvent } from '../../lib/log.ts'
import type { AppContext } from '../context.ts'
import { renderError } from '../errors.ts'

/**
 * Makes sure that every call has one audit record. Calls that reach an admission are recorded with it; the others are
 * recorded here: a refused key of a known organization, and internal errors.
 */
export async function audit(context: AppContext, next: Next): Promise<void> {
  await next()
  if (context.get('isRecorded')) return
  const caller = context.get('caller')
  if (caller)
    await record(context, { ...caller.identity, organizationId: caller.organizationId, modelId: null })
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
