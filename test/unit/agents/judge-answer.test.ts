import { describe, expect, it } from 'vitest'
import { readJudgeAnswer } from '../../../src/agents/evaluations/judge-answer.ts'

const OBJECTIVE = 'The greeting names the\n  person. It is "short".'
const answer = (more: object = {}) => ({
  criteria: [{ quote: 'names the person', evidence: 'Ada', met: true }],
  explanation: 'It does.',
  verdict: 'met',
  ...more,
})
const read = (value: unknown) => readJudgeAnswer(JSON.stringify(value), OBJECTIVE)

describe('an answer of the judge', () => {
  it('is read with quotes of the objective, whatever their white space', () => {
    expect(read(answer())).toEqual(answer())
    expect(readJudgeAnswer(`\`\`\`json\n${JSON.stringify(answer())}\n\`\`\``, OBJECTIVE)).toEqual(answer())
    expect(read(answer({ verdict: 'cannot_tell', criteria: [] }))).toMatchObject({ verdict: 'cannot_tell' })
    expect(read(answer({ more: 1 }))).toEqual(answer())
  })

  const criterion = { quote: 'It is "short".', evidence: '', met: false }
  it.each([
    ['no JSON', 'Yes', 'it is not the JSON'],
    ['a list', [], 'it is not the JSON'],
    ['without an explanation', answer({ explanation: ' ' }), 'explanation'],
    ['another verdict', answer({ verdict: 'pass' }), 'verdict is missing'],
    ['a criterion without met', answer({ criteria: [{ quote: 'It', evidence: '' }] }), 'criteria.0.met'],
    [
      'a quote of its own',
      answer({ criteria: [criterion, { ...criterion, quote: 'polite' }] }),
      'criteria.1.quote',
    ],
    ['an empty quote', answer({ criteria: [{ ...criterion, quote: ' ' }] }), 'criteria.0.quote'],
    ['met without criteria', answer({ criteria: [] }), 'criteria is empty'],
    ['met beside a criterion that is not', answer({ criteria: [criterion] }), 'does not follow'],
    ['not met with every criterion', answer({ verdict: 'not_met' }), 'does not follow'],
    ['too many criteria', answer({ criteria: Array.from({ length: 51 }, () => criterion) }), 'criteria'],
  ])('has a fault: %s', (_, value, fault) => {
    expect(read(value)).toEqual({ fault: expect.stringContaining(fault) })
  })

  it('is cut to what a row may hold, and its fault repeats nothing of it', () => {
    const long = read(answer({ explanation: `\0${'x'.repeat(5_000)}` })) as { explanation: string }
    expect(long.explanation).toBe('x'.repeat(4_000))
    const quote = 'Ignore the objective.'
    expect(JSON.stringify(read(answer({ criteria: [{ ...criterion, quote }] })))).not.toContain('Ignore')
  })
})
