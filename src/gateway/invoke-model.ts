/**
 * The one door to a model, in three steps: a call is admitted (planned, allowed, paid for, opened in the ledger), sent
 * (over its routes, inspected and metered on the way back), and settled by whoever sent it. No other module reaches a
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
import { planCall } from './calls/plan-call.ts'
import { type CatalogDeps, loadCatalog } from './catalog/catalog.ts'
import { answerTokenCount } from './count-tokens.ts'
import { OPERATIONS } from './operations.ts'
import { BufferedResponses } from './relay/buffered-responses.ts'
import { type HttpAnswerDeps, httpAnswer } from './relay/http-answer.ts'
import { Affinity, type AffinityDeps } from './routes/affinity.ts'
import { type DispatchDeps, dispatch, longestDispatch } from './routes/failover.ts'

export type ModelDeps = DispatchDeps & CatalogDeps & PolicyDeps & RenewDeps & AffinityDeps & HttpAnswerDeps

/**
 * Plans a call and has it admitted. Plan and rights are those that the ledger knows to be current: where it calls them
 * stale, both are made anew.
 * @returns the open call, which its holder has to settle, or a refusal that is recorded.
 * @throws whatever Postgres or the ledger throws when they cannot be asked: nothing may be sent then.
 */
export async function admitModelCall(
  deps: ModelDeps,
  request: ModelRequest,
): Promise<AdmittedCall | Refused> {
  let catalog = await loadCatalog(deps)
  let rights: CallerRights = { principal: request.principal, catalogueEpoch: catalog.epoch, learned: null }
  for (let admissions = 0; admissions < MOST_ADMISSIONS; admissions++) {
    const plan = await planCall(deps, request, rights, catalog)
    const admission =
      plan.kind === 'refused'
        ? await refuse(deps, { ...request, rights }, plan.error, plan)
        : await admit(deps, { ...request, ...reservationOf(deps, plan), rights })
    if (admission.kind === 'refused') return admission
    if (admission.kind === 'admitted' && plan.kind === 'planned') {
      return { kind: 'admitted', planned: plan, call: admission.call }
    }
    if (admission.kind === 'stale') {
      const renewed = await renewRights(deps, rights, admission)
      catalog = await loadCatalog(deps, renewed.catalogueEpoch ?? undefined)
      rights = withCatalogue(renewed, catalog.epoch)
    }
  }
  throw new ApiError('internal', 'The rights of the caller keep changing.')
}

/** What is reserved for a call, for how long, and what is settled for it when it is never closed: its input. */
function reservationOf(
  { configuration }: ModelDeps,
  { request, model, outline, candidates, basis }: PlannedCall,
) {
  const { outputLimit, generates } = OPERATIONS[request.operation]
  const { usage, cost } = estimatedCharge(basis, inputUsage(basis))
  const longest = longestDispatch(configuration, outline.stream, candidates.length)
  return {
    target: modelTarget(model.id),
    reserve: generates ? basis.bounds.reserve : 0,
    // Every route may use its whole time before the first event.
    leaseMilliseconds: longest + configuration.LEDGER_LEASE_MS,
    estimate: usage && { provider: candidates[0]?.provider.name ?? '', usage, cost },
    advice: `Lower ${outputLimit}`,
  }
}

/**
 * Sends an admitted call over its routes and makes its caller's answer of what comes back.
 * @param signal fires when the caller leaves, which ends the call.
 * @returns never throws. `outcome` is to be settled; of a stream it comes with its end.
 */
export async function sendModelCall(
  deps: ModelDeps,
  planned: PlannedCall,
  call: GovernedCall,
  signal: AbortSignal,
): Promise<SentCall> {
  if (planned.candidates.length === 0) return answerTokenCount(deps, planned, call, signal)
  const answers = new BufferedResponses()
  try {
    const affinity = affinityOf(deps, planned)
    const sent = await dispatch(deps, planned, call, { signal, form: 'http', affinity, answers })
    const outcome = outcomeOfSent(deps, planned, call, sent)
    return { ...httpAnswer(deps, planned, sent, { signal, answers }), outcome }
  } finally {
    answers.release()
  }
}

/** Where the conversation of a call belongs. Counting tokens uses no prompt cache. */
export function affinityOf(
  deps: AffinityDeps,
  { request, candidates, model, outline }: PlannedCall,
): Affinity | null {
  if (!OPERATIONS[request.operation].generates) return null
  const { organizationId } = request.principal
  const { headers } = request
  return Affinity.begin(deps, candidates, { organizationId, modelId: model.id, headers, outline })
}
