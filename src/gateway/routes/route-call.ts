/** One call on one route: the request it sends, and what comes of the answer. */
import type { InspectionCounts } from '../../governance/audit-record.ts'
import type { Usage } from '../../governance/credits.ts'
import { Inspection, passAllEngine } from '../../governance/dlp/inspection.ts'
import type { GovernedCall } from '../../governance/governed-call.ts'
import { ApiError } from '../../lib/api-error.ts'
import { applyEdits, type EditedBytes, joinBytes } from '../../lib/byte-edits.ts'
import { JsonSyntaxError } from '../../lib/json-scan.ts'
import { answerCharge, type Charge } from '../calls/charges.ts'
import type { PlannedCall } from '../calls/model-call.ts'
import { OPERATIONS } from '../operations.ts'
import type { AnswerContext, AnswerReading, Protocol } from '../protocols/protocol.ts'
import { isStream } from '../providers/provider.ts'
import type { BufferedResponses } from '../relay/buffered-responses.ts'
import { withoutCredential } from '../relay/credential-spellings.ts'
import { type CallerForm, type StartedStream, type StreamDeps, startStream } from '../relay/stream-answer.ts'
import type { ModelEvent } from '../translation/model-events.ts'
import type { TranslatedCall } from '../translation/translated-call.ts'
import { noAnswer, UpstreamAttempt } from './attempt.ts'
import type { Candidate } from './call-routes.ts'
import type { RouteRequest } from './route-request.ts'

/** An answer that came whole, inspected. */
export interface WholeAnswer {
  kind: 'whole'
  status: number
  upstreamHeaders: Headers
  /** Pieces of the body for a caller of the same protocol, events for any other. */
  content: { pieces: Uint8Array[] } | { events: ModelEvent[] }
  counts: InspectionCounts
  charge: Charge
}

/** An error that the upstream answered. Its body is not read yet. */
export interface ErrorStatus {
  kind: 'error_status'
  response: Response
  askedUntil: number | null
}

/** Nothing was sent to the caller. */
export interface NoAnswer {
  kind: 'nothing'
  error: ApiError
}

export type RouteAnswer = WholeAnswer | StartedStream | ErrorStatus | NoAnswer

/** One call at one candidate. Its fields tell what the attempt came to, also when it failed. */
export class RouteAttempt {
  readonly candidate: Candidate
  readonly attempt: UpstreamAttempt
  /** What left as the request; null while nothing has left. */
  requestCounts: InspectionCounts | null = null
  /** What came of the answer, also of one that must not pass; null while nothing has come. */
  responseCounts: InspectionCounts | null = null
  readonly #deps: StreamDeps
  readonly #planned: PlannedCall
  readonly #translated: TranslatedCall | null
  readonly #body: EditedBytes
  readonly #answers: BufferedResponses
  readonly #signal: AbortSignal

  /** @param answers takes the bodies that are read. */
  constructor(
    deps: StreamDeps,
    planned: PlannedCall,
    { candidate, body, translated }: RouteRequest,
    signal: AbortSignal,
    answers: BufferedResponses,
  ) {
    const { request, outline, basis } = planned
    this.#deps = deps
    this.#planned = planned
    this.candidate = candidate
    this.#signal = signal
    this.#answers = answers
    this.#body = body
    this.#translated = translated
    const { organizationId } = request.principal
    const called = { organizationId, stream: outline.stream, headers: request.headers, signal, basis }
    this.attempt = new UpstreamAttempt(deps, called, candidate)
  }

