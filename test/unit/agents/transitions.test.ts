import { describe, expect, it } from 'vitest'
import type { RunState, StepAttempt } from '../../../src/agents/runs/run.ts'
import {
  cancellation,
  changeAfter,
  checkRunTransition,
  mayHappen,
  RUN_TRANSITIONS,
  type RunChange,
  type RunEvent,
  rerun,
  type StepOutcome,
} from '../../../src/agents/runs/transitions.ts'
import { agentDefinition, type RunStatus } from '../../../src/wire/agents.ts'

const NOW = Date.UTC(2026, 10, 21, 12, 0)
const HOUR = 3_600_000

const attemptOf = (number: number, attempt: number, more: Partial<StepAttempt> = {}): StepAttempt => ({
  number,
  attempt,
  status: 'running',
  responseId: `resp_${number}_${attempt}`,
  output: null,
  hadEffects: false,
  cost: 0,
  createdAt: new Date(NOW),
  deadlineAt: new Date(NOW + HOUR),
  ...more,
})

const runOf = (more: Partial<RunState> = {}, step: object = {}): RunState => ({
  id: 'run',
  organizationId: 'organization',
  userId: 'user',
  conversationId: 'conv',
  status: 'in_progress',
  rev: 1,
  step: 1,
  attempt: 1,
  sealedInputs: '',
  deadlineAt: new Date(NOW + 24 * HOUR),
  definition: agentDefinition.parse({
    name: 'agent',
    steps: [
      { instructions: 'One.', model: 'm', ...step },
      { instructions: 'Two.', model: 'm', timeout_seconds: 60 },
    ],
    limits: { timeout_seconds: 86_400 },
  }),
  attempts: [attemptOf(1, 1)],
  ...more,
})

const FAULT = { code: 'server_error', message: 'It failed.' }
const completed: StepOutcome = { kind: 'completed', output: 'out', message: '{}', cost: 5, hadEffects: true }
const failing = (more: object = {}): StepOutcome => ({
  kind: 'failed',
  error: FAULT,
  cost: 3,
  hadEffects: false,
  mayRepeat: true,
  ...more,
})

const STATUSES: RunStatus[] = ['in_progress', 'success', 'failure', 'cancelled']
const EVENTS: RunEvent[] = [
  'step_pending',
  'step_completed',
  'step_repeated',
  'step_failed',
  'cancelled',
  'run_timed_out',
  'step_rerun',
]

/** The interface's table, written once more: everything else is forbidden. */
const ALLOWED = new Set([
  'in_progress step_pending in_progress',
  'in_progress step_completed in_progress',
  'in_progress step_completed success',
  'in_progress step_repeated in_progress',
  'in_progress step_failed failure',
  'in_progress cancelled cancelled',
  'in_progress run_timed_out cancelled',
  'failure step_rerun in_progress',
])

describe('the table of transitions', () => {
  const all = STATUSES.flatMap((from) =>
    EVENTS.flatMap((event) => STATUSES.map((to) => [from, event, to] as const)),
  )

  it.each(all)('%s by %s to %s', (from, event, to) => {
    const check = () => checkRunTransition(from, event, to)
    if (ALLOWED.has(`${from} ${event} ${to}`)) expect(check).not.toThrow()
    else expect(check).toThrow(/cannot become/)
  })

  it('leaves success and cancelled by nothing', () => {
    expect([RUN_TRANSITIONS.success, RUN_TRANSITIONS.cancelled]).toEqual([{}, {}])
    expect(EVENTS.filter((event) => mayHappen('failure', event))).toEqual(['step_rerun'])
  })
})

