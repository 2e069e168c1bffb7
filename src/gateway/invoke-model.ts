/**
 * The one door to a model, in three steps: a call is admitted (planned, allowed, opened in the ledger with its
 * reservation), sent (over its routes, inspected and metered), and settled by its sender. No other module reaches a
 * provider.
 */

import {
  admit,
  type CallerRights,
  type GovernedCall,
  type Refused,
  refuse,
  type Stale,
} from '../calls/governed-call.ts'
import type { PolicyDeps } from '../calls/policy-for-call.ts'
import { withCatalogue, withCurrentRights } from '../calls/renew-rights.ts'
import { modelTarget } from '../calls/target.ts'
import type { RenewDeps } from '../identity/identify.ts'
import { outcomeOfSent } from './call-outcome.ts'
import { estimatedCharge, inputUsage } from './calls/charges.ts'
import type { AdmittedCall, ModelRequest, PlannedCall, SentCall } from './calls/model-call.ts'
import { planCall, type RequestReview } from './calls/plan-call.ts'
import {
  loadModelCatalogue,
  type ModelCatalogue,
  type ModelCatalogueDeps,
} from './catalogue/model-catalogue.ts'
import { answerTokenCount } from './count-tokens.ts'
import { type HttpAnswerDeps, httpAnswer } from './http-answer.ts'
import { OPERATIONS } from './protocols/operations.ts'
import { BufferedResponses } from './relay/buffered-responses.ts'
import { beginInTime } from './relay/early-stream.ts'
import { type FailoverDeps, sendWithFailover } from './upstreams/failover.ts'

export type ModelDeps = FailoverDeps & ModelCatalogueDeps & PolicyDeps & RenewDeps & HttpAnswerDeps

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
  const known = await loadModelCatalogue(deps)
  const rights = { principal: request.principal, catalogueEpoch: known.epoch, learned: null }
  return withCurrentRights(deps, rights, (current, outdated: OutdatedPlan | null) =>
    planAndAdmit(deps, request, current, outdated ? null : known, outdated?.review ?? null),
  )
}

/** A plan whose rights or catalogue are stale, with what it has read of the request's body. */
type OutdatedPlan = Stale & { review: RequestReview | null }

/** @param known the catalogue of the rights' epoch; null to load it. @param review what an earlier plan read of the body. */
async function planAndAdmit(
  deps: ModelDeps,
  request: ModelRequest,
  renewed: CallerRights,
  known: ModelCatalogue | null,
  review: RequestReview | null,
): Promise<AdmittedCall | Refused | OutdatedPlan> {
  const catalogue = known ?? (await loadModelCatalogue(deps, renewed.catalogueEpoch ?? undefined))
  const rights = withCatalogue(renewed, catalogue.epoch)
  const plan = await planCall(deps, request, rights, catalogue, review)
  if (plan.kind === 'refused') {
    const refused = await refuse(deps, { ...request, rights }, plan.error, plan)
    return refused.kind === 'stale' ? { ...refused, review: plan.review } : refused
  }
  const admission = await admit(deps, { ...request, ...reservationOf(deps, plan), rights })
  if (admission.kind === 'stale') return { ...admission, review: plan.review }
  return admission.kind === 'refused' ? admission : { ...admission, planned: plan }
}

/** The reservation of a call, its lease, and the settlement of a call that is never closed: its input. */
function reservationOf({ configuration }: ModelDeps, { request, model, routes, basis }: PlannedCall) {
  const { outputLimit, generates } = OPERATIONS[request.operation]
  const costs = generates && request.isSent !== false
  const { usage, cost } = estimatedCharge(basis, inputUsage(basis))
  return {
    target: modelTarget(model.id),
    reserve: costs ? basis.bounds.reserve : 0,
    leaseMilliseconds: configuration.LEDGER_LEASE_MS,
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
