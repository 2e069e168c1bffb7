import { describe, expect, it } from 'vitest'
import { stepOutcome } from '../../../src/agents/runs/step-output.ts'
import type { AgentStep } from '../../../src/wire/agents.ts'
import type { ResponseObject } from '../../../src/wire/responses.ts'

const STEP = { output: { format: 'text' } } as AgentStep

const message = (text: string, status: string) => ({
  type: 'message',
  status,
  content: [{ type: 'output_text', text }],
})

const ended = (...output: object[]) => ({
  response: { status: 'completed', output } as unknown as ResponseObject,
  cost: 5,
})

describe('the output of a step', () => {
  it('is its last message', () => {
    const outcome = stepOutcome(STEP, ended(message('One.', 'completed'), message('Two.', 'completed')), [])
    expect(outcome).toMatchObject({ kind: 'completed', output: 'Two.' })
  })

  it('is no message of a turn that was cut off and asked again', () => {
    const outcome = stepOutcome(STEP, ended(message('On', 'incomplete')), [])
    expect(outcome).toMatchObject({ kind: 'completed', output: '', message: null })
  })
})
