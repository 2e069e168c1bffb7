import { parseFrame, type SseFrame, SseSplitter } from '../lib/sse.ts'
import { invokeModel, type ModelAnswer, type ModelCall, type ModelDeps } from './invoke-model.ts'
import { objectIn, objectOf, textOf } from './translation/json.ts'
import type { ModelEvent } from './translation/model-events.ts'
import { isContextOverflow, upstreamError } from './translation/upstream-errors.ts'

/** The answer to one turn, as it comes. */
export interface ModelTurn {
  /** Who gave the signatures of its thinking (`signatureOrigin`); null when it is not known. */
  origin: string | null
  /** Each batch is what arrived together. To be iterated once; ending early stops the upstream. */
  batches: AsyncIterable<ModelEvent[]>
}

/** The upstream said no, or broke off. `message` is safe to tell: it is without our credential. */
export class TurnFailure extends Error {
  /** Of the upstream's answer; null when it broke off after its beginning. */
  readonly status: number | null
  readonly code: string
  readonly retryAfterSeconds?: number

  constructor(message: string, told: { status: number | null; code: string; retryAfterSeconds?: number }) {
    super(message)
    this.name = 'TurnFailure'
    this.status = told.status
    this.code = told.code
    if (told.retryAfterSeconds !== undefined) this.retryAfterSeconds = told.retryAfterSeconds
  }
}

/** Characters of what an upstream says. */
const LONGEST_MESSAGE = 4_096
/** Codes of upstreams are told where they are words, as all that clients know are. */
const WORD = /^[A-Za-z][A-Za-z0-9_.-]{0,63}$/
const BROKEN_OFF = 'stream_error'
const decoder = new TextDecoder()

/**
 * Makes one governed call for a turn of a response: `invokeModel` with the operation `responses`, its answer as events.
 * Nothing is read of the answer before the batches are asked for, and no more than they are.
 * @param call its body is a turn body (`protocols/responses.ts`); its signal ends the call at any time.
 * @throws ApiError as `invokeModel` does, TurnFailure for an error that the upstream answered (which the batches throw
 * when it comes later), the reason of the signal once it has fired.
 */
export async function modelTurn(deps: ModelDeps, call: Omit<ModelCall, 'operation'>): Promise<ModelTurn> {
  const { signal } = call
  const answer = await invokeModel(deps, { ...call, operation: 'responses' })
  const { status, headers, body, origin = null } = answer
  if (status < 400) return { origin, batches: batchesOf(body, signal) }
  signal.throwIfAborted()
  throw upstreamRefusal(status, headers, await bytesOf(body), deps.clock())
}

/** Apart from the call, whose body need not be kept for as long as a model talks. */
async function* batchesOf(body: ModelAnswer['body'], signal: AbortSignal): AsyncGenerator<ModelEvent[]> {
  const splitter = new SseSplitter()
  let ended = false
  for await (const bytes of chunksOf(body, signal)) {
    const { events, failure } = eventsIn(splitter.push(bytes))
    if (events.length > 0) yield events
    if (failure) throw failure
    ended ||= events.some(({ type }) => type === 'end')
  }
  if (ended) return
  signal.throwIfAborted()
  throw brokenOff()
}

function eventsIn(frames: readonly Uint8Array[]): { events: ModelEvent[]; failure: TurnFailure | null } {
  const events: ModelEvent[] = []
  for (const bytes of frames) {
    const frame = parseFrame(bytes)
    if (frame.data === null) continue
    if (frame.event === 'error') return { events, failure: toldFailure(frame) }
    events.push(JSON.parse(decoder.decode(frame.data)) as ModelEvent)
  }
  return { events, failure: null }
}

/** What one read brings after the other; cancels the source when its reader stops early. */
async function* chunksOf(body: ModelAnswer['body'], signal: AbortSignal): AsyncGenerator<Uint8Array> {
  if (body instanceof Uint8Array) {
    yield body
    return
  }
  const reader = body.getReader()
  let done = false
  try {
    while (!done) {
      const read = await reader.read()
      done = read.done
      if (read.value) yield read.value
    }
  } catch {
    done = true
    signal.throwIfAborted()
    throw brokenOff()
  } finally {
    if (!done) await reader.cancel().catch(() => {})
  }
}

const brokenOff = () => new TurnFailure('The answer broke off.', { status: null, code: BROKEN_OFF })

/** A failure after the beginning, as the dialect of turns says it. */
function toldFailure({ data }: SseFrame): TurnFailure {
  const error = objectOf(objectIn(decoder.decode(data ?? new Uint8Array()))?.error)
  return new TurnFailure(textOf(error.message) || 'The answer broke off.', {
    status: null,
    code: textOf(error.code) || BROKEN_OFF,
  })
}

async function bytesOf(body: ModelAnswer['body']): Promise<Uint8Array> {
  return body instanceof Uint8Array ? body : new Uint8Array(await new Response(body).arrayBuffer())
}

/** @param now milliseconds since the epoch. */
function upstreamRefusal(status: number, headers: Headers, body: Uint8Array, now: number): TurnFailure {
  const error = upstreamError(body)
  const told = textOf(error.message) || `The upstream answered with status ${status}.`
  const given = textOf(error.code)
  const seconds = retryAfter(headers.get('retry-after'), now)
  return new TurnFailure(told.slice(0, LONGEST_MESSAGE), {
    status,
    code: isContextOverflow(error) ? 'context_length_exceeded' : WORD.test(given) ? given : codeOf(status),
    ...(seconds !== null && { retryAfterSeconds: seconds }),
  })
}

/** Codes of the official types (`ResponseError.code` in https://platform.openai.com/docs/api-reference/responses/object). */
function codeOf(status: number): string {
  if (status === 429) return 'rate_limit_exceeded'
  return status === 400 || status === 413 || status === 422 ? 'invalid_prompt' : 'server_error'
}

/** https://www.rfc-editor.org/rfc/rfc9110#field.retry-after @returns seconds, at least one; null when none are told. */
function retryAfter(value: string | null, now: number): number | null {
  if (value === null) return null
  const seconds = value.trim() === '' ? Number.NaN : Number(value)
  const wait = Number.isNaN(seconds) ? (Date.parse(value) - now) / 1000 : seconds
  return Number.isFinite(wait) ? Math.max(1, Math.ceil(wait)) : null
}
