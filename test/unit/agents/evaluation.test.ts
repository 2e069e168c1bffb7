import { describe, expect, it } from 'vitest'
import { aggregateOf, evaluationOf, type StepResult } from '../../../src/agents/evaluations/evaluation.ts'
import type { EvaluatedStep } from '../../../src/agents/runs/read-runs.store.ts'
import { agentDefinition, type RunStatus } from '../../../src/wire/agents.ts'

describe('the aggregate', () => {
  const cases: Array<[RunStatus, StepResult[], string]> = [
    ['success', ['pass', 'pass'], 'pass'],
    ['success', ['pass', 'not_evaluated'], 'pass'],
    ['success', ['pass', 'fail', 'unknown'], 'fail'],
    ['failure', ['fail', 'pass'], 'fail'],
    ['in_progress', ['pass', 'fail'], 'pending'],
    ['in_progress', [], 'pending'],
    ['success', ['pass', null], 'pending'],
    // An awaited verdict can still be the one that counts.
    ['failure', ['fail', null], 'pending'],
    ['failure', ['pass', 'not_evaluated'], 'partial'],
    ['cancelled', ['pass', 'unknown'], 'partial'],
    ['cancelled', ['unknown', 'not_evaluated'], 'unknown'],
    ['failure', ['not_evaluated', 'not_evaluated'], 'skipped'],
    ['success', ['not_evaluated'], 'skipped'],
    ['success', ['pass', 'unknown'], 'unknown'],
  ]
  it.each(cases)('of a run that is %s with %j is %s', (status, results, aggregate) => {
    expect(aggregateOf(status, results)).toBe(aggregate)
  })
})

describe('an evaluation', () => {
  const definition = agentDefinition.parse({
    name: 'a',
    steps: [
      { name: 'First', instructions: 'x', model: 'm', objective: 'Do it.' },
      { instructions: 'x', model: 'm' },
      { instructions: 'x', model: 'm', objective: 'Do more.' },
    ],
  })
  const step = (number: number, more: Partial<EvaluatedStep> = {}): EvaluatedStep => ({
    number,
    status: 'completed',
    verdict: null,
    explanation: null,
    ...more,
  })
  const results = (status: RunStatus, begun: EvaluatedStep[]) => {
    const evaluation = evaluationOf(definition, status, begun)
    return [evaluation.result, ...evaluation.steps.map(({ result }) => result)]
  }

  it('has one entry for each step of the definition', () => {
    const begun = [step(1, { verdict: 'pass', explanation: 'Well done.' }), step(2)]
    expect(evaluationOf(definition, 'failure', begun)).toEqual({
      result: 'partial',
      steps: [
        { stepNumber: 1, name: 'First', result: 'pass', explanation: 'Well done.' },
        { stepNumber: 2, name: null, result: 'not_evaluated', explanation: null },
        { stepNumber: 3, name: null, result: 'not_evaluated', explanation: null },
      ],
    })
  })

  it('awaits verdicts of completed steps only, and of steps to come while the run goes on', () => {
    expect(results('in_progress', [step(1)])).toEqual(['pending', null, 'not_evaluated', null])
    expect(results('success', [step(1), step(2), step(3)])).toEqual(['pending', null, 'not_evaluated', null])
    expect(results('failure', [step(1, { status: 'failed' })])).toEqual([
      'skipped',
      'not_evaluated',
      'not_evaluated',
      'not_evaluated',
    ])
  })
})
