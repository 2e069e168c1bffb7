import { errorText, logEvent } from '../../lib/log.ts'
import { storedResponseId } from '../../responses/pool/start-response.ts'
import type { AgentDeps } from '../agent-deps.ts'
import { selectRunState } from '../runs/progress.store.ts'
import { announceVerdict } from '../runs/publish-verdict.ts'
import { currentAttempt, currentStep, ownerOf, type RunState } from '../runs/run.ts'
import { openInputs } from '../runs/run-inputs.ts'
import { renderedInstructions } from '../runs/step-request.ts'
import { findAttemptResponse, findResponseOf } from '../runs/step-response.ts'
import {
  type DueVerdict,
  type DueVerdictKey,
  insertVerdict,
  postponeVerdict,
  selectDueVerdict,
  storeNextCall,
} from '../runs/verdicts.store.ts'
import { checkStep, checkText } from './checks.ts'
import { type Evidence, toolCallsOf } from './evidence.ts'
import { beginJudging, endOfJudging, type JudgeRefusal } from './judge-call.ts'
import { judgeRequest } from './judge-request.ts'
import { judgedOutcome, undetermined, type VerdictOutcome } from './verdict.ts'

/** After it, a verdict that cannot be reached is `unknown`. */
const LONGEST_AGE_MS = 6 * 3_600_000
/** Maximum number of calls of the judge for one step: an answer that cannot be used is repeated once, a call that fails twice. */
const MOST_CALLS = 3
/** Between calls that fail: 10 seconds, then a minute. */
const FIRST_REPETITION_MS = 10_000
const SHORTEST_WAIT_MS = 2_000
const LONGEST_WAIT_MS = 300_000

/**
 * Evaluates a completed step by one delivery: its checks first, then a call of a model, whose end it awaits for at most
 * RUN_DELIVERY_MS. The call's response id is stored before the call begins. Repeated, late and concurrent deliveries
 * then find one call, and the verdict is written once.
 * @throws what a service that is away throws: the delivery has to be repeated.
 */
export async function evaluateStep(deps: AgentDeps, key: DueVerdictKey): Promise<void> {
  const due = await selectDueVerdict(deps.database, key)
  if (!due) return
  const isOver = deps.clock() - due.createdAt >= LONGEST_AGE_MS
  try {
    const outcome = await outcomeOf(deps, due)
    if (outcome) await storeOutcome(deps, due, isOver ? lastOutcome(outcome) : outcome)
  } catch (error) {
    if (!isOver) throw error
    logEvent('error', 'step_not_evaluated', { run_id: due.runId, step: due.number, error: errorText(error) })
    await insertVerdict(deps.database, due, undetermined('unavailable', UNAVAILABLE, due.cost))
  }
}

const UNAVAILABLE = 'The step could not be evaluated in time.'

/** The outcome at the longest age: an evaluation that is still pending ends without a verdict. */
const lastOutcome = (outcome: VerdictOutcome): VerdictOutcome =>
  outcome.kind === 'verdict'
    ? outcome
    : { kind: 'verdict', verdict: undetermined(outcome.code, UNAVAILABLE, outcome.cost) }

/** Null for a run that was deleted. */
async function outcomeOf(deps: AgentDeps, due: DueVerdict): Promise<VerdictOutcome | null> {
  const found = await selectRunState(deps.database, due)
  if (!found) return null
  const run = { ...found, step: due.number, attempt: due.attempt }
  let judged = await findResponseOf(deps, ownerOf(run), due.responseId)
  if (judged === null) {
    const decided = await beginEvaluation(deps, run, due)
    if (decided) return decided
  }
  if (judged === null || judged === 'running') judged = await endOfJudging(deps, run, due.responseId)
  if (judged === null || judged === 'running') {
    return { kind: 'later', code: 'running', delay: judged === null ? SHORTEST_WAIT_MS : 0, cost: due.cost }
  }
  const outcome = judgedOutcome({ step: currentStep(run), model: judgeOf(run), due, judged })
  return outcome.kind === 'again' ? repeated(run, due, outcome) : outcome
}

