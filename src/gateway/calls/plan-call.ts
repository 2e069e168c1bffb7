import { mayUse } from '../../calls/access.ts'
import type { CallerRights } from '../../calls/governed-call.ts'
import { type PolicyDeps, policyFor } from '../../calls/policy-for-call.ts'
import { type CallTarget, modelTarget } from '../../calls/target.ts'
import { dlpBlocked } from '../../dlp/policy/actions.ts'
import type { CallPolicy } from '../../dlp/policy/call-policy.ts'
import { recordableText } from '../../dlp/recordable-text.ts'
import { hasScope, type Principal } from '../../identity/principal.ts'
import type { CallOutcome } from '../../ledger/audit-record.ts'
import { ApiError } from '../../lib/api-error.ts'
import { redact } from '../../lib/log.ts'
import { runSlices, type Slices } from '../../lib/slices.ts'
import { agentIdOf, isAgentModel } from '../../wire/agent-model.ts'
import { type Route, routesFor } from '../catalogue/call-routes.ts'
import { type CatalogueModel, type ModelCatalogue, modelOf } from '../catalogue/model-catalogue.ts'
import { OPERATIONS, type Operation } from '../protocols/operations.ts'
import { inspectedOfOwn, withoutOwnTools } from '../protocols/own-tools.ts'
import { inspectRequest } from '../protocols/request-inspection.ts'
import type { RequestOutline } from '../protocols/request-outline.ts'
import { chargeBasis } from './charge-basis.ts'
import { inspectedHeaders } from './inspected-headers.ts'
import type { InspectedRequest, ModelRequest, PlannedCall } from './model-call.ts'
import { type RouteRequest, routeRequest } from './route-request.ts'

/** A request that is refused, with what its audit record states. */
interface RefusedPlan {
  kind: 'refused'
  error: ApiError
  target: CallTarget | null
  dlp: CallOutcome['dlp']
}

/** The texts of a request under the policies of its caller. For a long request this takes seconds. */
export interface RequestReview {
  outline: RequestOutline
  policy: CallPolicy
  /** The request that may be sent, or the error that forbids it. */
  result: { headers: Headers; inspected: InspectedRequest } | ApiError
}

/** A plan, with the review that it rests on; null where the request was refused before its texts were inspected. */
type CallPlan = (({ kind: 'planned' } & PlannedCall) | RefusedPlan) & { review: RequestReview | null }

/**
 * Makes all decisions about a request that need no other party: it is read, its model found and allowed, its texts
 * inspected under the policies in force, its cost bounded.
 * @param earlier the review of an earlier plan of the same request, which is used where the same policies still hold.
 * @throws ApiError internal when the policies cannot be read: nothing passes then.
 */
export async function planCall(
  deps: PolicyDeps,
  request: ModelRequest,
  rights: CallerRights,
  catalogue: ModelCatalogue,
  earlier: RequestReview | null,
): Promise<CallPlan> {
  const { operation } = request
  let target: CallTarget | null = null
  let review: RequestReview | null = null
  try {
    const read = earlier?.outline ?? (await runSlices(outlineOf(request)))
    const named = await namedModel(deps, rights.principal, catalogue, read.model)
    target = modelTarget(named)
    const granted = allowedModel(catalogue, rights.principal, operation, named)
    const model = modelOf(granted, rights.principal.organizationId)
    const { routes, basis } = chargeBasis(
      read,
      model,
      operation,
      routesFor(model, operation),
      request.headers,
    )
    const policy = await policyFor(deps, rights.principal, target)
    const isReviewed = earlier?.policy.version === policy.version
    review = isReviewed ? earlier : await reviewRequest(read, request, policy)
    if (review.result instanceof ApiError) throw review.result
    const { headers, inspected } = review.result
    const { outline } = review
    const known = { request: { ...request, headers }, outline, model, inspected }
    const firstRequest = await runSlices(firstExpressible(known, routes))
    return {
      kind: 'planned',
      ...known,
      rights,
      routes,
      policy: review.policy,
      firstRequest,
      basis,
      review,
    }
  } catch (error) {
    if (!isDecision(error)) throw error
    const dlp = review?.policy.record() ?? null
    return { kind: 'refused', error, target, dlp, review: review ?? earlier }
  }
}

/**
 * The model of a request. Until the catalogue confirms it, it is any text of the caller, possibly a key: it is recorded, and
 * said in the refusal, as the policies leave it.
 */
