import type { CallPolicy } from '../governance/dlp/call-policy.ts'
import { Inspection, passAllEngine } from '../governance/dlp/inspection.ts'
import { ApiError } from '../lib/api-error.ts'
import { applyEdits, type EditedBytes, joinBytes } from '../lib/byte-edits.ts'
import { JsonSyntaxError } from '../lib/json-scan.ts'
import { answerHeaders, streamHeaders } from './answer-headers.ts'
import type { Candidate } from './candidates.ts'
import type { CatalogModel } from './catalog/catalog.ts'
import { redactCredential, withoutCredential } from './credential-spellings.ts'
import { ExchangeMeter } from './exchange-meter.ts'
import type { ModelAnswer, ModelCall } from './invoke-model.ts'
import { type Metered, NOTHING_METERED } from './metering.ts'
import { OPERATIONS } from './operations.ts'
import type { AnswerContext, AnswerReading, Meter, Protocol } from './protocols/protocol.ts'
import type { RequestOutline } from './protocols/request-outline.ts'
import { framesOf, isStream } from './providers/provider.ts'
import { type Exchange, type RelayEnd, relayTimesOf, type StreamTranslator } from './relay-options.ts'
import type { Settlement } from './settlement.ts'
import { relayStream } from './stream-relay.ts'
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

/** One call at one candidate: what it asks, in one or more exchanges, and the answer it makes of it. */
export class CandidateCall {
  readonly #deps: AnswerDeps
  readonly #call: DispatchedCall
  readonly #candidate: Candidate
  readonly #translated: TranslatedCall | null
  #attempt: UpstreamAttempt
  /** Bytes of the request of the exchange at hand. */
  #sentBytes = 0
  /** A stream goes on by itself. */
  #streams = false
  readonly #answers = new WholeAnswers()

  /** @throws ApiError invalid_request for a request that cannot be said in the candidate's protocol. */
  constructor(deps: AnswerDeps, call: DispatchedCall, candidate: Candidate) {
    this.#deps = deps
    this.#call = call
    this.#candidate = candidate
    this.#translated = candidate.translation && translatedCall(deps, call, candidate)
    this.#attempt = new UpstreamAttempt(deps, call, candidate)
  }

  /** Sends the first exchange. @throws ApiError upstream */
  begin(): Promise<Response> {
    return this.#send(this.#translated?.nextBody() ?? this.#call.requestFor(this.#candidate))
  }