/** A call that follows one without a usable answer, unless it was the last. */
function repeated(
  run: RunState,
  due: DueVerdict,
  outcome: Extract<VerdictOutcome, { kind: 'again' }>,
): VerdictOutcome {
  const { code, message, cost, fault } = outcome
  const isLast = due.calls + 1 >= MOST_CALLS || (fault !== null && due.fault !== null)
  if (!isLast) return outcome
  const call = { model: judgeOf(run), response_id: due.responseId, calls: due.calls + 1, fault }
  return { kind: 'verdict', verdict: undetermined(code, message, cost, call) }
}

const judgeOf = (run: RunState): string => run.definition.judge_model ?? currentStep(run).model

/** Checks the step, and begins the call of the judge. @returns the outcome if that decides it, or cannot begin now. */
async function beginEvaluation(
  deps: AgentDeps,
  run: RunState,
  due: DueVerdict,
): Promise<VerdictOutcome | null> {
  const { objective, checks = [] } = currentStep(run)
  const evidence = await evidenceOf(deps, run)
  const results = checkStep(checks, evidence)
  const at = results.findIndex(({ passed }) => passed === false)
  const failed = checks[at]
  if (failed) {
    const explanation = `Check ${at + 1} failed: ${checkText(failed)}.`
    return {
      kind: 'verdict',
      verdict: { result: 'fail', explanation, details: { checks: results }, cost: due.cost },
    }
  }
  if (results.some(({ passed }) => passed === null)) {
    return { kind: 'verdict', verdict: undetermined('response_deleted', UNKNOWN_CALLS, due.cost) }
  }
  const request = judgeRequest({
    model: judgeOf(run),
    objective: objective ?? '',
    evidence,
    fault: due.fault,
  })
  const refusal = await beginJudging(deps, run, due.responseId, request)
  return refusal && refusedOutcome(run, due, refusal, deps.clock())
}

const UNKNOWN_CALLS = 'The response of the step was deleted, so that its tool calls cannot be checked.'

function refusedOutcome(
  run: RunState,
  due: DueVerdict,
  { kind, code, message, retryAfterSeconds = 0 }: JudgeRefusal,
  now: number,
): VerdictOutcome {
  const { cost } = due
  if (kind === 'final') return { kind: 'verdict', verdict: undetermined(code, message, cost) }
  if (kind === 'failed') return repeated(run, due, { kind: 'again', code, message, cost, fault: null })
  // The wait grows with the age: a service that is away for long gets few requests.
  const wait = Math.max(SHORTEST_WAIT_MS, retryAfterSeconds * 1_000, (now - due.createdAt) / 4)
  return { kind: 'later', code, cost, delay: Math.min(LONGEST_WAIT_MS, wait) }
}

async function evidenceOf(deps: AgentDeps, run: RunState): Promise<Evidence> {
  const inputs = openInputs(deps.configuration.VAULT_KEYS, run.id, run.sealedInputs)
  const ended = await findAttemptResponse(deps, run)
  return {
    instructions: renderedInstructions(run, inputs),
    output: currentAttempt(run).output ?? '',
    toolCalls: ended === null || ended === 'running' ? null : toolCallsOf(ended.response.output),
  }
}

/** Stores the outcome of a delivery. The message of what is still due follows it, which the sweep repeats. */
async function storeOutcome(deps: AgentDeps, due: DueVerdict, outcome: VerdictOutcome): Promise<void> {
  if (outcome.kind === 'verdict') return insertVerdict(deps.database, due, outcome.verdict)
  const now = deps.clock()
  if (outcome.kind === 'later') {
    const isStored = await postponeVerdict(deps.database, due, now + outcome.delay)
    return isStored ? announceVerdict(deps, due, outcome.delay) : undefined
  }
  // A fault can be named at once; a provider that fails needs time.
  const delay = outcome.fault === null ? FIRST_REPETITION_MS * 6 ** due.calls : 0
  const next = {
    responseId: storedResponseId(deps),
    fault: outcome.fault ?? due.fault,
    cost: outcome.cost,
    dueAt: now + delay,
  }
  if (await storeNextCall(deps.database, due, next)) await announceVerdict(deps, due, delay)
}
