/**
 * The one door to a model, in three steps: a call is admitted (planned, allowed, paid for, opened in the ledger), sent
 * (over its routes, inspected and metered on the way back), and settled by whoever sent it. No other module reaches a
 * provider.
 */
import type { CallOutcome } from '../governance/audit-record.ts'
import { errorCodeOf, type GovernedCall, outcomeOf } from '../governance/governed-call.ts'
import { ApiError } from '../lib/api-error.ts'
import { Affinity, type AffinityDeps } from './affinity.ts'
import type { AdmitDeps } from './admit-call.ts'
import { answerHeaders, streamHeaders } from './answer-headers.ts'
import type { Candidate } from './candidates.ts'
import { answerCharge, type Charge, NO_CHARGE, withLost } from './charges.ts'
import { answerTokenCount } from './count-tokens.ts'
import { redactCredential } from './credential-spellings.ts'
import { type Dispatched, type DispatchDeps, dispatch } from './dispatch.ts'
import type { ModelAnswer, PlannedCall, SentCall } from './model-call.ts'
import { OPERATIONS } from './operations.ts'
import type { WholeAnswer } from './route-attempt.ts'
import { CLIENT_LEFT, encoderOf, type StartedStream } from './stream-answer.ts'
import { upstreamErrorAnswer } from './upstream-error-answer.ts'
import { WholeAnswers } from './whole-answers.ts'

export { admitModelCall } from './admit-call.ts'

export type ModelDeps = AdmitDeps &
  DispatchDeps &
  AffinityDeps & { waitUntil: (work: Promise<unknown>) => void }

/**
 * Sends an admitted call over its routes and makes its caller's answer of what comes back.
 * @param signal fires when the caller leaves, which ends the call.
 * @returns never throws. `outcome` is to be settled; of a stream it comes with its end.
 */
export async function sendModelCall(
  deps: ModelDeps,
  planned: PlannedCall,
  call: GovernedCall,
  signal: AbortSignal,
): Promise<SentCall> {
  if (planned.candidates.length === 0) return answerTokenCount(deps, planned, call, signal)
  const answers = new WholeAnswers()
  try {
    const affinity = affinityOf(deps, planned)
    const sent = await dispatch(deps, planned, call, { signal, form: 'http', affinity, answers })
    return answered(deps, planned, call, sent, { signal, answers })
  } finally {
    answers.release()
  }
}

/** Where the conversation of a call belongs. Counting tokens uses no prompt cache. */
export function affinityOf(
  deps: AffinityDeps,
  { request, candidates, model, outline }: PlannedCall,
): Affinity | null {
  if (!OPERATIONS[request.operation].generates) return null
  const { organizationId } = request.principal
  const { headers } = request
  return Affinity.begin(deps, candidates, { organizationId, modelId: model.id, headers, outline })
}

interface HttpCaller {
  signal: AbortSignal
  answers: WholeAnswers
}

function answered(
  deps: ModelDeps,
  planned: PlannedCall,
  call: GovernedCall,
  sent: Dispatched,
  caller: HttpCaller,
): SentCall {
  const { answer, candidate } = sent
  const outcome = outcomeOfSent(deps, planned, call, sent)
  if (answer.kind === 'failed') return { kind: 'failed', error: errorOf(answer.error), outcome }
  if (answer.kind === 'client_left' || !candidate) {
    return { kind: 'answered', answer: NOBODY_WAITS, outcome }
  }
  const { credential } = candidate.provider
  if (answer.kind === 'upstream_error') {
    // Only our own credential is cut out of it (interface: Errors).
    const error = upstreamErrorAnswer(answer.response, redactCredential(answer.body, credential), candidate)
    return { kind: 'answered', answer: { ...error, body: handOver(deps, caller, [error.body]) }, outcome }
  }
  const made =
    answer.kind === 'stream'
      ? streamedAnswer(answer, candidate)
      : wholeAnswer(deps, planned, answer, candidate, caller)
  return { kind: 'answered', answer: made, outcome }
}

/** The caller left before there was an answer. */
const NOBODY_WAITS: ModelAnswer = { status: CLIENT_LEFT, headers: new Headers(), body: new Uint8Array() }

export const errorOf = (error: unknown): Error =>
  error instanceof Error ? error : new Error('a call failed', { cause: error })

