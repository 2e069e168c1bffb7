/** One call on one route: its request is sent once, and the answer is read, or begins as a stream. */
import type { InspectionCounts } from '../../governance/audit-record.ts'
import { Inspection, passAllEngine } from '../../governance/dlp/inspection.ts'
import type { GovernedCall } from '../../governance/governed-call.ts'
import type { Usage } from '../../governance/usage.ts'
import { ApiError } from '../../lib/api-error.ts'
import { applyEditsInSlices, joinBytes } from '../../lib/byte-edits.ts'
import { JsonSyntaxError } from '../../lib/json-visitor.ts'
import { withoutCredential } from '../../lib/secret-spellings.ts'
import { inTurns } from '../../lib/slices.ts'
import { answerCharge, type Charge } from '../calls/charges.ts'
import type { PlannedCall } from '../calls/model-call.ts'
import { OPERATIONS } from '../operations.ts'
import type { AnswerContext, AnswerReading, Protocol } from '../protocols/protocol.ts'
import { transportOf } from '../providers/provider.ts'
import type { BufferedResponses } from '../relay/buffered-responses.ts'
import {
  type CallerForm,
  redactedAnswer,
  type StartedStream,
  type StreamDeps,
  startStream,
} from '../relay/stream-answer.ts'
import { type Json, textOf } from '../translation/json.ts'
import type { ModelEvent } from '../translation/model-events.ts'
import type { TranslatedCall } from '../translation/translated-call.ts'
import { errorIn, impliedStatus, parsedBody } from '../translation/upstream-errors.ts'
import { noAnswer, UpstreamAttempt } from './attempt.ts'
import type { RouteRequest } from './route-request.ts'

/** How a call is sent, besides its plan. */
export interface SendOptions {
  /** Fires when the caller leaves. */
  signal: AbortSignal
  form: CallerForm
  /** Takes the bodies that are read. */
  buffered: BufferedResponses
}

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

export type RouteAnswer =
  | BufferedAnswer
  | StartedStream
  /** An error answer of the upstream, also one that it sent with status 200. Its body is not read yet. */
  | ErrorAnswer
  /** No usable answer; nothing was sent to the caller. */
  | { kind: 'nothing'; error: ApiError }

interface ErrorAnswer {
  kind: 'error_status'
  response: Response
}

export class RouteCall {
  readonly request: RouteRequest
  readonly attempt: UpstreamAttempt
  readonly requestCounts: InspectionCounts
  /** Also of an answer that must not pass; null until one has come. */
  responseCounts: InspectionCounts | null = null
  readonly #deps: StreamDeps
  readonly #planned: PlannedCall
  readonly #call: GovernedCall
  readonly #options: SendOptions

  constructor(
    deps: StreamDeps,
    planned: PlannedCall,
    call: GovernedCall,
    request: RouteRequest,
    options: SendOptions,
  ) {
    const { outline, inspected, basis } = planned
    const { headers, principal } = planned.request
    this.#deps = deps
    this.#planned = planned
    this.#call = call
    this.request = request
    this.#options = options
    const { released, withheld } = request.body
    this.requestCounts = { ...inspected.counts, released, withheld }
    const { organizationId } = principal
    const attempted = { organizationId, stream: outline.stream, headers, signal: options.signal, basis }
    this.attempt = new UpstreamAttempt(deps, attempted, request.route)
  }

