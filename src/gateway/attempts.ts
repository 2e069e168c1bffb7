/** One call over its candidates: each attempt is recorded, and only an attempt that gave nothing is followed by another. */
import { Inspection, passAllEngine } from '../governance/dlp/inspection.ts'
import { ApiError } from '../lib/api-error.ts'
import { applyEdits, type EditedBytes, joinBytes } from '../lib/byte-edits.ts'
import type { Clock } from '../lib/clock.ts'
import { JsonSyntaxError } from '../lib/json-scan.ts'
import { errorText, logEvent } from '../lib/log.ts'
import { readAll } from '../lib/read-stream.ts'
import { answerHeaders, redactCredential, streamHeaders } from './answer-headers.ts'
import type { CallRecord } from './call-record.ts'
import type { CatalogModel, Route } from './catalog/catalog.ts'
import type { ModelAnswer, ModelCall } from './invoke-model.ts'
import { NOTHING_METERED } from './metering.ts'
import type { AnswerContext, Protocol, StreamReader } from './protocols/protocol.ts'
import type { RequestOutline } from './protocols/request-outline.ts'
import { ProviderUnreachable, sendToProvider } from './providers/provider.ts'
import { CLIENT_LEFT, type Settlement } from './settlement.ts'
import { type RelayEnd, type RelayTimes, relayStream } from './stream-relay.ts'

export interface AnswerDeps {
  clock: Clock
  waitUntil: (work: Promise<unknown>) => void
  configuration: {
    EGRESS_ALLOW: readonly string[]
    UPSTREAM_HEADERS_TIMEOUT_MS: number
    UPSTREAM_FIRST_EVENT_TIMEOUT_MS: number
    UPSTREAM_EVENT_TIMEOUT_MS: number
    UPSTREAM_ANSWER_TIMEOUT_MS: number
    STREAM_COMMIT_MS: number
    STREAM_HEARTBEAT_MS: number
    LEDGER_LEASE_MS: number
  }
}

/** A call that the ledger has opened. */
export interface DispatchedCall extends ModelCall {
  protocol: Protocol
  outline: RequestOutline
  model: CatalogModel
  routes: readonly Route[]
  settlement: Settlement
  requestFor: (route: Route) => EditedBytes
}

/** Answers of an upstream are held whole up to this; a longer one is refused. */
const LONGEST_ANSWER_BYTES = 32 * 1024 * 1024
const RETRYABLE = new Set([408, 409, 429, 500, 502, 503, 504, 529])

/**
 * Tries the candidates in order. Another is tried only while nothing was sent to the caller and the last one could
 * not be reached or asked for a retry.
 * @throws ApiError upstream when none answered.
 */
export async function dispatch(deps: AnswerDeps, call: DispatchedCall): Promise<ModelAnswer> {
  let failure: ApiError | null = null
  for (const [index, route] of call.routes.entries()) {
    const last = index === call.routes.length - 1
    const attempt = new UpstreamAttempt(deps, call, route)
    try {
      const response = await attempt.send()
      if (!last && RETRYABLE.has(response.status)) await response.body?.cancel()
      else return await attempt.answer(response)
    } catch (error) {
      if (call.signal.aborted) {
        call.settlement.callerLeft()
        return { status: CLIENT_LEFT, headers: new Headers(), body: new Uint8Array() }
      }
      if (!(error instanceof ApiError) || error.kind !== 'upstream') throw error
      failure = error
    } finally {
      attempt.dispose()
    }
  }
  throw failure ?? noAnswer('The upstream gave no answer.')
}

/** Interface, errors of chat completions: an upstream without a body is 502 `upstream_empty_body`. */
const noAnswer = (message: string) => new ApiError('upstream', message, { code: 'upstream_empty_body' })

