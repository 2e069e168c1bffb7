import { describe, expect, it } from 'vitest'
import { NO_USAGE } from '../../../src/calls/usage.ts'
import type { ToolCall } from '../../../src/responses/emitter/call-item.ts'
import type { TurnEnd } from '../../../src/responses/emitter/emitter.ts'
import { decideTurn, isRefused, nextTurnSettings } from '../../../src/responses/engine/turn-decision.ts'
import { checkPhaseTransition, PHASES, type Phase } from '../../../src/responses/model/phases.ts'
import type { Progress } from '../../../src/responses/model/response-head.ts'
import type { CallPurpose } from '../../../src/responses/tools/tool-rules.ts'

const LIMITS = { mostTurns: 10, mostOutput: null, creditsLeft: null, compatibility: 'headgate' as const }
const PROGRESS: Progress = {
  turns: 1,
  refusedTurns: 0,
  usage: null,
  openCall: null,
  nextCallId: null,
  endAfterTools: null,
}

const called = (purpose: CallPurpose, cut = false): ToolCall => ({
  callId: `call_${purpose}`,
  upstreamName: 'look',
  arguments: '{}',
  purpose,
  cut,
})

const turn = (calls: ToolCall[], more: Partial<TurnEnd> = {}): TurnEnd => ({
  stop: calls.length > 0 ? 'tool_calls' : 'end',
  filtered: false,
  calls,
  turn: 'turn0000',
  ...more,
})

const ends = (reason: string | null) => ({
  kind: 'end',
  end: reason === null ? { status: 'completed' } : { status: 'incomplete', reason },
})

describe('what follows a turn', () => {
  const cases: Array<[name: string, end: TurnEnd, decision: object]> = [
    ['a text', turn([]), ends(null)],
    ['a text that was cut off', turn([], { stop: 'length' }), ends('max_output_tokens')],
    ['what a filter stopped', turn([called('client')], { filtered: true }), ends('content_filter')],
    ['a call of the client', turn([called('client')]), ends('tool_use')],
    [
      'a call that was cut off',
      turn([called('client', true)], { stop: 'length' }),
      ends('max_output_tokens'),
    ],
    ['a call of a tool of this side that was cut off', turn([called('hosted', true)]), ends(null)],
    ['a refused call', turn([called('refused')]), { kind: 'next_turn' }],
    ['a refused call and a cut', turn([called('refused')], { stop: 'length' }), ends('max_output_tokens')],
    [
      'a refused call beside one of the client',
      turn([called('refused'), called('client')]),
      ends('tool_use'),
    ],
  ]

  it.each(cases)('that is %s', (_name, end, decision) => {
    expect(decideTurn(end, PROGRESS, LIMITS)).toEqual(decision)
  })

  it.each(['hosted', 'integration'] as const)('that calls a tool: %s', (purpose) => {
    const calls = [called(purpose)]
    expect(decideTurn(turn(calls), PROGRESS, LIMITS)).toEqual({ kind: 'run_tools', calls, end: null })
    const both = turn([...calls, called('client'), called('refused')])
    const end = { status: 'incomplete', reason: 'tool_use' }
    expect(decideTurn(both, PROGRESS, LIMITS)).toEqual({ kind: 'run_tools', calls, end })
    const last = decideTurn(turn(calls), { ...PROGRESS, turns: 10 }, LIMITS)
    expect(last).toEqual({ kind: 'run_tools', calls, end: { status: 'incomplete', reason: 'max_turns' } })
  })

  it('is the end when a limit is reached', () => {
    const refused = turn([called('refused')])
    const decided = (progress: Partial<Progress>, limits = {}) =>
      decideTurn(refused, { ...PROGRESS, ...progress }, { ...LIMITS, ...limits })
    expect(decided({ turns: 10 })).toEqual(ends('max_turns'))
    expect(decided({ refusedTurns: 3 })).toEqual(ends('max_turns'))
    expect(decided({ usage: { ...NO_USAGE, output: 5 } }, { mostOutput: 5 })).toEqual(
      ends('max_output_tokens'),
    )
    expect(decided({ usage: { ...NO_USAGE, output: 4 } }, { mostOutput: 5 })).toEqual({ kind: 'next_turn' })
  })

  it('is a completed response where the client wants calls so', () => {
    const limits = { ...LIMITS, compatibility: 'open_responses' as const }
    expect(decideTurn(turn([called('client')]), PROGRESS, limits)).toEqual(ends(null))
  })

  it('is counted as refused when nothing else was called', () => {
    expect(isRefused(turn([called('refused')]))).toBe(true)
    expect(isRefused(turn([called('refused'), called('hosted')]))).toBe(false)
    expect(isRefused(turn([]))).toBe(false)
  })

  it('has the rest of the output limit, and forces no call again', () => {
    const settings = { model: 'm', max_output_tokens: 10, tool_choice: 'required' as const }
    expect(nextTurnSettings(settings, { ...NO_USAGE, output: 4 })).toMatchObject({
      max_output_tokens: 6,
      tool_choice: 'auto',
    })
  })
})

describe('the phases of a response', () => {
  const phases = Object.keys(PHASES) as Phase[]

  it('follow each other as the table says, and all can be removed', () => {
    for (const from of phases) {
      for (const to of phases) {
        const allowed = from === to || to === 'removing' || PHASES[from].to.includes(to)
        const change = () => checkPhaseTransition(from, to)
        if (allowed) expect(change).not.toThrow()
        else expect(change).toThrow(`a response that is ${from} cannot become ${to}`)
      }
    }
  })

  it('all lead to an end', () => {
    const leads = (phase: Phase, seen: readonly Phase[] = []): boolean =>
      phase === 'ended' ||
      PHASES[phase].to.some((next) => !seen.includes(next) && leads(next, [...seen, phase]))
    expect(phases.filter((phase) => phase !== 'removing' && !leads(phase))).toEqual([])
  })
})
