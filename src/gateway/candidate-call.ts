import type { CallPolicy } from '../governance/dlp/call-policy.ts'
import { Inspection, passAllEngine } from '../governance/dlp/inspection.ts'
import { ApiError } from '../lib/api-error.ts'
import { applyEdits, type EditedBytes, joinBytes } from '../lib/byte-edits.ts'
import { JsonSyntaxError } from '../lib/json-scan.ts'
import { encodeFrame } from '../lib/sse.ts'
import { answerHeaders, streamHeaders } from './answer-headers.ts'
import type { Candidate } from './candidates.ts'
import type { CatalogModel } from './catalog/catalog.ts'
import { redactCredential, withoutCredential } from './credential-spellings.ts'
import type { ModelAnswer, ModelCall } from './invoke-model.ts'
import { type Metered, NOTHING_METERED } from './metering.ts'
import type { AnswerContext, AnswerReading, Meter, Protocol } from './protocols/protocol.ts'
import { PROTOCOLS } from './protocols/protocols.ts'
import type { RequestOutline } from './protocols/request-outline.ts'
import { type RelayEnd, relayTimesOf, type StreamTranslator } from './relay-options.ts'
import type { Settlement } from './settlement.ts'
import { relayStream } from './stream-relay.ts'
import { callerEncoder } from './translation/caller-encoder.ts'
import type { EventEncoder, ModelEvent } from './translation/model-events.ts'
import { signatureOrigin } from './translation/signature-origin.ts'
import { TranslatedCall } from './translation/translated-call.ts'
import { type AttemptDeps, noAnswer, UpstreamAttempt } from './upstream-attempt.ts'
import { upstreamErrorAnswer } from './upstream-error-answer.ts'
import { WholeAnswers } from './whole-answers.ts'

export interface AnswerDeps extends AttemptDeps {
  waitUntil: (work: Promise<unknown>) => void
  configuration: AttemptDeps['configuration'] & {
    UPSTREAM_FIRST_EVENT_TIMEOUT_MS: number
    UPSTREAM_EVENT_TIMEOUT_MS: number
    UPSTREAM_RETRY_WAIT_MS: number
    STREAM_COMMIT_MS: number
    STREAM_HEARTBEAT_MS: number
    LEDGER_LEASE_MS: number
  }
}

/** A call that the ledger has opened. */
export interface DispatchedCall extends ModelCall {
  /** Of the caller. */
  protocol: Protocol
  outline: RequestOutline
  model: CatalogModel
  settlement: Settlement
  requestFor: (candidate: Candidate) => EditedBytes
  policy: CallPolicy
}

/** One call at one candidate: what it asks, and the answer it makes of it. */
export class CandidateCall {
  readonly #deps: AnswerDeps
  readonly #call: DispatchedCall
  readonly #candidate: Candidate
  readonly #translated: TranslatedCall | null
  readonly #attempt: UpstreamAttempt
  readonly #answers = new WholeAnswers()

  /** @throws ApiError invalid_request for a request that cannot be said in the candidate's protocol. */
  constructor(deps: AnswerDeps, call: DispatchedCall, candidate: Candidate) {
    this.#deps = deps
    this.#call = call
    this.#candidate = candidate
    this.#translated = candidate.translation && translatedCall(call, candidate)
    this.#attempt = new UpstreamAttempt(deps, call, candidate)
  }

  /** @throws ApiError upstream */
  begin(): Promise<Response> {
    return this.#attempt.send(this.#translated?.takeRequest() ?? this.#call.requestFor(this.#candidate))
  }