  /**
   * Sends the request and reads the answer, or the beginning of a stream.
   * @param lost what earlier attempts may be charged for.
   * @throws ApiError for an answer that must not pass, or that there is no room for; any fault of the gateway.
   */
  async run(lost: Usage | null): Promise<RouteAnswer> {
    const { route, body, translated } = this.request
    try {
      const response = await this.attempt.send(translated?.takeRequest() ?? body)
      if (response.status >= 400) return { kind: 'error_status', response }
      const { streamType } = transportOf(route.provider)
      const isStream = response.headers.get('content-type')?.includes(streamType) ?? false
      if (isStream) return await this.#stream(response, lost)
      return await this.#buffered(response)
    } catch (error) {
      const isUpstreams = error instanceof ApiError && error.kind === 'upstream'
      if (this.#options.signal.aborted || !isUpstreams) throw error
      this.attempt.discard('unusable_answer')
      return { kind: 'nothing', error }
    }
  }

  async #stream(response: Response, lost: Usage | null): Promise<StartedStream | ErrorAnswer> {
    const { request, model, outline, basis } = this.#planned
    const { route, translated } = this.request
    if (translated && !outline.stream) {
      throw noAnswer('The upstream streamed an answer that was asked for whole.')
    }
    this.attempt.dispose()
    const inspection = this.#inspection()
    const { signal, form } = this.#options
    const started = await startStream(this.#deps, {
      response,
      route,
      reader: this.#protocol.streamReader(this.#context(inspection)),
      inspection,
      translated,
      form,
      attempt: this.attempt,
      signal,
      call: this.#call,
      basis,
      lost,
      // Not the plan itself: it would keep the request's body, up to 50 MB, for as long as the stream lasts.
      caller: { operation: request.operation, modelId: model.id, usageRequested: outline.usageRequested },
    })
    if (started.kind === 'stream') return started
    const error = this.#errorUnder200(response, started.body)
    if (error) return error
    throw noAnswer(started.message)
  }

  async #buffered(response: Response): Promise<BufferedAnswer | ErrorAnswer> {
    const body = this.#options.buffered.take(await this.attempt.read(response))
    if (body.length === 0) throw noAnswer('The upstream sent an empty answer.')
    const inspection = this.#inspection()
    inspection.begin()
    const reading = await this.#reading(body, inspection)
    const edited = await inTurns(applyEditsInSlices(body, reading.edits))
    inspection.sink(edited.released, edited.withheld)
    const { provider } = this.request.route
    const pieces = edited.pieces.map((piece) => redactedAnswer(piece, provider))
    const charge = answerCharge(this.#planned.basis, reading.usage, reading.textBytes)
    const { translated } = this.request
    if (reading.isError) {
      const body = parsedBody(joinBytes(pieces))
      const message = textOf(errorIn(body).message) || 'The upstream sent an error in place of an answer.'
      const failure = this.#errorAsAnswer(message, reading, charge)
      const error = this.#errorUnder200(response, body)
      if (error) return error
      throw failure
    }
    return {
      kind: 'buffered',
      status: response.status,
      upstreamHeaders: response.headers,
      content: translated ? { events: this.#events(translated, pieces, reading, charge) } : { pieces },
      counts: inspection.counts,
      charge,
    }
  }

  /**
   * @throws ApiError for an answer that must not pass. It is charged, because the upstream has generated it. ApiError
   * upstream for one that is not JSON.
   */
  async #reading(body: Uint8Array, inspection: Inspection): Promise<AnswerReading> {
    try {
      return await inTurns(this.#protocol.readAnswer(body, this.#context(inspection)))
    } catch (error) {
      inspection.refuse(body.length)
      if (error instanceof ApiError) {
        const uninspected = this.#context(new Inspection(passAllEngine))
        const { usage, textBytes } = await inTurns(this.#protocol.readAnswer(body, uninspected))
        this.attempt.discard('refused_answer', answerCharge(this.#planned.basis, usage, textBytes).usage)
      }
      throw notJsonError(error)
    }
  }

  /** @throws ApiError upstream for JSON that is no answer. What the upstream used for it is charged. */
  #events(
    translated: TranslatedCall,
    pieces: readonly Uint8Array[],
    reading: AnswerReading,
    charge: Charge,
  ): ModelEvent[] {
    const answer = jsonOr(() => translated.answer(joinBytes(pieces)))
    if (!('error' in answer)) return [...answer, ...translated.ending()]
    throw this.#errorAsAnswer(answer.error, reading, charge)
  }

  /** What the upstream used for it is charged: a text of an error is no output. */
  #errorAsAnswer(message: string, { usage, textBytes, isError }: AnswerReading, charge: Charge): ApiError {
    const used = usage !== null || (textBytes > 0 && !isError)
    this.attempt.discard('error_as_answer', used ? charge.usage : null)
    return noAnswer(withoutCredential(message, this.request.route.provider.credential))
  }

  /**
   * An error that the upstream sent with status 200, as the answer with the status that the error stands for.
   * @param body after inspection. @returns null for an error without a known status.
   */
  #errorUnder200(response: Response, body: Json): ErrorAnswer | null {
    const error = errorIn(body)
    const status = impliedStatus(error)
    if (status === null) return null
    const headers = new Headers(response.headers)
    for (const name of BODY_HEADERS) headers.delete(name)
    headers.set('content-type', 'application/json')
    // Errors with a status are forwarded unchanged. These have none, so that they get the envelope of the surface.
    const { ownErrorEnvelope } = OPERATIONS[this.#planned.request.operation]
    const sent = JSON.stringify(ownErrorEnvelope ? body : { error })
    return { kind: 'error_status', response: new Response(sent, { status, headers }) }
  }

  #inspection(): Inspection {
    const inspection = this.#planned.policy.responseInspection()
    this.responseCounts = inspection.counts
    return inspection
  }

  /** The wire format of the upstream. */
  get #protocol(): Protocol {
    return OPERATIONS[this.request.route.operation].protocol
  }

  #context(inspection: Inspection): AnswerContext {
    const { model, outline } = this.#planned
    const { upstreamModel, translation } = this.request.route
    return {
      inspection,
      modelId: translation || upstreamModel === model.id ? null : model.id,
      usageRequested: translation !== null || outline.usageRequested,
      translatedTo: translation?.caller ?? null,
    }
  }
}

/** Headers of a body that is replaced. */
const BODY_HEADERS = ['content-encoding', 'content-length', 'transfer-encoding']

function jsonOr<Result>(read: () => Result): Result {
  try {
    return read()
  } catch (error) {
    throw notJsonError(error)
  }
}

const notJsonError = (error: unknown): unknown =>
  error instanceof JsonSyntaxError ? noAnswer('The upstream sent an answer that is not JSON.') : error