async function namedModel(
  deps: PolicyDeps,
  principal: Principal,
  catalogue: ModelCatalogue,
  id: string,
): Promise<string> {
  if (catalogue.models.has(id)) return id
  const text = redact(id)
  const policy = await policyFor(deps, principal, modelTarget(text))
  return runSlices(recordableText(policy, text))
}

/** Any ApiError that is not internal is a decision about the request, which is recorded. */
const isDecision = (error: unknown): error is ApiError =>
  error instanceof ApiError && error.kind !== 'internal'

function allowedModel(
  catalogue: ModelCatalogue,
  principal: Principal,
  operation: Operation,
  modelId: string,
): CatalogueModel {
  if (!hasScope(principal, 'models')) {
    throw new ApiError('forbidden', 'This API key does not have the scope models.', {
      code: 'model_access_denied',
    })
  }
  const model = catalogue.models.get(modelId)
  if (!model) throw unknownModel(operation, modelId)
  if (mayUse(principal, modelTarget(modelId))) return model
  const message = `Your organization has not granted you access to the model ${modelId}.`
  throw new ApiError('forbidden', message, { code: 'model_access_denied' })
}

/** @param modelId of no model. An agent is listed with the models, but runs on the Responses surface only. */
function unknownModel(operation: Operation, modelId: string): ApiError {
  const message = isAgentModel(modelId)
    ? `The agent ${printable(agentIdOf(modelId))} cannot be called here. POST /v1/responses runs agents over HTTP.`
    : `The model ${printable(modelId)} does not exist. GET /v1/models lists the models you may use.`
  return new ApiError(OPERATIONS[operation].unknownModel, message, { code: 'model_not_found' })
}

/** Model ids come from callers: quoted short, without control characters and without texts that look like keys. */
const printable = (text: string) => redact(text.slice(0, 100).replace(/\p{Cc}/gu, ''))

/** Reads a request without the tools of this service in its body, in slices. @throws ApiError invalid_request */
function* outlineOf({ operation, body, own }: ModelRequest): Slices<RequestOutline> {
  const { protocol } = OPERATIONS[operation]
  const shortened = withoutOwnTools(body, own)
  if (!own || !shortened) return yield* protocol.outline(body)
  return { ...(yield* protocol.outline(shortened)), own, bytes: body.length }
}

async function reviewRequest(
  read: RequestOutline,
  request: ModelRequest,
  policy: CallPolicy,
): Promise<RequestReview> {
  const inspectedBefore = read.own ? inspectedOfOwn(read.own, policy) : 0
  // Findings in tools of this service are treated like any others.
  const outline = inspectedBefore === null ? await runSlices(outlineOf({ ...request, own: undefined })) : read
  try {
    return { outline, policy, result: await inspect(outline, request, policy, inspectedBefore ?? 0) }
  } catch (error) {
    if (!isDecision(error)) throw error
    return { outline, policy, result: error }
  }
}

/** Other requests have their turn between the slices of long texts. */
async function inspect(
  outline: RequestOutline,
  { operation, headers }: ModelRequest,
  policy: CallPolicy,
  inspectedBefore: number,
): Promise<{ headers: Headers; inspected: InspectedRequest }> {
  const inspection = policy.requestInspection()
  const found = await runSlices(
    inspectRequest(outline, OPERATIONS[operation].protocol, inspection, inspectedBefore),
  )
  for (const direction of found.uninspectable) {
    if (policy.blocksUninspectable(direction)) throw dlpBlocked('content that cannot be inspected')
  }
  const { edits, changedThinking } = found
  return {
    headers: inspectedHeaders(headers, inspection.engine),
    inspected: { edits, changedThinking, counts: inspection.counts },
  }
}

/**
 * The request of the first route whose protocol can express it, made before the call is admitted: a request that no
 * route can be sent costs nothing.
 * @throws ApiError invalid_request of the first route when none can.
 */
function* firstExpressible(
  planned: Parameters<typeof routeRequest>[0],
  routes: readonly Route[],
): Slices<RouteRequest | null> {
  let refused: ApiError | null = null
  for (const route of routes) {
    const request = yield* routeRequest(planned, route)
    if (!(request instanceof ApiError)) return request
    refused ??= request
  }
  if (refused) throw refused
  return null
}
