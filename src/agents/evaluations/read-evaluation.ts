import { type PolicyDeps, policyFor } from '../../calls/policy-for-call.ts'
import { modelTarget } from '../../calls/target.ts'
import type { CallPolicy } from '../../dlp/policy/call-policy.ts'
import type { Principal } from '../../identity/principal.ts'
import { runSlices } from '../../lib/slices.ts'
import { redactItems } from '../../responses/items/redaction.ts'
import type { RunEvaluation } from '../../wire/agent-answers.ts'
import { storedDefinition } from '../definitions/stored-definition.ts'
import { type ReadRun, selectEvaluatedSteps } from '../runs/read-runs.store.ts'
import { evaluationOf, type StepEvaluation } from './evaluation.ts'

/**
 * The evaluation of a run as its user may read it under the current policies: explanations repeat what models wrote.
 * @param principal the run's user.
 */
export async function readEvaluation(
  deps: PolicyDeps,
  principal: Principal,
  { id, status, definition: stored }: Pick<ReadRun, 'id' | 'status' | 'definition'>,
): Promise<RunEvaluation> {
  const { organizationId } = principal
  const begun = await selectEvaluatedSteps({ database: deps.database, organizationId }, id)
  const definition = storedDefinition(stored)
  const evaluation = evaluationOf(definition, status, begun)
  const steps: StepEvaluation[] = []
  for (const step of evaluation.steps) {
    const model = definition.judge_model ?? definition.steps[step.stepNumber - 1]?.model ?? ''
    steps.push(step.explanation === null ? step : await redacted(deps, principal, model, step))
  }
  return { runId: id, ...evaluation, steps }
}

/** Policies need the place of a text in an item: that of the judge's answer. */
async function redacted(
  deps: PolicyDeps,
  principal: Principal,
  model: string,
  step: StepEvaluation,
): Promise<StepEvaluation> {
  const policy: CallPolicy = await policyFor(deps, principal, modelTarget(model))
  const content = [{ type: 'output_text', text: step.explanation ?? '' }]
  const [item] = await runSlices(redactItems(policy, [{ type: 'message', role: 'assistant', content }]))
  return { ...step, explanation: item?.content[0]?.text ?? null }
}
