import { ApiError } from '../../lib/api-error.ts'
import { applyEditsInSlices, type EditedBytes, joinBytes } from '../../lib/byte-edits.ts'
import type { Slices } from '../../lib/slices.ts'
import type { Route } from '../catalogue/call-routes.ts'
import { OPERATIONS } from '../protocols/operations.ts'
import type { OwnTools } from '../protocols/own-tools.ts'
import { outsideOfInSlices, requestEdits } from '../protocols/request-edits.ts'
import { bodyMembersOf, capabilitiesOf, transportOf } from '../providers/provider.ts'
import { signatureOrigin } from '../translation/signature-origin.ts'
import { TranslatedCall } from '../translation/translated-call.ts'
import type { PlannedCall } from './model-call.ts'
import { refuseMembers } from './refused-members.ts'

/** The request of a call for one route. */
export interface RouteRequest {
  route: Route
  /** The body with the permitted edits; for a translated route, the source of the translation. */
  body: EditedBytes
  /** Null between equal protocols. */
  translated: TranslatedCall | null
  /** Members of the caller's request that only tune the answer, or that no table lists, and that the upstream is not sent. */
  dropped: readonly string[]
}

/** @returns the request for a route, in slices, or the error of a request that the route's protocol cannot express. */
export function* routeRequest(
  planned: Pick<PlannedCall, 'request' | 'outline' | 'model' | 'inspected'>,
  route: Route,
): Slices<RouteRequest | ApiError> {
  try {
    return yield* requestFor(planned, route)
  } catch (error) {
    if (error instanceof ApiError && error.kind === 'invalid_request') return error
    throw error
  }
}

/** Builds the request of a route. For a translation, only texts are edited before. @throws ApiError invalid_request */
function* requestFor(
  { request, outline, model, inspected }: Pick<PlannedCall, 'request' | 'outline' | 'model' | 'inspected'>,
  route: Route,
): Slices<RouteRequest> {
  const { upstreamModel, translation } = route
  const { maxOutputTokens } = model
  const capabilities = capabilitiesOf(route.provider, upstreamModel, model.capabilities)
  const { changedThinking } = inspected
  const { protocol } = OPERATIONS[request.operation]
  // Responses pass members that the gateway does not know to chat completions as well.
  if (!translation || translation.caller === 'responses') {
    refuseMembers(outline, route.provider, request.principal.organizationId)
  }
  const { stream } = outline
  const callerHeaders = translation ? null : request.headers
  const bodyMembers = bodyMembersOf(route.provider, {
    ...{ operation: route.operation, upstreamModel, stream, callerHeaders },
  })
  const { body: edits, dropped } = translation
    ? { body: [], dropped: [] }
    : yield* requestEdits(outline, protocol, { upstreamModel, capabilities, changedThinking, bodyMembers })
  const texts = yield* outsideOfInSlices(edits, inspected.edits)
  const body = yield* applyEditsInSlices(outline.body, [...edits, ...texts])
  if (!translation) return { route, body, translated: null, dropped }
  const takesReasoning = bodyMembers?.messages?.reasoningContent ?? false
  const target = { upstreamModel, maxOutputTokens, capabilities, origin: originOf(route), takesReasoning }
  const own = (outline.own && definitionsOf(outline.own)) ?? null
  const { repeatsReasoning = false } = transportOf(route.provider)
  const options = { ...translation, target, own, bodyMembers, repeatsReasoning }
  const translated = new TranslatedCall(joinBytes(body.pieces), options)
  // The members that are left out of the body are sent too.
  const released = body.released + outline.bytes - outline.body.length
  return { route, body: { ...body, released }, translated, dropped: translated.dropped }
}

const definitionsOf = ({ tools, at }: OwnTools) => ({
  definitions: tools.map(({ definition }) => definition),
  at,
})

/** Identifies the issuer of thinking signatures on a route, in the protocol that its upstream is sent. */
export const originOf = ({ provider, upstreamModel, operation }: Route): string =>
  signatureOrigin(operation, upstreamModel, provider.id)
