/** What comes back of a call, as the answer of a caller over HTTP. */

import type { ModelAnswer, PlannedCall } from '../calls/model-call.ts'
import type { Candidate } from '../routes/call-routes.ts'
import type { Dispatched } from '../routes/failover.ts'
import type { WholeAnswer } from '../routes/route-call.ts'
import { answerHeaders, streamHeaders } from './answer-headers.ts'
import type { BufferedResponses } from './buffered-responses.ts'
import { redactCredential } from './credential-spellings.ts'
import { CLIENT_LEFT, encoderOf, type StartedStream, type StreamDeps } from './stream-answer.ts'
import { upstreamErrorAnswer } from './upstream-error-answer.ts'

export interface HttpAnswerDeps {
  clock: StreamDeps['clock']
  /** Lets the sending of a large answer go on after its headers. */
  waitUntil: (work: Promise<unknown>) => void
}

export interface HttpCaller {
  /** Fires when the caller leaves. */
  signal: AbortSignal
  /** Holds the bodies that were read; what is handed over keeps its place in the isolate's budget until it was read. */
  answers: BufferedResponses
}

type Answered = { kind: 'answered'; answer: ModelAnswer } | { kind: 'failed'; error: Error }

/** @returns the answer, or the error that is rendered in its place. */
export function httpAnswer(
  deps: HttpAnswerDeps,
  planned: PlannedCall,
  { answer, candidate }: Dispatched,
  caller: HttpCaller,
): Answered {
  if (answer.kind === 'failed') return { kind: 'failed', error: errorOf(answer.error) }
  if (answer.kind === 'client_left' || !candidate) return { kind: 'answered', answer: notSent() }
  if (answer.kind === 'stream') return { kind: 'answered', answer: streamedAnswer(answer, candidate) }
  if (answer.kind === 'whole') {
    return { kind: 'answered', answer: wholeAnswer(deps, planned, answer, candidate, caller) }
  }
  // Only our own credential is cut out of it (interface: Errors).
  const body = redactCredential(answer.body, candidate.provider.credential)
  const error = upstreamErrorAnswer(answer.response, body, candidate)
  return { kind: 'answered', answer: { ...error, body: handOver(deps, caller, [error.body]) } }
}

/** The caller left before there was an answer. */
const notSent = (): ModelAnswer => ({ status: CLIENT_LEFT, headers: {}, body: new Uint8Array() })

export const errorOf = (error: unknown): Error =>
  error instanceof Error ? error : new Error('a call failed', { cause: error })

function streamedAnswer(stream: StartedStream, { provider }: Candidate): ModelAnswer {
  if (!('body' in stream.content)) throw new Error('a stream of events has no body')
  const headers = streamHeaders(stream.upstreamHeaders, provider.credential)
  return { status: stream.status, headers, body: stream.content.body }
}

function wholeAnswer(
  deps: HttpAnswerDeps,
  { request, model, outline }: PlannedCall,
  { status, upstreamHeaders, content }: WholeAnswer,
  candidate: Candidate,
  caller: HttpCaller,
): ModelAnswer {
  const { credential } = candidate.provider
  const headers = answerHeaders(upstreamHeaders, credential)
  if ('pieces' in content) return { status, headers, body: handOver(deps, caller, content.pieces) }
  const { operation } = request
  const { usageRequested } = outline
  const encoder = encoderOf(deps, { candidate, caller: { operation, modelId: model.id, usageRequested } })
  if (outline.stream) {
    // The upstream would not stream: its answer is the stream that was asked for.
    const frames = content.events.flatMap((event) => encoder.frames(event))
    return {
      status: 200,
      headers: streamHeaders(upstreamHeaders, credential),
      body: handOver(deps, caller, frames),
    }
  }
  headers['content-type'] = 'application/json'
  const body = textEncoder.encode(JSON.stringify(encoder.answer(content.events)))
  return { status: 200, headers, body: handOver(deps, caller, [body]) }
}

const textEncoder = new TextEncoder()

const handOver = (deps: HttpAnswerDeps, { answers, signal }: HttpCaller, pieces: readonly Uint8Array[]) =>
  answers.handOver(pieces, signal, (work) => deps.waitUntil(work))
