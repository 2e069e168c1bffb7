import type { AgentStep } from '../../wire/agents.ts'
import type { EndedStep } from '../runs/step-output.ts'
import type { DueVerdict, Verdict } from '../runs/verdicts.store.ts'
import { type JudgeAnswer, readJudgeAnswer } from './judge-answer.ts'

/** The result of a delivery for a verdict that is due. Costs are micro-credits of all calls of the judge so far. */
export type VerdictOutcome =
  | { kind: 'verdict'; verdict: Verdict }
  /** The judge's call is running, or could not begin now. */
  | { kind: 'later'; code: string; delay: number; cost: number }
  /** The judge's call ended without a usable answer. `fault` describes the answer; null if there was none. */
  | { kind: 'again'; code: string; message: string; cost: number; fault: string | null }

/** A verdict that could not be reached: never a failure of the step. @param code and details for administrators. */
export const undetermined = (
  code: string,
  explanation: string,
  cost: number,
  details: Record<string, unknown> = {},
): Verdict => ({
  result: 'unknown',
  // Providers write a part of it, and Postgres stores no NUL.
  explanation: explanation.replaceAll('\0', '').toWellFormed(),
  details: { reason: code, ...details },
  cost,
})

/** A call of the judge that has ended. */
interface JudgedCall {
  step: AgentStep
  /** The judge. */
  model: string
  due: DueVerdict
  judged: EndedStep
}

/** The outcome of an ended call of the judge. */
export function judgedOutcome({ step, model, due, judged }: JudgedCall): VerdictOutcome {
  const { response } = judged
  const cost = due.cost + judged.cost
  const call = { model, response_id: due.responseId, calls: due.calls + 1 }
  const failure = failureOf(response)
  if (failure?.isFinal) {
    return { kind: 'verdict', verdict: undetermined(failure.code, failure.message, cost, call) }
  }
  if (failure) return { kind: 'again', ...failure, cost, fault: null }
  const answer =
    response.status === 'completed'
      ? readJudgeAnswer(response.output_text, step.objective ?? '')
      : { fault: 'it was cut off at its token limit' }
  if ('fault' in answer) {
    return { kind: 'again', code: 'invalid_answer', message: INVALID, cost, fault: answer.fault }
  }
  const details = {
    ...call,
    checks: (step.checks ?? []).map(({ type }) => ({ type, passed: true })),
    criteria: answer.criteria,
  }
  return {
    kind: 'verdict',
    verdict: { result: RESULTS[answer.verdict], explanation: answer.explanation, details, cost },
  }
}

const RESULTS = { met: 'pass', not_met: 'fail', cannot_tell: 'unknown' } as const satisfies Record<
  JudgeAnswer['verdict'],
  Verdict['result']
>

const INVALID = 'The model that judges did not answer in the expected form.'

/** Codes of failures that another call would have as well. */
const FINAL = new Set([
  'dlp_blocked',
  'context_length_exceeded',
  'invalid_prompt',
  'model_access_denied',
  'access_disabled',
  'insufficient_credits',
  'content_filter',
])

/** Why a response has no answer; null if it has one, also one that is cut off. */
function failureOf({ status, error, incomplete_details: details }: EndedStep['response']) {
  if (status === 'completed' || details?.reason === 'max_output_tokens') return null
  const code = error?.code ?? details?.reason ?? 'server_error'
  const message = `The model that judges did not answer: ${error?.message ?? `the response is incomplete (${code}).`}`
  return { code, message, isFinal: FINAL.has(code) }
}