  /**
   * Sends the request and reads the beginning of the answer, or all of it.
   * @param lost what attempts before this one may be charged for.
   * @throws ApiError for an answer that must not pass, or that there is no room for; whatever is a fault of ours.
   */
  async run(call: GovernedCall, lost: Usage | null, form: CallerForm): Promise<RouteAnswer> {
    const { counts } = this.#planned.inspected
    this.requestCounts = { ...counts, released: this.#body.released, withheld: this.#body.withheld }
    try {
      const response = await this.attempt.send(this.#translated?.takeRequest() ?? this.#body)
      if (response.status >= 400) {
        return { kind: 'error_status', response, askedUntil: this.attempt.askedUntil }
      }
      if (isStream(this.candidate.provider, response)) return await this.#stream(response, call, lost, form)
      return await this.#whole(response)
    } catch (error) {
      if (this.#signal.aborted || !(error instanceof ApiError) || error.kind !== 'upstream') throw error
      this.attempt.discard('unusable_answer')
      return { kind: 'nothing', error }
    }
  }

  async #stream(
    response: Response,
    call: GovernedCall,
    lost: Usage | null,
    form: CallerForm,
  ): Promise<StartedStream> {
    const { outline, basis } = this.#planned
    if (this.#translated && !outline.stream) {
      throw noAnswer('The upstream streamed an answer that was asked for whole.')
    }
    this.attempt.dispose()
    const inspection = this.#inspection()
    return startStream(this.#deps, {
      response,
      candidate: this.candidate,
      reader: this.#protocol.streamReader(this.#context(inspection)),
      inspection,
      translated: this.#translated,
      form,
      attempt: this.attempt,
      signal: this.#signal,
      call,
      basis,
      lost,
      // Not the plan itself: it would keep the request's body, up to 50 MB, for as long as a model talks.
      caller: {
        operation: this.#planned.request.operation,
        modelId: this.#planned.model.id,
        usageRequested: outline.usageRequested,
      },
    })
  }

  async #whole(response: Response): Promise<WholeAnswer> {
    const body = this.#answers.take(await this.attempt.read(response))
    if (body.length === 0) throw noAnswer('The upstream sent an empty answer.')
    const inspection = this.#inspection()
    inspection.begin()
    const reading = jsonOr(() => this.#reading(body, inspection))
    const edited = applyEdits(body, reading.edits)
    inspection.sink(edited.released, edited.withheld)
    const charge = answerCharge(this.#planned.basis, reading.usage, reading.textBytes)
    return {
      kind: 'whole',
      status: response.status,
      upstreamHeaders: response.headers,
      content: this.#translated
        ? { events: this.#events(this.#translated, edited.pieces, reading, charge) }
        : { pieces: edited.pieces },
      counts: inspection.counts,
      charge,
    }
  }

  /** @throws ApiError for an answer that must not pass; the upstream has generated it all the same. */
  #reading(body: Uint8Array, inspection: Inspection): AnswerReading {
    try {
      return this.#protocol.readAnswer(body, this.#context(inspection))
    } catch (error) {
      inspection.refuse(body.length)
      if (error instanceof ApiError) {
        const unseen = this.#context(new Inspection(passAllEngine))
        const { usage, textBytes } = this.#protocol.readAnswer(body, unseen)
        this.attempt.discard('refused_answer', answerCharge(this.#planned.basis, usage, textBytes).usage)
      }
      throw error
    }
  }

  /** @throws ApiError upstream for JSON that is no answer; what the upstream used for it is charged whoever answers in the end. */
  #events(
    translated: TranslatedCall,
    pieces: readonly Uint8Array[],
    { usage, textBytes }: AnswerReading,
    charge: Charge,
  ): ModelEvent[] {
    const answer = jsonOr(() => translated.answer(joinBytes(pieces)))
    if (!('error' in answer)) return [...answer, ...translated.ending()]
    this.attempt.discard('error_as_answer', usage || textBytes > 0 ? charge.usage : null)
    throw noAnswer(withoutCredential(answer.error, this.candidate.provider.credential))
  }

  #inspection(): Inspection {
    const inspection = this.#planned.policy.responseInspection()
    this.responseCounts = inspection.counts
    return inspection
  }

  /** The wire format of the upstream. */
  get #protocol(): Protocol {
    return OPERATIONS[this.candidate.operation].protocol
  }

  #context(inspection: Inspection): AnswerContext {
    const { model, outline } = this.#planned
    const { upstreamModel, translation } = this.candidate
    return {
      inspection,
      modelId: translation || upstreamModel === model.id ? null : model.id,
      usageRequested: translation !== null || outline.usageRequested,
      translatedTo: translation?.caller ?? null,
    }
  }
}

function jsonOr<Result>(read: () => Result): Result {
  try {
    return read()
  } catch (error) {
    if (error instanceof JsonSyntaxError) throw noAnswer('The upstream sent an answer that is not JSON.')
    throw error
  }
}
