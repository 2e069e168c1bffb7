/**
 * The one door to a model, in three steps: a call is admitted (planned, allowed, opened in the ledger with its
 * reservation), sent (over its routes, inspected and metered), and settled by its sender. No other module reaches a
 * provider.
 */
import type { PolicyDeps } from '../governance/dlp/policy/policy-for-call.ts'
import {
  admit,
  type CallerRights,
  type GovernedCall,
  type Refused,
  refuse,
} from '../governance/governed-call.ts'
import type { RenewDeps } from '../governance/identity/identify.ts'
import { MOST_ADMISSIONS, renewRights, withCatalogue } from '../governance/renew-rights.ts'
import { modelTarget } from '../governance/target.ts'
import { ApiError } from '../lib/api-error.ts'
import { outcomeOfSent } from './calls/call-outcome.ts'
import { estimatedCharge, inputUsage } from './calls/charges.ts'
import type { AdmittedCall, ModelRequest, PlannedCall, SentCall } from './calls/model-call.ts'
import { planCall, type RequestReview } from './calls/plan-call.ts'
import { type CatalogDeps, loadCatalog } from './catalog/catalog.ts'
import { answerTokenCount } from './count-tokens.ts'
import { OPERATIONS } from './operations.ts'
import { BufferedResponses } from './relay/buffered-responses.ts'
import { beginInTime } from './relay/early-stream.ts'
import { type HttpAnswerDeps, httpAnswer } from './relay/http-answer.ts'
import { type FailoverDeps, longestFailover, sendWithFailover } from './routes/failover.ts'

export type ModelDeps = FailoverDeps & CatalogDeps & PolicyDeps & RenewDeps & HttpAnswerDeps

/**
 * Plans a call and admits it. When the ledger reports the rights or the catalogue as stale, both are read anew and the
 * call is planned again.
 * @returns the open call, which its holder has to settle, or a refusal that is recorded.
 * @throws the error of Postgres or the ledger when they cannot be reached: nothing may be sent then.
 */
export async function admitModelCall(
  deps: ModelDeps,
  request: ModelRequest,
): Promise<AdmittedCall | Refused> {
  let catalog = await loadCatalog(deps)
  let rights: CallerRights = { principal: request.principal, catalogueEpoch: catalog.epoch, learned: null }
  let review: RequestReview | null = null
  for (let admissions = 0; admissions < MOST_ADMISSIONS; admissions++) {
    const plan = await planCall(deps, request, rights, catalog, review)
    review = plan.review
    const admission =
      plan.kind === 'refused'
        ? await refuse(deps, { ...request, rights }, plan.error, plan)
        : await admit(deps, { ...request, ...reservationOf(deps, plan), rights })
    if (admission.kind === 'refused') return admission
    if (admission.kind === 'admitted' && plan.kind === 'planned') {
      return { ...admission, planned: plan }
    }
    if (admission.kind === 'stale') {
      const renewed = await renewRights(deps, rights, admission)
      catalog = await loadCatalog(deps, renewed.catalogueEpoch ?? undefined)
      rights = withCatalogue(renewed, catalog.epoch)
    }
  }
  throw new ApiError('internal', 'The rights of the caller keep changing.')
}

/** The reservation of a call, its lease, and the settlement of a call that is never closed: its input. */
function reservationOf(
  { configuration }: ModelDeps,
  { request, model, outline, routes, basis }: PlannedCall,
) {
  const { outputLimit, generates } = OPERATIONS[request.operation]
  const costs = generates && request.isSent !== false
  const { usage, cost } = estimatedCharge(basis, inputUsage(basis))
  const longest = longestFailover(configuration, outline.stream, routes.length)
  return {
    target: modelTarget(model.id),
    reserve: costs ? basis.bounds.reserve : 0,
    // Every route may use its whole time before the first event.
    leaseMilliseconds: longest + configuration.LEDGER_LEASE_MS,
    estimate:
      usage && request.isSent !== false ? { provider: routes[0]?.provider.name ?? '', usage, cost } : null,
    advice: `Lower ${outputLimit}`,
  }
}

/**
 * Sends an admitted call over its routes and makes the answer for its caller. A stream begins after STREAM_COMMIT_MS at
 * the latest.
 * @param signal fires when the caller leaves, which ends the call.
 * @returns never throws. `outcome` is to be settled; of a stream it resolves at the end.
 */
export function sendModelCall(
  deps: ModelDeps,
  planned: PlannedCall,
  call: GovernedCall,
  signal: AbortSignal,
): Promise<SentCall> {
  const sending = sendOverRoutes(deps, planned, call, signal)
  return planned.outline.stream ? beginInTime(deps, planned.request.operation, sending) : sending
}

async function sendOverRoutes(
  deps: ModelDeps,
  planned: PlannedCall,
  call: GovernedCall,
  signal: AbortSignal,
): Promise<SentCall> {
  if (planned.routes.length === 0) return answerTokenCount(deps, planned, call, signal)
  const buffered = new BufferedResponses()
  try {
    const sent = await sendWithFailover(deps, planned, call, { signal, form: 'http', buffered })
    const answered = await httpAnswer(deps, planned, sent, { signal, buffered })
    return { ...answered, outcome: outcomeOfSent(deps, planned, call, sent) }
  } finally {
    buffered.release()
  }
}
