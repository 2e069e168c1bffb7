import type { CallOpening, CallOutcome } from '../governance/audit-record.ts'
import type { Principal } from '../governance/principal.ts'
import { ApiError } from '../lib/api-error.ts'
import { errorText, logEvent } from '../lib/log.ts'
import { parseFrame, type SseFrame, SseSplitter } from '../lib/sse.ts'
import { type CallRecord, emptyOutcome, openingOf } from './call-record.ts'
import { invokeModel, type ModelAnswer, type ModelDeps } from './invoke-model.ts'
import type { GovernedCall } from './opened-call.ts'
import { objectIn, objectOf, textOf } from './translation/json.ts'
import type { ModelEvent } from './translation/model-events.ts'
import { isContextOverflow, upstreamError } from './translation/upstream-errors.ts'

/** What one turn of a response asks of a model. */
export interface TurnRequest {
  identity: CallIdentity
  principal: Principal
  /** As confirmed with the limits. */
  catalogueEpoch: number
  /** A turn body (`protocols/responses.ts`). */
  body: Uint8Array
  /** The caller's headers. */
  headers: Headers
  /** Whether it counts against the limits: false for a further turn of a response. */
  counted: boolean
  /** Conditions of the HTTP request that its audit record names. */
  flags?: readonly string[]
}

/** What one call of the API is, before anything is decided. Never changed. */
export type CallIdentity = Omit<CallOpening, 'organizationId' | 'modelId'>

/** A turn that may be sent. Opaque: `sendTurn` or `withdrawTurn` takes it, once. */
export interface PlannedCall {
  answer: Promise<ModelAnswer>
  /** Resolved to have it sent, rejected to withdraw it. */
  sending: PromiseWithResolvers<void>
  abort: AbortController
  outcome: Promise<CallOutcome>
}

/** `call` is plain data: it can be stored, and settled by another life of its maker. */
export type TurnAdmission =
  | { kind: 'admitted'; planned: PlannedCall; call: GovernedCall }
  | { kind: 'refused'; error: ApiError }

/** What became of a turn that was sent. Its outcome is to be given to `settle`; the promise never rejects. */
export type SentTurn =
  | {
      kind: 'answered'
      /** Who gave the signatures of its thinking (`signatureOrigin`); null when it is not known. */
      origin: string | null
      /** Each batch is what arrived together. To be iterated once; ending early stops the upstream. May throw TurnFailure. */
      batches: AsyncIterable<ModelEvent[]>
      outcome: Promise<CallOutcome>
    }
  /** An ApiError, a TurnFailure for an error that the upstream answered, or the reason of the signal. */
  | { kind: 'failed'; error: unknown; outcome: CallOutcome }

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
 * Admits one turn of a response: access, policies, routes and the reservation are decided, and the ledger has opened the
 * call. Nothing is sent. A refusal is recorded.
 * @throws whatever is no decision, such as a ledger that is away.
 */
export async function admitTurn(deps: ModelDeps, request: TurnRequest): Promise<TurnAdmission> {
  const { principal, catalogueEpoch, body, headers } = request
  const record = recordOf(request)
  const admitted = Promise.withResolvers<void>()
  const sending = Promise.withResolvers<void>()
  const outcome = Promise.withResolvers<CallOutcome>()
  const abort = new AbortController()
  const opened: { call: GovernedCall | null } = { call: null }
  const answer = invokeModel(deps, {
    operation: 'responses',
    body,
    headers,
    signal: abort.signal,
    principal,
    catalogueEpoch,
    record,
    onOpened: (call) => {
      opened.call = call
    },
    onOutcome: outcome.resolve,
    onAdmitted: () => {
      admitted.resolve()
      return sending.promise
    },
  })
  sending.promise.catch(() => {})
  // What comes after the admission is `sendTurn`'s to tell.
  answer.catch(admitted.reject)
  try {
    await admitted.promise
  } catch (error) {
    if (opened.call) await settle(deps, opened.call, await outcome.promise)
    if (!(error instanceof ApiError)) throw error
    if (!opened.call) await recordRefusal(deps, principal.organizationId, record, error)
    return { kind: 'refused', error }
  }
  if (!opened.call) throw new Error('a turn was admitted without a call')
  const planned = { answer, sending, abort, outcome: outcome.promise }
  return { kind: 'admitted', planned, call: opened.call }
}

/** Sends an admitted turn. @param signal ends the call at any time. Never throws. */
export async function sendTurn(
  { clock }: ModelDeps,
  { answer, sending, abort, outcome }: PlannedCall,
  _call: GovernedCall,
  signal: AbortSignal,
): Promise<SentTurn> {
  const leave = () => abort.abort(signal.reason)
  if (signal.aborted) leave()
  else signal.addEventListener('abort', leave)
  sending.resolve()
  try {
    const { status, headers, body, origin = null } = await answer
    if (status < 400) return { kind: 'answered', origin, batches: batchesOf(body, signal), outcome }
    signal.throwIfAborted()
    throw upstreamRefusal(status, headers, await bytesOf(body), clock())
  } catch (error) {
    return { kind: 'failed', error, outcome: await outcome }
  }
}

/** Closes an admitted turn that is not sent after all: it ends with the error and costs nothing. Never rejects. */
export async function withdrawTurn(
  deps: ModelDeps,
  { answer, sending, outcome }: PlannedCall,
  call: GovernedCall,
  error: unknown,
): Promise<void> {
  sending.reject(error)
  await answer.catch(() => {})
  await settle(deps, call, await outcome)
}

/** Records a turn that is refused before it is admitted. Never rejects. */
export const refuseTurn = (
  deps: ModelDeps,
  { identity, organizationId }: { identity: CallIdentity; organizationId: string },
  error: ApiError,
): Promise<void> => recordRefusal(deps, organizationId, recordOf({ identity }), error)

/**
 * Closes a call with what it came to. Never rejects; a second close changes nothing.
 * @returns whether the ledger has it. Where not, the lease of the call runs out, or it may be tried again.
 */
export async function settle(
  { ledgerOf }: Pick<ModelDeps, 'ledgerOf'>,
  { organizationId, record }: GovernedCall,
  outcome: CallOutcome,
): Promise<boolean> {
  try {
    await ledgerOf(organizationId).close(record.callId, outcome)
    return true
  } catch (error) {
    logEvent('error', 'ledger_close_failed', { call_id: record.callId, error: errorText(error) })
    return false
  }
}

function recordOf({
  identity,
  flags = [],
}: {
  identity: CallIdentity
  flags?: readonly string[]
}): CallRecord {
  const { at, ...rest } = identity
  return { ...rest, startedAt: at, modelId: null, flags: [...flags], opened: false }
}

/** A refusal stays the refusal it is, also when it cannot be recorded. */
async function recordRefusal(
  { clock, ledgerOf }: ModelDeps,
  organizationId: string,
  record: CallRecord,
  { status, code, kind }: ApiError,
): Promise<void> {
  const outcome = emptyOutcome(
    record,
    clock(),
    status,
    code ?? (kind === 'internal' ? 'internal_error' : kind),
  )
  await ledgerOf(organizationId)
    .record(openingOf(record, organizationId), outcome)
    .catch((error) => logEvent('error', 'audit_failed', { error: errorText(error) }))
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
