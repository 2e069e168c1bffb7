import { Inspection, passAllEngine } from '../../dlp/inspection.ts'
import { ApiError } from '../../lib/api-error.ts'
import { applyEditsInSlices, joinBytes } from '../../lib/byte-edits.ts'
import { JsonSyntaxError } from '../../lib/json-visitor.ts'
import { withoutCredential } from '../../lib/secret-spellings.ts'
import { runSlices } from '../../lib/slices.ts'
import type { InspectionCounts } from '../../wire/records.ts'
import type { Charge } from '../calls/charges.ts'
import { answerCharge } from '../calls/charges.ts'
import type { PlannedCall } from '../calls/model-call.ts'
import type { RouteRequest } from '../calls/route-request.ts'
import type { UnusableAnswer } from '../calls/unusable-answer.ts'
import { noAnswer, unusable } from '../calls/unusable-answer.ts'
import type { Json } from '../protocols/json.ts'
import { textOf } from '../protocols/json.ts'
import { OPERATIONS } from '../protocols/operations.ts'
import { countsNothing } from '../protocols/plausible-usage.ts'
import type { AnswerContext, AnswerReading, Protocol } from '../protocols/protocol.ts'
import { redactedAnswer } from '../relay/stream-answer.ts'
import { errorIn, parsedBody } from '../translation/error-shapes.ts'
import type { ModelEvent } from '../translation/model-events.ts'
import type { TranslatedCall } from '../translation/translated-call.ts'

/** A whole answer, inspected. */
export interface BufferedAnswer {
  kind: 'buffered'
  status: number
  upstreamHeaders: Headers
  /** Pieces of the body for a caller of the same protocol, events for any other. */
  content: { pieces: Uint8Array[] } | { events: ModelEvent[] }
  counts: InspectionCounts
  charge: Charge
}

/** An error in place of an answer, under a status of success. */
interface ErrorInAnswer extends Omit<UnusableAnswer, 'kind'> {
  kind: 'error_in_answer'
  /** Inspected and edited. */
  body: Json
}

/** Reads and inspects a whole answer. @throws a fault of the gateway. */
export async function readBufferedAnswer(
  planned: PlannedCall,
  request: RouteRequest,
  response: Response,
  body: Uint8Array,
  inspection: Inspection,
): Promise<BufferedAnswer | ErrorInAnswer | UnusableAnswer> {
  if (body.length === 0) return unusable(noAnswer('The upstream sent an empty answer.'))
  inspection.begin()
  const reading = await readingOf(planned, request, body, inspection)
  if ('kind' in reading) return reading
  const edited = await runSlices(applyEditsInSlices(body, reading.edits))
  inspection.sink(edited.released, edited.withheld)
  const { provider } = request.route
  const pieces = edited.pieces.map((piece) => redactedAnswer(piece, provider))
  // A text of an error is no output.
  const outputBytes = reading.isError ? 0 : reading.textBytes
  const charge = answerCharge(planned.basis, reading.usage, outputBytes)
  if (reading.isError) {
    const error = parsedBody(joinBytes(pieces))
    const message = textOf(errorIn(error).message) || 'The upstream sent an error in place of an answer.'
    return { ...errorAsAnswer(request, message, reading, charge), kind: 'error_in_answer', body: error }
  }
  const { translated } = request
  const content = translated ? eventsOf(request, translated, pieces, reading, charge) : { pieces }
  if ('kind' in content) return content
  const { status, headers: upstreamHeaders } = response
  return { kind: 'buffered', status, upstreamHeaders, content, counts: inspection.counts, charge }
}

/**
 * @returns unusable for an answer that must not pass, which is charged, because the upstream has generated it; and for one that
 * is not JSON.
 */
async function readingOf(
  planned: PlannedCall,
  request: RouteRequest,
  body: Uint8Array,
  inspection: Inspection,
): Promise<AnswerReading | UnusableAnswer> {
  const protocol = protocolOf(request)
  try {
    return await runSlices(protocol.readAnswer(body, answerContext(planned, request, inspection)))
  } catch (error) {
    inspection.refuse(body.length)
    if (error instanceof JsonSyntaxError) return unusable(notJson())
    if (!(error instanceof ApiError)) throw error
    const uninspected = answerContext(planned, request, new Inspection(passAllEngine))
    const { usage, textBytes } = await runSlices(protocol.readAnswer(body, uninspected))
    return unusable(error, 'refused_answer', answerCharge(planned.basis, usage, textBytes).usage)
  }
}

/** @returns unusable for JSON that is no answer. What the upstream used for it is charged. */
function eventsOf(
  request: RouteRequest,
  translated: TranslatedCall,
  pieces: readonly Uint8Array[],
  reading: AnswerReading,
  charge: Charge,
): { events: ModelEvent[] } | UnusableAnswer {
  try {
    const answer = translated.answer(joinBytes(pieces))
    if ('error' in answer) return errorAsAnswer(request, answer.error, reading, charge)
    return { events: [...answer, ...translated.ending()] }
  } catch (error) {
    if (error instanceof JsonSyntaxError) return unusable(notJson())
    throw error
  }
}

/** Converts an error into an answer. The upstream's usage for it is charged. */
function errorAsAnswer(
  { route }: RouteRequest,
  message: string,
  { usage, textBytes, isError }: AnswerReading,
  charge: Charge,
): UnusableAnswer {
  const isUsed = (usage !== null && !countsNothing(usage)) || (textBytes > 0 && !isError)
  const error = noAnswer(withoutCredential(message, route.provider.credential))
  return unusable(error, 'error_as_answer', isUsed ? charge.usage : null)
}

const notJson = () => noAnswer('The upstream sent an answer that is not JSON.')

/** The wire format of an upstream. */
export const protocolOf = ({ route }: RouteRequest): Protocol => OPERATIONS[route.operation].protocol

/** Facts about the call for the reader of its answer. */
export function answerContext(
  { model, outline }: PlannedCall,
  { route: { upstreamModel, translation } }: RouteRequest,
  inspection: Inspection,
): AnswerContext {
  return {
    inspection,
    modelId: translation || upstreamModel === model.id ? null : model.id,
    usageRequested: translation !== null || outline.usageRequested,
    translatedTo: translation?.caller ?? null,
  }
}
