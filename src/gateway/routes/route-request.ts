import { applyEdits, type EditedBytes, joinBytes } from '../../lib/byte-edits.ts'
import type { PlannedCall } from '../calls/model-call.ts'
import { OPERATIONS } from '../operations.ts'
import { outsideOf, requestEdits } from '../protocols/request-edits.ts'
import { signatureOrigin } from '../translation/signature-origin.ts'
import { TranslatedCall } from '../translation/translated-call.ts'
import type { Candidate } from './call-routes.ts'

/** A request as one route is sent it. */
export interface RouteRequest {
  candidate: Candidate
  /** With the permitted edits; for a translation, what is translated. */
  body: EditedBytes
  /** Null between equal protocols. */
  translated: TranslatedCall | null
}

/** Makes the request of a route. @throws ApiError invalid_request for what the route's protocol cannot express. */
export function routeRequest(
  planned: Pick<PlannedCall, 'request' | 'outline' | 'model' | 'inspected'>,
  candidate: Candidate,
): RouteRequest {
  const body = editedRequest(planned, candidate)
  return { candidate, body, translated: translatedCall(planned, candidate, body) }
}

/** The request with the edits that are permitted; for a translation only its texts are edited before. */
function editedRequest(
  { request, outline, model, inspected }: Pick<PlannedCall, 'request' | 'outline' | 'model' | 'inspected'>,
  { upstreamModel, translation }: Candidate,
): EditedBytes {
  const { protocol } = OPERATIONS[request.operation]
  const target = {
    upstreamModel,
    capabilities: model.capabilities,
    changedThinking: inspected.changedThinking,
  }
  const edits = translation ? [] : requestEdits(outline, protocol, target)
  return applyEdits(outline.body, [...edits, ...outsideOf(edits, inspected.edits)])
}

function translatedCall(
  { model }: Pick<PlannedCall, 'model'>,
  candidate: Candidate,
  body: EditedBytes,
): TranslatedCall | null {
  if (!candidate.translation) return null
  return new TranslatedCall(joinBytes(body.pieces), {
    ...candidate.translation,
    target: {
      upstreamModel: candidate.upstreamModel,
      maxOutputTokens: model.maxOutputTokens,
      capabilities: model.capabilities,
      origin: originOf(candidate),
    },
  })
}

/** Who gives the signatures of thinking on a route. A translated call goes out in one of the two protocols. */
export const originOf = ({ provider, upstreamModel, operation }: Candidate): string =>
  signatureOrigin(operation, upstreamModel, provider.id)
