import { admit, type CallerRights, type GovernanceDeps, type Refused, refuse } from '../governance/governed-call.ts'
import type { PolicyDeps } from '../governance/dlp/policy-for-call.ts'
import { MOST_ADMISSIONS, renewRights } from '../governance/renew-rights.ts'
import { modelTarget } from '../governance/target.ts'
import { ApiError } from '../lib/api-error.ts'
import { type CatalogDeps, loadCatalog } from './catalog/catalog.ts'
import { estimatedCharge, inputUsage } from './charges.ts'
import { type DispatchDeps, longestDispatch } from './dispatch.ts'
import type { AdmittedCall, ModelRequest, PlannedCall } from './model-call.ts'
import { OPERATIONS } from './operations.ts'
import { planCall } from './plan-call.ts'

export type AdmitDeps = GovernanceDeps &
  CatalogDeps &
  PolicyDeps &
  Parameters<typeof renewRights>[0] & { configuration: DispatchDeps['configuration'] }

/**
 * Plans a call and has it admitted. Plan and rights are those that the ledger knows to be current: where it calls them
 * stale, both are made anew.
 * @returns a refusal that is recorded, or the open call, which its holder has to settle.
 * @throws whatever Postgres or the ledger throws when they cannot be asked: nothing may be sent then.
 */
export async function admitModelCall(deps: AdmitDeps, request: ModelRequest): Promise<AdmittedCall | Refused> {
  let catalog = await loadCatalog(deps)
  let rights: CallerRights = {
    principal: request.principal,
    catalogueEpoch: catalog.epoch,
    learned: null,
  }
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
      const learned = { organization: renewed.principal.epoch, catalogue: catalog.epoch }
      rights = { principal: renewed.principal, catalogueEpoch: catalog.epoch, learned }
    }
  }
  throw new ApiError('internal', 'The rights of the caller keep changing.')
}

/** What is reserved for a call, for how long, and what is settled for it when it is never closed: its input. */
function reservationOf({ configuration }: AdmitDeps, { request, model, outline, candidates, basis }: PlannedCall) {
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