class UpstreamAttempt {
  readonly #deps: AnswerDeps
  readonly #call: DispatchedCall
  readonly #route: Route
  readonly #abort = new AbortController()
  readonly #startedAt: number
  #timer: ReturnType<typeof setTimeout> | undefined
  #timedOut = false
  #recorded = false
  readonly #leave = () => this.#abort.abort()

  constructor(deps: AnswerDeps, call: DispatchedCall, route: Route) {
    this.#deps = deps
    this.#call = call
    this.#route = route
    this.#startedAt = deps.clock()
    call.signal.addEventListener('abort', this.#leave)
    if (call.signal.aborted) this.#abort.abort()
  }

  /** @throws ApiError upstream when the provider cannot be reached in time. */
  async send(): Promise<Response> {
    const { configuration } = this.#deps
    const { outline } = this.#call
    this.#limit(
      outline.stream ? configuration.UPSTREAM_HEADERS_TIMEOUT_MS : configuration.UPSTREAM_ANSWER_TIMEOUT_MS,
    )
    const edited = this.#call.requestFor(this.#route)
    this.#call.settlement.provider = this.#route.provider.name
    try {
      this.#abort.signal.throwIfAborted()
      this.#call.settlement.sent = true
      const response = await sendToProvider(this.#route.provider, {
        operation: this.#call.operation,
        pieces: edited.pieces,
        length: edited.length,
        callerHeaders: this.#call.headers,
        stream: outline.stream,
        signal: this.#abort.signal,
        allow: configuration.EGRESS_ALLOW,
      })
      this.#recordAttempt(response.status, null)
      return response
    } catch (error) {
      throw this.#noAnswer(error)
    }
  }

  #noAnswer(error: unknown): ApiError {
    const reason = this.#timedOut
      ? 'timeout'
      : error instanceof ProviderUnreachable
        ? error.reason
        : 'aborted'
    this.#recordAttempt(null, reason)
    this.#call.settlement.unanswered ||= this.#timedOut
    logEvent('warn', 'upstream_failed', {
      provider: this.#route.provider.name,
      reason,
      error: errorText(error instanceof Error ? (error.cause ?? error) : error),
    })
    return noAnswer(
      this.#timedOut ? 'The upstream did not answer in time.' : 'The upstream could not be reached.',
    )
  }

  #limit(milliseconds: number): void {
    this.#timer = setTimeout(() => {
      this.#timedOut = true
      this.#abort.abort()
    }, milliseconds)
  }

  #recordAttempt(status: number | null, failure: string | null): void {
    if (this.#recorded) return
    this.#recorded = true
    this.#call.settlement.attempts.push({
      provider: this.#route.provider.name,
      upstreamModel: this.#route.upstreamModel,
      status,
      failure,
      durationMilliseconds: this.#deps.clock() - this.#startedAt,
    })
  }

  async answer(response: Response): Promise<ModelAnswer> {
    if (response.status >= 400) return this.#upstreamError(response)
    const isStream = response.headers.get('content-type')?.includes('text/event-stream') ?? false
    if (isStream && response.body) return this.#stream(response, response.body)
    return this.#whole(response)
  }

  /** Forwarded unchanged in body and content type; only our own credential is cut out (interface: Errors). */
  async #upstreamError(response: Response): Promise<ModelAnswer> {
    const body = await this.#read(response)
    const headers = answerHeaders(response.headers, this.#route.provider.credential)
    // Interface, Limits: every 429 says when to come back, also when the upstream does not.
    if (
      response.status === 429 &&
      !(Number(headers.get('retry-after')) >= 1 || isDate(headers.get('retry-after')))
    ) {
      headers.set('retry-after', DEFAULT_RETRY_SECONDS)
    }
    this.#call.settlement.close(response.status, 'upstream_error', NOTHING_METERED)
    return { status: response.status, headers, body: redactCredential(body, this.#route.provider.credential) }
  }

  async #whole(response: Response): Promise<ModelAnswer> {
    const { protocol, settlement } = this.#call
    const body = await this.#read(response)
    if (body.length === 0) throw noAnswer('The upstream sent an empty answer.')
    const inspection = new Inspection(passAllEngine)
    const reading = this.#parse(() => protocol.readAnswer(body, this.#context(inspection)))
    const edited = applyEdits(body, reading.edits)
    inspection.sink(edited.released, edited.withheld)
    settlement.response = inspection.counts
    const use =
      this.#call.operation === 'count_tokens'
        ? NOTHING_METERED
        : settlement.answerUse(reading.usage, reading.textBytes)
    settlement.close(response.status, null, use)
    const headers = answerHeaders(response.headers, this.#route.provider.credential)
    return { status: response.status, headers, body: joinBytes(edited.pieces) }
  }

  #parse<Result>(read: () => Result): Result {
    try {
      return read()
    } catch (error) {
      if (error instanceof JsonSyntaxError) throw noAnswer('The upstream sent an answer that is not JSON.')
      throw error
    }
  }

  #context(inspection: Inspection): AnswerContext {
    const { model, outline } = this.#call
    return {
      inspection,
      modelId: this.#route.upstreamModel === model.id ? null : model.id,
      usageAsked: outline.usageAsked,
    }
  }

  async #read(response: Response): Promise<Uint8Array> {
    if (!response.body) return new Uint8Array()
    try {
      return await readAll(response.body, LONGEST_ANSWER_BYTES)
    } catch {
      this.#call.settlement.unanswered = true
      throw noAnswer(
        this.#timedOut ? 'The upstream did not answer in time.' : 'The upstream broke off its answer.',
      )
    }
  }

  /**
   * What lives as long as the stream is named one by one: a reference to this attempt would keep the request's body,
   * which may be 50 MB, for as long as a model talks.
   */
  async #stream(response: Response, upstream: ReadableStream<Uint8Array>): Promise<ModelAnswer> {
    clearTimeout(this.#timer)
    const abort = this.#abort
    const { credential } = this.#route.provider
    const { protocol, settlement, signal, record } = this.#call
    const inspection = new Inspection(passAllEngine)
    settlement.response = inspection.counts
    const reader = protocol.streamReader(this.#context(inspection))
    const relay = await relayStream({
      upstream,
      reader,
      inspection,
      times: relayTimes(this.#deps.configuration),
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
      settlement.unanswered ||= relay.end.reason === 'timeout'
      throw noAnswer(relay.end.message)
    }
    this.#deps.waitUntil(relay.ended.then((end) => settleStream(end, reader, settlement, record)))
    const headers = streamHeaders(response.headers, credential)
    return { status: response.status, headers, body: relay.body }
  }

  /** After `answer` a stream goes on by itself; what watched the beginning ends here. */
  dispose(): void {
    clearTimeout(this.#timer)
    this.#call.signal.removeEventListener('abort', this.#leave)
  }
}

const DEFAULT_RETRY_SECONDS = '1'
const isDate = (text: string | null) =>
  text !== null && Number.isNaN(Number(text)) && !Number.isNaN(Date.parse(text))

function relayTimes(configuration: AnswerDeps['configuration']): RelayTimes {
  return {
    commit: configuration.STREAM_COMMIT_MS,
    heartbeat: configuration.STREAM_HEARTBEAT_MS,
    firstEvent: configuration.UPSTREAM_FIRST_EVENT_TIMEOUT_MS,
    betweenEvents: configuration.UPSTREAM_EVENT_TIMEOUT_MS,
  }
}

function settleStream(end: RelayEnd, reader: StreamReader, settlement: Settlement, record: CallRecord): void {
  if (end.kind === 'client_left') record.flags.push('client_left')
  if (end.kind === 'failed') record.flags.push(`stream_${end.reason}`)
  const errorCode = { completed: null, client_left: 'client_left', failed: 'stream_error' }[end.kind]
  settlement.close(end.kind === 'client_left' ? CLIENT_LEFT : 200, errorCode, settlement.streamUse(reader))
}
