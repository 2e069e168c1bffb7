import type { RunEvaluation } from '../../wire/agent-answers.ts'
import type { AgentDefinition, RunStatus } from '../../wire/agents.ts'
import type { EvaluatedStep } from '../runs/read-runs.store.ts'

/** The verdict about one step (interface: Run evaluation). */
export type StepEvaluation = RunEvaluation['steps'][number]
export type StepResult = StepEvaluation['result']

/** The evaluation of a run, by the verdicts about the steps that were begun. */
export function evaluationOf(
  { steps }: Pick<AgentDefinition, 'steps'>,
  status: RunStatus,
  begun: readonly EvaluatedStep[],
): Omit<RunEvaluation, 'runId'> {
  const evaluated = steps.map(({ name, objective }, index): StepEvaluation => {
    const step = begun.find(({ number }) => number === index + 1)
    const result = stepResult(objective !== null, status, step)
    const explanation = result === null || result === 'not_evaluated' ? null : (step?.explanation ?? null)
    return { stepNumber: index + 1, name, result, explanation }
  })
  return {
    result: aggregateOf(
      status,
      evaluated.map(({ result }) => result),
    ),
    steps: evaluated,
  }
}

/** Null only while a verdict is awaited: one that will never be written would keep the run pending. */
function stepResult(hasObjective: boolean, status: RunStatus, step: EvaluatedStep | undefined): StepResult {
  if (!hasObjective) return 'not_evaluated'
  if (step?.verdict) return step.verdict
  if (step?.status === 'completed' || status === 'in_progress') return null
  return 'not_evaluated'
}

/**
 * The aggregate (interface: Evaluation aggregate), in the order in which its meanings take precedence.
 * @internal Tests try every combination of verdicts.
 */
export function aggregateOf(status: RunStatus, results: readonly StepResult[]): RunEvaluation['result'] {
  const has = (result: StepResult) => results.includes(result)
  if (status === 'in_progress' || has(null)) return 'pending'
  if (has('fail')) return 'fail'
  if (status !== 'success' && has('pass')) return 'partial'
  if (has('unknown')) return 'unknown'
  return has('pass') ? 'pass' : 'skipped'
}