describe('what follows an outcome', () => {
  const unchanged = { status: 'in_progress', result: null, error: null, ended: null, next: null }

  it('a pending step is looked at again after its delay', () => {
    expect(changeAfter(runOf(), { kind: 'pending', delay: 500 }, NOW)).toEqual({
      ...unchanged,
      event: 'step_pending',
      dueAt: NOW + 500,
    })
  })

  it('a completed step begins the next one', () => {
    expect(changeAfter(runOf(), completed, NOW)).toEqual({
      ...unchanged,
      event: 'step_completed',
      ended: { status: 'completed', output: 'out', error: null, cost: 5, hadEffects: true },
      next: { number: 2, attempt: 1, deadlineAt: NOW + 60_000 },
      dueAt: NOW,
    })
  })

  it('the last step ends the run with its message, and needs no delivery', () => {
    const last = runOf({ step: 2, attempts: [attemptOf(1, 1), attemptOf(2, 1)] })
    expect(changeAfter(last, completed, NOW)).toMatchObject({ status: 'success', result: '{}', dueAt: null })
    expect(changeAfter(last, { ...completed, message: null }, NOW)).toMatchObject({
      status: 'success',
      result: null,
    })
  })

  it('a failed attempt is repeated only if that is allowed, useful and without harm', () => {
    const run = runOf({}, { max_attempts: 3 })
    expect(changeAfter(run, failing(), NOW)).toMatchObject({
      event: 'step_repeated',
      status: 'in_progress',
      ended: { status: 'failed', error: FAULT, cost: 3 },
      next: { number: 1, attempt: 2 },
      dueAt: NOW + 1_000,
    })
    const second = { ...run, attempt: 2, attempts: [attemptOf(1, 1), attemptOf(1, 2)] }
    expect(changeAfter(second, failing(), NOW).dueAt).toBe(NOW + 2_000)
    const ends = [
      changeAfter(runOf(), failing(), NOW),
      changeAfter({ ...run, attempt: 3, attempts: [attemptOf(1, 3)] }, failing(), NOW),
      changeAfter(run, failing({ hadEffects: true }), NOW),
      changeAfter(run, failing({ mayRepeat: false }), NOW),
    ]
    for (const end of ends) {
      expect(end).toMatchObject({
        event: 'step_failed',
        status: 'failure',
        error: FAULT,
        next: null,
        dueAt: null,
      })
      expect(end.result).toBeNull()
    }
  })

  it('the time of the run ends it as cancelled', () => {
    expect(changeAfter(runOf(), { kind: 'run_timed_out', cost: 2, hadEffects: true }, NOW)).toMatchObject({
      status: 'cancelled',
      result: null,
      error: { code: 'timeout' },
      ended: { status: 'cancelled', cost: 2, hadEffects: true },
      dueAt: null,
    })
  })

  it('a step has no more time than its run', () => {
    const run = runOf({ deadlineAt: new Date(NOW + 10_000) })
    expect(changeAfter(run, completed, NOW).next?.deadlineAt).toBe(NOW + 10_000)
  })
})

describe('every change of a run', () => {
  const last = { step: 2, attempts: [attemptOf(1, 1), attemptOf(2, 1)] }
  const timedOut: StepOutcome = { kind: 'run_timed_out', cost: 0, hadEffects: false }
  type Change = (status: RunStatus) => RunChange
  /** What happens, how it is decided, and the event and status that a run in progress has then, or a failed one. */
  const changes: ReadonlyArray<readonly [name: string, change: Change, from: RunStatus, becomes: string]> = [
    [
      'a pending step',
      (status) => changeAfter(runOf({ status }), { kind: 'pending', delay: 0 }, NOW),
      'in_progress',
      'step_pending in_progress',
    ],
    [
      'a completed step',
      (status) => changeAfter(runOf({ status }), completed, NOW),
      'in_progress',
      'step_completed in_progress',
    ],
    [
      'a completed last step',
      (status) => changeAfter(runOf({ status, ...last }), completed, NOW),
      'in_progress',
      'step_completed success',
    ],
    [
      'an attempt that may be repeated',
      (status) => changeAfter(runOf({ status }, { max_attempts: 2 }), failing(), NOW),
      'in_progress',
      'step_repeated in_progress',
    ],
    [
      'a failed step',
      (status) => changeAfter(runOf({ status }), failing(), NOW),
      'in_progress',
      'step_failed failure',
    ],
    [
      'the end of its time',
      (status) => changeAfter(runOf({ status }), timedOut, NOW),
      'in_progress',
      'run_timed_out cancelled',
    ],
    ['a cancel', (status) => cancellation({ status }, NOW), 'in_progress', 'cancelled cancelled'],
    [
      'a repetition by a person',
      (status) => rerun(runOf({ status }), NOW),
      'failure',
      'step_rerun in_progress',
    ],
  ]
  const cases = changes.flatMap(([name, change, from, becomes]) =>
    STATUSES.map((status) => [name, status, status === from ? becomes : null, change] as const),
  )

  it.each(cases)('%s of a run that is %s: %s', (_, status, becomes, change) => {
    if (becomes === null) return expect(() => change(status)).toThrow(/cannot become/)
    const made = change(status)
    expect(`${made.event} ${made.status}`).toBe(becomes)
    expect(mayHappen(status, made.event)).toBe(true)
    // A run that has ended needs a message only to end its response.
    expect(made.dueAt !== null).toBe(made.status === 'in_progress' || made.event === 'cancelled')
    expect(made.result === null || made.status === 'success').toBe(true)
  })
})

describe('changes by people', () => {
  it('a run in progress is cancelled, with a message that ends its response', () => {
    expect(cancellation(runOf(), NOW)).toMatchObject({ status: 'cancelled', dueAt: NOW, result: null })
  })

  it('a failed step is repeated with the time of a new run, whatever its attempts', () => {
    const failed = runOf({
      status: 'failure',
      step: 2,
      attempt: 4,
      deadlineAt: new Date(NOW - HOUR),
      attempts: [attemptOf(1, 1), attemptOf(2, 4, { hadEffects: true })],
    })
    expect(rerun(failed, NOW)).toMatchObject({
      status: 'in_progress',
      error: null,
      deadlineAt: NOW + 86_400_000,
      next: { number: 2, attempt: 5, deadlineAt: NOW + 60_000 },
      dueAt: NOW,
    })
  })
})