function streamedAnswer(stream: StartedStream, { provider }: Candidate): ModelAnswer {
  if (!('body' in stream.content)) throw new Error('a stream of events has no body')
  const headers = streamHeaders(stream.upstreamHeaders, provider.credential)
  return { status: stream.status, headers, body: stream.content.body }
}

function wholeAnswer(
  deps: ModelDeps,
  { request, model, outline }: PlannedCall,
  { status, upstreamHeaders, content }: WholeAnswer,
  candidate: Candidate,
  caller: HttpCaller,
): ModelAnswer {
  const { credential } = candidate.provider
  const headers = answerHeaders(upstreamHeaders, credential)
  if ('pieces' in content) return { status, headers, body: handOver(deps, caller, content.pieces) }
  const { operation } = request
  const { usageAsked } = outline
  const encoder = encoderOf(deps, { candidate, caller: { operation, modelId: model.id, usageAsked } })
  if (outline.stream) {
    // The upstream would not stream: its answer is the stream that was asked for.
    const frames = content.events.flatMap((event) => encoder.frames(event))
    return { status: 200, headers: streamHeaders(upstreamHeaders, credential), body: handOver(deps, caller, frames) }
  }
  headers.set('content-type', 'application/json')
  const body = textEncoder.encode(JSON.stringify(encoder.answer(content.events)))
  return { status: 200, headers, body: handOver(deps, caller, [body]) }
}

const textEncoder = new TextEncoder()

const handOver = (deps: ModelDeps, { answers, signal }: HttpCaller, pieces: readonly Uint8Array[]) =>
  answers.handOver(pieces, signal, (work) => deps.waitUntil(work))

/** What a call that was sent came to. Of a stream it is known at its end; it never rejects. */
export function outcomeOfSent(
  deps: { clock: ModelDeps['clock'] },
  { basis, policy }: PlannedCall,
  { opening }: GovernedCall,
  sent: Dispatched,
): Promise<CallOutcome> {
  // Named one by one: the plan holds the request's body, which must not live as long as a stream.
  return settledOutcome(deps, { basis, policy, opening }, sent)
}

async function settledOutcome(
  { clock }: { clock: ModelDeps['clock'] },
  { basis, policy, opening }: Pick<PlannedCall, 'basis' | 'policy'> & Pick<GovernedCall, 'opening'>,
  { answer, attempts, lost, candidate, requestCounts }: Dispatched,
): Promise<CallOutcome> {
  const end = answer.kind === 'stream' ? await answer.ended : endOf(answer)
  return outcomeOf(opening, clock(), {
    ...withLost(basis, end.charge, lost),
    status: end.status,
    errorCode: end.errorCode,
    flags: end.flags,
    provider: candidate?.provider.name ?? null,
    attempts,
    request: attempts.length > 0 ? requestCounts : null,
    response: end.counts,
    dlp: { policyVersion: policy.version, findings: policy.findings() },
  })
}

type End = Pick<CallOutcome, 'status' | 'errorCode' | 'flags'> & {
  charge: Charge
  counts: CallOutcome['response']
}

const NOTHING: Pick<End, 'flags' | 'charge' | 'counts'> = { flags: [], charge: NO_CHARGE, counts: null }

function endOf(answer: Exclude<Dispatched['answer'], StartedStream>): End {
  if (answer.kind === 'whole') {
    const { status, charge, counts } = answer
    return { ...NOTHING, status, errorCode: null, charge, counts }
  }
  if (answer.kind === 'upstream_error') {
    return { ...NOTHING, status: answer.response.status, errorCode: 'upstream_error' }
  }
  if (answer.kind === 'client_left') {
    return { ...NOTHING, status: CLIENT_LEFT, errorCode: 'client_left', flags: ['client_left'] }
  }
  const known = answer.error instanceof ApiError ? answer.error : null
  const errorCode = known ? errorCodeOf(known) : 'internal_error'
  return { ...NOTHING, status: known?.status ?? 500, errorCode }
}

/** The outcome of a call whose caller died, estimated from what is known: a stream that broke off. */
export function interruptedOutcome(
  open: { call: GovernedCall; basis: PlannedCall['basis']; provider: string | null },
  textBytes: number,
  now: number,
): CallOutcome {
  const { call, basis, provider } = open
  const charge = answerCharge(basis, null, textBytes)
  // Its status is 0: what its caller got is not known.
  const known = { ...charge, status: 0, errorCode: 'interrupted', provider, flags: ['interrupted'] }
  return outcomeOf(call.opening, now, known)
}