  #send(body: Pick<EditedBytes, 'pieces' | 'length'>): Promise<Response> {
    this.#sentBytes = body.length
    return this.#attempt.send(body)
  }

  /** @throws ApiError upstream for answers that are none. */
  async answer(response: Response): Promise<ModelAnswer> {
    if (response.status >= 400) return this.#upstreamError(response, NOTHING_METERED)
    if (!this.#translated)
      return isStream(this.#candidate.provider, response) ? this.#stream(response) : this.#whole(response)
    const answer = isStream(this.#candidate.provider, response)
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
    if (!this.#streams) this.#translated?.release()
    this.#answers.release()
    if (abort) this.#attempt.abort.abort()
  }

  /** Only our own credential is cut out of it (interface: Errors). */
  async #upstreamError(response: Response, use: Metered): Promise<ModelAnswer> {
    const { credential } = this.#candidate.provider
    const body = redactCredential(this.#answers.take(await this.#attempt.read(response)), credential)
    this.#call.settlement.close(response.status, 'upstream_error', use)
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
    const { generates } = OPERATIONS[operation]
    const use = generates ? settlement.answerUse(usage, textBytes) : NOTHING_METERED
    settlement.close(response.status, null, use)
    const headers = answerHeaders(response.headers, this.#candidate.provider.credential)
    return { status: response.status, headers, body: this.#handOver(pieces) }
  }

  async #translatedAnswer(first: Response, translated: TranslatedCall): Promise<ModelAnswer> {
    const { settlement, outline } = this.#call
    const { credential } = this.#candidate.provider
    const meter = new ExchangeMeter()
    const response = await this.#exchanges(first, translated, meter).catch((error: unknown) => {
      // What the exchanges before it used is paid for, whoever answers in the end.
      if (meter.usage() || meter.textBytes > 0) settlement.lose(settlement.streamUse(meter))
      throw error
    })
    if (response.status >= 400) return this.#upstreamError(response, settlement.streamUse(meter))
    settlement.close(200, null, settlement.streamUse(meter))
    if (outline.stream) {
      const headers = streamHeaders(response.headers, credential)
      return { status: 200, headers, body: this.#handOver(translated.resultAsFrames()) }
    }
    const headers = answerHeaders(response.headers, credential)
    headers.set('content-type', 'application/json')
    return { status: 200, headers, body: this.#handOver([translated.result()]) }
  }

  /** Takes whole answers until the call is complete. @returns the last one, or an error in place of a further one. */
  async #exchanges(first: Response, translated: TranslatedCall, meter: ExchangeMeter): Promise<Response> {
    const { settlement } = this.#call
    const inspection = this.#call.policy.responseInspection()
    let response = first
    for (;;) {
      const { original, pieces, usage, textBytes } = await this.#read(response, inspection)
      meter.add(usage, textBytes, this.#sentBytes)
      const refused = this.#parse(() => translated.answer(joinBytes(pieces), original))
      if (refused !== null) throw noAnswer(this.#redacted(refused))
      if (!translated.goesOn(settlement.affordsAgain(meter))) return response
      settlement.keepAlive(meter, longestAnswer(this.#deps.configuration))
      response = await this.#exchange(translated)
      if (response.status >= 400) return response
    }
  }

  /** A further exchange of the same call. */
  #exchange(translated: TranslatedCall): Promise<Response> {
    this.#attempt.dispose()
    this.#attempt = new UpstreamAttempt(this.#deps, this.#call, this.#candidate)
    return this.#send(translated.nextBody())
  }

  /** Reads and inspects a whole answer. */
  async #read(
    response: Response,
    inspection: Inspection,
  ): Promise<Pick<AnswerReading, 'usage' | 'textBytes'> & { original: Uint8Array; pieces: Uint8Array[] }> {
    const body = this.#answers.take(await this.#attempt.read(response))
    if (body.length === 0) throw noAnswer('The upstream sent an empty answer.')
    if (isStream(this.#candidate.provider, response))
      throw noAnswer('The upstream streamed an answer that was asked for whole.')
    this.#call.settlement.response = inspection.counts
    inspection.begin()
    const reading = this.#parse(() => this.#reading(body, inspection))
    const edited = applyEdits(body, reading.edits)
    inspection.sink(edited.released, edited.withheld)
    return {
      original: body,
      pieces: edited.pieces,
      usage: reading.usage,
      textBytes: reading.textBytes,
    }
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
    return OPERATIONS[this.#candidate.operation].protocol
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
    const meter = new ExchangeMeter()
    const live = { abort: this.#attempt.abort }
    const exchange = this.#streamedExchange(response, inspection, meter)
    const relay = await relayStream({
      ...exchange,
      dialect: protocol.dialect,
      translator: this.#translated && this.#translator(this.#translated, inspection, meter, live),
      inspection,
      times: relayTimesOf(this.#deps.configuration),
      clock: this.#deps.clock,
      callerSignal: signal,
      abortUpstream: () => live.abort.abort(),
      redact: (bytes) => redactCredential(bytes, credential),
      onTick: () => {
        settlement.keepAlive(meter)
        return settlement.lapsed ? 'The call could no longer be accounted for.' : null
      },
    })
    if (!relay.started) {
      if (relay.end.kind === 'client_left') throw new Error('the caller left')
      this.#attempt.gaveNothing(`stream_${relay.end.reason}`, relay.end.reason === 'timeout')
      // Its beginning must not pass; the upstream has made it all the same.
      if (relay.end.error) settlement.lose(settlement.streamUse(meter))
      throw relay.end.error ?? noAnswer(relay.end.message)
    }
    this.#streams = true
    this.#deps.waitUntil(streamEnd(relay.ended, settlement, meter, this.#translated))
    const headers = streamHeaders(response.headers, credential)
    return { status: response.status, headers, body: relay.body }
  }

  #streamedExchange(response: Response, inspection: Inspection, meter: ExchangeMeter): Exchange {
    if (!response.body) throw noAnswer('The upstream sent an empty answer.')
    this.#attempt.streams()
    const reader = this.#protocol.streamReader(this.#context(inspection))
    meter.follow(reader, this.#sentBytes)
    return { upstream: response.body, frames: framesOf(this.#candidate.provider, response), reader }
  }

  #translator(
    translated: TranslatedCall,
    inspection: Inspection,
    meter: ExchangeMeter,
    live: { abort: AbortController },
  ): StreamTranslator {
    const { settlement } = this.#call
    const next = translated.mayGoOn ? this.#continuation(translated, inspection, meter, live) : nothingMore
    return translatorOf(translated, settlement, meter, next)
  }

  #continuation(
    translated: TranslatedCall,
    inspection: Inspection,
    meter: ExchangeMeter,
    live: { abort: AbortController },
  ): () => Promise<Exchange> {
    return async () => {
      const sent = this.#exchange(translated)
      live.abort = this.#attempt.abort
      const response = await sent
      if (response.status >= 400 || !isStream(this.#candidate.provider, response)) {
        await response.body?.cancel()
        this.#attempt.dispose()
        throw noAnswer(`The upstream did not continue its answer (status ${response.status}).`)
      }
      return this.#streamedExchange(response, inspection, meter)
    }
  }
}

function translatedCall(deps: AnswerDeps, call: DispatchedCall, candidate: Candidate): TranslatedCall | null {
  const { model, outline } = call
  if (!candidate.translation) return null
  return new TranslatedCall(joinBytes(call.requestFor(candidate).pieces), {
    ...candidate.translation,
    target: {
      upstreamModel: candidate.upstreamModel,
      maxOutputTokens: model.maxOutputTokens,
      capabilities: model.capabilities,
      origin: originOf(candidate),
    },
    modelId: model.id,
    usageAsked: outline.usageAsked,
    nowSeconds: Math.floor(deps.clock() / 1000),
  })
}

/** A candidate of a translated call is asked in one of the two protocols. */
const originOf = ({ provider, upstreamModel, operation }: Candidate): string =>
  signatureOrigin(operation, upstreamModel, provider.id)

/** Apart from the call, so that it is not kept by what outlives it. */
const translatorOf = (
  translated: TranslatedCall,
  settlement: Settlement,
  meter: Meter,
  next: () => Promise<Exchange>,
): StreamTranslator => ({
  frame: (frame, original) => translated.frame(frame, original),
  goesOn: () => translated.goesOn(settlement.affordsAgain(meter)),
  finish: () => translated.finish(),
  next,
})

/** Settles a stream when it has ended, and lets go of what it was made from. */
async function streamEnd(
  ended: Promise<RelayEnd>,
  settlement: Settlement,
  meter: Meter,
  translated: TranslatedCall | null,
): Promise<void> {
  const end = await ended
  translated?.release()
  settlement.closeStream(end, meter)
}

/** Milliseconds that a further exchange can take. */
const longestAnswer = (configuration: AnswerDeps['configuration']) =>
  configuration.UPSTREAM_CONNECT_TIMEOUT_MS + configuration.UPSTREAM_ANSWER_TIMEOUT_MS

const nothingMore = () => Promise.reject(new Error('the call is complete'))