  /** @throws ApiError upstream for answers that are none. */
  async answer(response: Response): Promise<ModelAnswer> {
    if (response.status >= 400) return this.#upstreamError(response)
    if (!this.#translated) return isEventStream(response) ? this.#stream(response) : this.#whole(response)
    const answer = isEventStream(response)
      ? this.#stream(response)
      : this.#translatedAnswer(response, this.#translated)
    return { ...(await answer), origin: originOf(this.#candidate) }
  }

  /** Until when the upstream asked to wait, in milliseconds since the epoch; null when it did not. */
  get askedUntil(): number | null {
    return this.#attempt.askedUntil
  }

  /** What the upstream answered is of no use. */
  gaveNothing(): void {
    this.#attempt.gaveNothing('unusable_answer')
  }

  /** @param abort whether the upstream may still be sending what nobody reads. */
  dispose(abort: boolean): void {
    this.#attempt.dispose()
    this.#answers.release()
    if (abort) this.#attempt.abort.abort()
  }

  /** Only our own credential is cut out of it (interface: Errors). */
  async #upstreamError(response: Response): Promise<ModelAnswer> {
    const { credential } = this.#candidate.provider
    const body = redactCredential(this.#answers.take(await this.#attempt.read(response)), credential)
    this.#call.settlement.close(response.status, 'upstream_error', NOTHING_METERED)
    const answer = upstreamErrorAnswer(response, body, this.#candidate)
    return { ...answer, body: this.#handOver([answer.body]) }
  }

  #handOver(pieces: readonly Uint8Array[]): ModelAnswer['body'] {
    return this.#answers.handOver(pieces, this.#call.signal, (work) => this.#deps.waitUntil(work))
  }

  async #whole(response: Response): Promise<ModelAnswer> {
    const { settlement, operation } = this.#call
    const inspection = this.#call.policy.responseInspection()
    const { pieces, usage, textBytes } = await this.#read(response, inspection)
    const use = operation === 'count_tokens' ? NOTHING_METERED : settlement.answerUse(usage, textBytes)
    settlement.close(response.status, null, use)
    const headers = answerHeaders(response.headers, this.#candidate.provider.credential)
    return { status: response.status, headers, body: this.#handOver(pieces) }
  }

  async #translatedAnswer(response: Response, translated: TranslatedCall): Promise<ModelAnswer> {
    const { settlement, outline } = this.#call
    const { credential } = this.#candidate.provider
    const { pieces, usage, textBytes } = await this.#read(response, this.#call.policy.responseInspection())
    const use = settlement.answerUse(usage, textBytes)
    const events = this.#answerEvents(translated, pieces, usage || textBytes > 0 ? use : null)
    settlement.close(200, null, use)
    const encoder = encoderOf(this.#deps, this.#call, this.#candidate)
    if (outline.stream) {
      const headers = streamHeaders(response.headers, credential)
      const frames = events.flatMap((event) => encoder.frames(event))
      return { status: 200, headers, body: this.#handOver(frames) }
    }
    const headers = answerHeaders(response.headers, credential)
    headers.set('content-type', 'application/json')
    const body = textEncoder.encode(JSON.stringify(encoder.answer(events)))
    return { status: 200, headers, body: this.#handOver([body]) }
  }

  /** @param use what the upstream used for an answer that is none, which is paid for whoever answers in the end. */
  #answerEvents(
    translated: TranslatedCall,
    pieces: readonly Uint8Array[],
    use: Metered | null,
  ): ModelEvent[] {
    try {
      const answer = this.#parse(() => translated.answer(joinBytes(pieces)))
      if ('error' in answer) throw noAnswer(this.#redacted(answer.error))
      return [...answer, ...translated.ending()]
    } catch (error) {
      if (use) this.#call.settlement.lose(use)
      throw error
    }
  }

  /** Reads and inspects a whole answer. */
  async #read(
    response: Response,
    inspection: Inspection,
  ): Promise<Pick<AnswerReading, 'usage' | 'textBytes'> & { pieces: Uint8Array[] }> {
    const body = this.#answers.take(await this.#attempt.read(response))
    if (body.length === 0) throw noAnswer('The upstream sent an empty answer.')
    if (isEventStream(response)) throw noAnswer('The upstream streamed an answer that was asked for whole.')
    this.#call.settlement.response = inspection.counts
    inspection.begin()
    const reading = this.#parse(() => this.#reading(body, inspection))
    const edited = applyEdits(body, reading.edits)
    inspection.sink(edited.released, edited.withheld)
    return { pieces: edited.pieces, usage: reading.usage, textBytes: reading.textBytes }
  }

  /** @throws ApiError for an answer that must not pass; the upstream has made it all the same. */
  #reading(body: Uint8Array, inspection: Inspection): AnswerReading {
    try {
      return this.#protocol.readAnswer(body, this.#context(inspection))
    } catch (error) {
      inspection.refuse(body.length)
      if (error instanceof ApiError) {
        const unseen = this.#context(new Inspection(passAllEngine))
        const { usage, textBytes } = this.#protocol.readAnswer(body, unseen)
        this.#call.settlement.lose(this.#call.settlement.answerUse(usage, textBytes))
      }
      throw error
    }
  }

  #parse<Result>(read: () => Result): Result {
    try {
      return read()
    } catch (error) {
      if (error instanceof JsonSyntaxError) throw noAnswer('The upstream sent an answer that is not JSON.')
      throw error
    }
  }

  /** What the upstream says, without our credential. */
  #redacted(text: string): string {
    return withoutCredential(text, this.#candidate.provider.credential)
  }

  /** Of the upstream. */
  get #protocol(): Protocol {
    return PROTOCOLS[this.#candidate.operation]
  }

  #context(inspection: Inspection): AnswerContext {
    const { model, outline } = this.#call
    const { upstreamModel, translation } = this.#candidate
    return {
      inspection,
      modelId: translation || upstreamModel === model.id ? null : model.id,
      usageAsked: translation !== null || outline.usageAsked,
      translatedTo: translation?.caller ?? null,
    }
  }

  /**
   * What lives as long as the stream is named one by one: a reference to this call would keep the request's body,
   * which may be 50 MB, for as long as a model talks.
   */
  async #stream(response: Response): Promise<ModelAnswer> {
    const { credential } = this.#candidate.provider
    const { protocol, settlement, signal, outline } = this.#call
    if (this.#translated && !outline.stream) {
      throw noAnswer('The upstream streamed an answer that was asked for whole.')
    }
    const inspection = this.#call.policy.responseInspection()
    settlement.response = inspection.counts
    if (!response.body) throw noAnswer('The upstream sent an empty answer.')
    this.#attempt.streams()
    const { abort } = this.#attempt
    const reader = this.#protocol.streamReader(this.#context(inspection))
    const relay = await relayStream({
      upstream: response.body,
      reader,
      dialect: protocol.dialect,
      translator:
        this.#translated &&
        translatorOf(this.#translated, encoderOf(this.#deps, this.#call, this.#candidate)),
      inspection,
      times: relayTimesOf(this.#deps.configuration),
      clock: this.#deps.clock,
      callerSignal: signal,
      abortUpstream: () => abort.abort(),
      redact: (bytes) => redactCredential(bytes, credential),
      onTick: () => {
        settlement.keepAlive(reader)
        return settlement.lapsed ? 'The call could no longer be accounted for.' : null
      },
    })
    if (!relay.started) {
      if (relay.end.kind === 'client_left') throw new Error('the caller left')
      this.#attempt.gaveNothing(`stream_${relay.end.reason}`, relay.end.reason === 'timeout')
      // Its beginning must not pass; the upstream has made it all the same.
      if (relay.end.error) settlement.lose(settlement.streamUse(reader))
      throw relay.end.error ?? noAnswer(relay.end.message)
    }
    this.#deps.waitUntil(streamEnd(relay.ended, settlement, reader))
    const headers = streamHeaders(response.headers, credential)
    return { status: response.status, headers, body: relay.body }
  }
}

function translatedCall(call: DispatchedCall, candidate: Candidate): TranslatedCall | null {
  const { model } = call
  if (!candidate.translation) return null
  return new TranslatedCall(joinBytes(call.requestFor(candidate).pieces), {
    ...candidate.translation,
    target: {
      upstreamModel: candidate.upstreamModel,
      maxOutputTokens: model.maxOutputTokens,
      capabilities: model.capabilities,
      origin: originOf(candidate),
    },
  })
}

function encoderOf(deps: AnswerDeps, { model, outline }: DispatchedCall, candidate: Candidate): EventEncoder {
  const caller = candidate.translation?.caller
  if (!caller || caller === 'responses') return EVENT_FRAMES
  const nowSeconds = Math.floor(deps.clock() / 1000)
  return callerEncoder({ caller, modelId: model.id, usageAsked: outline.usageAsked, nowSeconds })
}

/** Events as they are, a frame each, for `modelTurn`, which reads them again. It always asks for streams. */
const EVENT_FRAMES: EventEncoder = {
  frames: (event) => [encodeFrame(null, event)],
  answer: () => {
    throw new Error('turns of responses are streams')
  },
}

const textEncoder = new TextEncoder()

/** A candidate of a translated call is asked in one of the two protocols. */
const originOf = ({ provider, upstreamModel, operation }: Candidate): string =>
  signatureOrigin(operation, upstreamModel, provider.id)

/** Apart from the call, so that it is not kept by what outlives it. */
const translatorOf = (translated: TranslatedCall, encoder: EventEncoder): StreamTranslator => ({
  frame: (frame) => translated.events(frame).flatMap((event) => encoder.frames(event)),
  finish: () => translated.ending().flatMap((event) => encoder.frames(event)),
})

/** Settles a stream when it has ended. */
async function streamEnd(ended: Promise<RelayEnd>, settlement: Settlement, meter: Meter): Promise<void> {
  settlement.closeStream(await ended, meter)
}

const isEventStream = (response: Response) =>
  response.headers.get('content-type')?.includes('text/event-stream') ?? false
