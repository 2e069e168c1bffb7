import { mayUse } from '../../governance/access.ts'
import type { CallOutcome } from '../../governance/audit-record.ts'
import { dlpBlocked } from '../../governance/dlp/policy/actions.ts'
import type { CallPolicy } from '../../governance/dlp/policy/call-policy.ts'
import { type PolicyDeps, policyFor } from '../../governance/dlp/policy/policy-for-call.ts'
import type { CallerRights } from '../../governance/governed-call.ts'
import { hasScope, type Principal } from '../../governance/principal.ts'
import { type CallTarget, modelTarget } from '../../governance/target.ts'
import { ApiError } from '../../lib/api-error.ts'
import { redact } from '../../lib/log.ts'
import type { Catalog, CatalogModel } from '../catalog/catalog.ts'
import { OPERATIONS, type Operation } from '../operations.ts'
import { inspectRequest } from '../protocols/request-inspection.ts'
import type { RequestOutline } from '../protocols/request-outline.ts'
import { type Candidate, someCandidate } from '../routes/call-routes.ts'
import { type RouteRequest, routeRequest } from '../routes/route-request.ts'
import { defaultCompletionTokens } from '../translation/requests/completions-to-chat.ts'
import { boundsOf } from './charges.ts'
import type { InspectedRequest, ModelRequest, PlannedCall } from './model-call.ts'

/** A request that may not be made, with what its audit record says of it. */
export interface RefusedPlan {
  kind: 'refused'
  error: ApiError
  target: CallTarget | null
  dlp: CallOutcome['dlp']
}

/**
 * Decides about a request all that can be decided without asking anybody: it is read, its model found and allowed, its
 * texts inspected under the policies in force, its cost bounded.
 * @throws ApiError internal when the policies cannot be read: nothing passes then.
 */
export async function planCall(
  deps: PolicyDeps,
  request: ModelRequest,
  rights: CallerRights,
  catalog: Catalog,
): Promise<({ kind: 'planned' } & PlannedCall) | RefusedPlan> {
  const { protocol } = OPERATIONS[request.operation]
  const outline = read(() => protocol.outline(request.body))
  if (outline instanceof ApiError) return refusal(outline, null)
  // Until the catalogue knows it, this is any text of the caller, a key pasted into the wrong place as well.
  const target = modelTarget(redact(outline.model))
  const model = read(() => allowedModel(catalog, rights.principal, request.operation, outline.model))
  if (model instanceof ApiError) return refusal(model, target)
  const candidates = read(() => someCandidate(model, request.operation))
  if (candidates instanceof ApiError) return refusal(candidates, target)
  const policy = await policyFor(deps, rights.principal, target)
  const inspected = read(() => inspect(outline, request.operation, policy))
  if (inspected instanceof ApiError) return refusal(inspected, target, policy)
  const known = { request, outline, model, inspected }
  const firstRequest = read(() => firstExpressible(known, candidates))
  if (firstRequest instanceof ApiError) return refusal(firstRequest, target, policy)
  const maximumOutput = maximumOutputOf(outline, request.operation, candidates, model)
  const basis = {
    prices: model.prices,
    bounds: boundsOf({ ...outline, maximumOutput }, model),
    requestBytes: outline.body.length,
    charged: OPERATIONS[request.operation].generates,
  }
  return { kind: 'planned', ...known, rights, candidates, policy, firstRequest, basis }
}

/** An ApiError is a decision here, which the caller records; all else is a fault. */
function read<Result>(decide: () => Result): Result | ApiError {
  try {
    return decide()
  } catch (error) {
    if (error instanceof ApiError) return error
    throw error
  }
}

/** @param policy under which the request was inspected; null when it was refused before. */
const refusal = (
  error: ApiError,
  target: CallTarget | null,
  policy: CallPolicy | null = null,
): RefusedPlan => ({
  kind: 'refused',
  error,
  target,
  dlp: policy && { policyVersion: policy.version, findings: policy.findings() },
})

function allowedModel(
  catalog: Catalog,
  principal: Principal,
  operation: Operation,
  modelId: string,
): CatalogModel {
  if (!hasScope(principal, 'models')) {
    throw new ApiError('forbidden', 'This API key does not have the scope models.', {
      code: 'model_access_denied',
    })
  }
  const model = catalog.models.get(modelId)
  if (!model) {
    const message = `The model ${printable(modelId)} does not exist. GET /v1/models lists the models you may use.`
    throw new ApiError(OPERATIONS[operation].unknownModel, message, { code: 'model_not_found' })
  }
  if (mayUse(principal, modelTarget(modelId))) return model
  const message = `Your organization has not granted you access to the model ${modelId}.`
  throw new ApiError('forbidden', message, { code: 'model_access_denied' })
}

/** Model ids come from callers: repeated short, without control characters and without what looks like a key. */
const printable = (text: string) => redact(text.slice(0, 100).replace(/\p{Cc}/gu, ''))

function inspect(outline: RequestOutline, operation: Operation, policy: CallPolicy): InspectedRequest {
  const inspection = policy.requestInspection()
  const found = inspectRequest(outline, OPERATIONS[operation].protocol, inspection)
  for (const direction of found.uninspectable) {
    if (policy.blocksUninspectable(direction)) throw dlpBlocked('content that cannot be inspected')
  }
  return { edits: found.edits, changedThinking: found.changedThinking, counts: inspection.counts }
}

/**
 * The request of the first route whose protocol can express it. Made before the call is admitted: what no route can be
 * sent costs nothing.
 * @throws ApiError invalid_request of the first route when none can.
 */
function firstExpressible(
  planned: Parameters<typeof routeRequest>[0],
  candidates: readonly Candidate[],
): RouteRequest | null {
  let refused: ApiError | null = null
  for (const candidate of candidates) {
    const request = read(() => routeRequest(planned, candidate))
    if (!(request instanceof ApiError)) return request
    if (request.kind !== 'invalid_request') throw request
    refused ??= request
  }
  if (refused) throw refused
  return null
}

/** A legacy completion in translation asks for a maximum of its own; elsewhere an upstream may generate all it can. */
function maximumOutputOf(
  outline: RequestOutline,
  operation: Operation,
  candidates: readonly Candidate[],
  model: CatalogModel,
): number | null {
  const { translationLimitsOutput } = OPERATIONS[operation]
  const limited = translationLimitsOutput && candidates.every(({ translation }) => translation)
  return outline.maximumOutput ?? (limited ? defaultCompletionTokens(model.capabilities) : null)
}
