/** One call over its candidates: each attempt is recorded, and only an attempt that gave nothing is followed by another. */
import { ApiError } from '../lib/api-error.ts'
import { type AnswerDeps, CandidateCall, type DispatchedCall } from './candidate-call.ts'
import type { Candidate } from './candidates.ts'
import type { ModelAnswer } from './invoke-model.ts'
import { CLIENT_LEFT } from './settlement.ts'
import { noAnswer } from './upstream-attempt.ts'

const RETRYABLE = new Set([408, 409, 429, 500, 502, 503, 504, 529])

/**
 * Tries the candidates in order. Another is tried only while nothing was sent to the caller and the last one could
 * not be reached or asked for a retry.
 * @throws ApiError upstream when none answered.
 */
export async function dispatch(
  deps: AnswerDeps,
  call: DispatchedCall,
  candidates: readonly Candidate[],
): Promise<ModelAnswer> {
  let failure: ApiError | null = null
  for (const [index, candidate] of candidates.entries()) {
    const last = index === candidates.length - 1
    const candidateCall = new CandidateCall(deps, call, candidate)
    try {
      const response = await candidateCall.begin()
      if (!last && RETRYABLE.has(response.status)) await response.body?.cancel()
      else return await candidateCall.answer(response)
    } catch (error) {
      if (call.signal.aborted) {
        call.settlement.callerLeft()
        return { status: CLIENT_LEFT, headers: new Headers(), body: new Uint8Array() }
      }
      if (!(error instanceof ApiError) || error.kind !== 'upstream') throw error
      failure = error
    } finally {
      candidateCall.dispose()
    }
  }
  throw failure ?? noAnswer('The upstream gave no answer.')
}
