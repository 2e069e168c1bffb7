/** One turn of a response: a governed model call whose answer is a sequence of events. */

import type { GovernedCall, Refused } from '../calls/governed-call.ts'
import { inspectBody } from '../dlp/json-inspection.ts'
import type { CallPolicy } from '../dlp/policy/call-policy.ts'
import type { CallOutcome } from '../ledger/audit-record.ts'
import { redactCredential } from '../lib/secret-spellings.ts'
import { runSlices } from '../lib/slices.ts'
import { outcomeOfSent } from './call-outcome.ts'
import type { ChargeBasis } from './calls/charges.ts'
import type { AdmittedCall, ModelRequest, PlannedCall } from './calls/model-call.ts'
import { originOf } from './calls/route-request.ts'
import { TurnFailure } from './calls/turn-failure.ts'
import { errorOf } from './http-answer.ts'
import { admitModelCall, type ModelDeps } from './invoke-model.ts'
import { textOf } from './protocols/json.ts'
import { BufferedResponses } from './relay/buffered-responses.ts'
import { upstreamError, waitInBody } from './translation/error-shapes.ts'
import type { ModelEvent } from './translation/model-events.ts'
import { isContextOverflow, providerMessage } from './translation/upstream-errors.ts'
import { type FailoverResult, sendWithFailover } from './upstreams/failover.ts'
import { requestedWait } from './upstreams/route-health.ts'

/** The request of one turn. Its body is a model request (`protocols/responses.ts`). */
export type TurnRequest = Omit<ModelRequest, 'operation'>

/** A turn that the ledger holds open. Plain data: the response object can settle it after a restart. */
export interface OpenTurn {
  call: GovernedCall
  basis: ChargeBasis
  /** Name of the provider of the first route. */
  provider: string | null
}

export type AdmittedTurn = AdmittedCall & { open: OpenTurn }

export type SentTurn =
  | {
      kind: 'answered'
      /** Issuer of the signatures of its thinking (`signatureOrigin`). */
      origin: string
      /** A batch is what arrived together. To be iterated once; ending early stops the upstream. */
      batches: AsyncIterable<ModelEvent[]>
      /** Never rejects. */
      outcome: Promise<CallOutcome>
    }
  | { kind: 'failed'; error: Error; outcome: Promise<CallOutcome> }

/** `admitModelCall` for a turn. */
export async function admitTurn(deps: ModelDeps, request: TurnRequest): Promise<AdmittedTurn | Refused> {
  const admitted = await admitModelCall(deps, { ...request, operation: 'responses' })
  if (admitted.kind === 'refused') return admitted
  const { planned, call } = admitted
  const provider = planned.routes[0]?.provider.name ?? null
  return { ...admitted, open: { call, basis: planned.basis, provider } }
}

/**
 * Sends an admitted turn. Before the batches are iterated, only the beginning of the answer is read.
 * @param signal ends the turn at any time; the batches then throw its reason.
 * @returns never throws. The batches throw TurnFailure for an answer that fails before its end.
 */
export async function sendTurn(
  deps: ModelDeps,
  planned: PlannedCall,
  call: GovernedCall,
  signal: AbortSignal,
): Promise<SentTurn> {
  const buffered = new BufferedResponses()
  const sending = sendWithFailover(deps, planned, call, { signal, form: 'events', buffered }).finally(() =>
    buffered.release(),
  )
  const sent = await Promise.race([sending, aborted(signal)])
  if (sent) {
    const { policy } = planned
    return turnOf(sent, outcomeOfSent(deps, planned, call, sent), { policy, signal, now: deps.clock() })
  }
  // A turn that reasons is read on for its usage, which its response does not wait for.
  const outcome = sending.then((late) => outcomeOfSent(deps, planned, call, late))
  return { kind: 'failed', error: errorOf(signal.reason), outcome }
}

/** Resolves when a signal fires, after the reactions to it that are immediate. */
function aborted(signal: AbortSignal): Promise<null> {
  return new Promise((resolve) => {
    const later = () => setTimeout(() => resolve(null), 0)
    if (signal.aborted) later()
    else signal.addEventListener('abort', later, { once: true })
  })
}

/** @param now milliseconds since the epoch. */
async function turnOf(
  { answer, route }: FailoverResult,
  outcome: Promise<CallOutcome>,
  { policy, signal, now }: { policy: CallPolicy; signal: AbortSignal; now: number },
): Promise<SentTurn> {
  if (answer.kind === 'failed') return { kind: 'failed', error: errorOf(answer.error), outcome }
  if (answer.kind === 'client_left' || !route) {
    return { kind: 'failed', error: errorOf(signal.reason), outcome }
  }
  if (answer.kind === 'upstream_error') {
    const body = redactCredential(answer.body, route.provider.credential)
    try {
      const inspected = await runSlices(inspectBody(policy.responseInspection(), body))
      return { kind: 'failed', error: upstreamRefusal(answer.response, inspected, now), outcome }
    } catch (error) {
      return { kind: 'failed', error: errorOf(error), outcome }
    }
  }
  const { content } = answer
  if ('pieces' in content || 'body' in content) throw new Error('a turn is answered by events')
  const batches = 'events' in content ? [content.events] : content.batches
  return { kind: 'answered', origin: originOf(route), batches: untilAborted(batches, signal), outcome }
}

/** A turn that its signal ended fails, even when its answer has come in full. */
async function* untilAborted(
  batches: AsyncIterable<ModelEvent[]> | Iterable<ModelEvent[]>,
  signal: AbortSignal,
): AsyncGenerator<ModelEvent[]> {
  for await (const batch of batches) yield batch
  signal.throwIfAborted()
}

/** Characters of an upstream's error message. */
const LONGEST_MESSAGE = 4_096
const CONTEXT_ADVICE =
  'Send context_management to have a long conversation compacted, or truncation "auto" to drop its oldest items.'
/** Codes of upstreams are passed on where they are words; all codes that clients use are. */
const WORD = /^[A-Za-z][A-Za-z0-9_.-]{0,63}$/

/** @param now milliseconds since the epoch. */
function upstreamRefusal({ status, headers }: Response, body: Uint8Array, now: number): TurnFailure {
  const error = upstreamError(body)
  const given = textOf(error.code)
  const wait = requestedWait(headers, now) ?? waitInBody(body)
  const isTooLong = isContextOverflow(error)
  const message = providerMessage(status, error).slice(0, LONGEST_MESSAGE)
  return new TurnFailure(isTooLong ? `${message.replace(/\.?$/, '.')} ${CONTEXT_ADVICE}` : message, {
    status,
    code: isTooLong ? 'context_length_exceeded' : WORD.test(given) ? given : codeOf(status),
    ...(wait !== null && { retryAfterSeconds: Math.max(1, Math.ceil(wait / 1000)) }),
  })
}

/** Codes of the official types (`ResponseError.code` in https://platform.openai.com/docs/api-reference/responses/object). */
function codeOf(status: number): string {
  if (status === 429) return 'rate_limit_exceeded'
  return status === 400 || status === 413 || status === 422 ? 'invalid_prompt' : 'server_error'
}
