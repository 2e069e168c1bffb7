import type { RunStatus } from '../../wire/agents.ts'
import { currentAttempt, currentStep, type RunError, type RunState } from './run.ts'

/** An event of a run. */
export type RunEvent =
  /** The response of the current step is not ended, or could not be begun yet. */
  | 'step_pending'
  | 'step_completed'
  /** The attempt failed, and the step is attempted again. */
  | 'step_repeated'
  | 'step_failed'
  | 'cancelled'
  /** The time of the whole run is over. */
  | 'run_timed_out'
  /** A person repeats the failed step. */
  | 'step_rerun'

/**
 * The status after each event; an event that a status does not have is forbidden (interface: States and transitions).
 * @internal Tests compare the table with the interface.
 */
export const RUN_TRANSITIONS: Readonly<
  Record<RunStatus, Readonly<Partial<Record<RunEvent, readonly RunStatus[]>>>>
> = {
  in_progress: {
    step_pending: ['in_progress'],
    // `success` after the last step.
    step_completed: ['in_progress', 'success'],
    step_repeated: ['in_progress'],
    step_failed: ['failure'],
    cancelled: ['cancelled'],
    run_timed_out: ['cancelled'],
  },
  failure: { step_rerun: ['in_progress'] },
  success: {},
  cancelled: {},
}

/**
 * @throws for a transition that the table does not have.
 * @internal Tests try every transition.
 */
export function checkRunTransition(from: RunStatus, event: RunEvent, to: RunStatus): void {
  if (RUN_TRANSITIONS[from][event]?.includes(to)) return
  throw new Error(`a run that is ${from} cannot become ${to} by ${event}`)
}

export const mayHappen = (from: RunStatus, event: RunEvent): boolean =>
  RUN_TRANSITIONS[from][event] !== undefined

/** The result of a delivery for the current step. */
export type StepOutcome =
  | { kind: 'pending'; delay: number }
  | {
      kind: 'completed'
      output: string
      /** The final assistant message; null if there was none. */
      message: string | null
      cost: number
      hadEffects: boolean
    }
  | { kind: 'failed'; error: RunError; cost: number; hadEffects: boolean; mayRepeat: boolean }
  | { kind: 'run_timed_out'; cost: number; hadEffects: boolean }

/** The end of an attempt. */
interface AttemptEnd {
  status: 'completed' | 'failed' | 'cancelled'
  output: string | null
  error: RunError | null
  cost: number
  hadEffects: boolean
}

/** An attempt that begins. */
interface NewAttempt {
  number: number
  attempt: number
  /** Milliseconds since the epoch. */
  deadlineAt: number
}

/** The change of a run by one event. It is stored as a whole, or not at all. */
export interface RunChange {
  event: RunEvent
  status: RunStatus
  result: string | null
  error: RunError | null
  /** The end of the current attempt; null while it runs. */
  ended: AttemptEnd | null
  next: NewAttempt | null
  /** When the run has to be advanced, in milliseconds since the epoch; null if it has not. */
  dueAt: number | null
}

const RUN_TIMEOUT: RunError = {
  code: 'timeout',
  message: 'The run took longer than its definition allows.',
}
const CANCELLED: RunError = { code: 'cancelled', message: 'The run was cancelled.' }

const FIRST_REPETITION_MS = 1_000
const LONGEST_REPETITION_MS = 60_000

/**
 * Decides what follows the outcome of a step.
 * @param now milliseconds since the epoch. @throws for a run that has ended.
 */
export function changeAfter(run: RunState, outcome: StepOutcome, now: number): RunChange {
  const change = decided(run, outcome, now)
  checkRunTransition(run.status, change.event, change.status)
  return change
}

function decided(run: RunState, outcome: StepOutcome, now: number): RunChange {
  if (outcome.kind === 'pending') {
    return { ...UNCHANGED, event: 'step_pending', dueAt: now + outcome.delay }
  }
  const { cost, hadEffects } = outcome
  if (outcome.kind === 'run_timed_out') {
    const ended = { status: 'cancelled', output: null, error: RUN_TIMEOUT, cost, hadEffects } as const
    return { ...UNCHANGED, event: 'run_timed_out', status: 'cancelled', error: RUN_TIMEOUT, ended }
  }
  if (outcome.kind === 'completed') return afterCompletion(run, outcome, now)
  const { error, mayRepeat } = outcome
  const ended = { status: 'failed', output: null, error, cost, hadEffects } as const
  // An attempt that may have changed something is not repeated.
  if (mayRepeat && !hadEffects && run.attempt < currentStep(run).max_attempts) {
    const delay = Math.min(LONGEST_REPETITION_MS, FIRST_REPETITION_MS * 2 ** (run.attempt - 1))
    const next = newAttempt(run, run.step, run.attempt + 1, now + delay)
    return { ...UNCHANGED, event: 'step_repeated', ended, next, dueAt: now + delay }
  }
  return { ...UNCHANGED, event: 'step_failed', status: 'failure', error, ended }
}

function afterCompletion(
  run: RunState,
  { output, message, cost, hadEffects }: Extract<StepOutcome, { kind: 'completed' }>,
  now: number,
): RunChange {
  const ended = { status: 'completed', output, error: null, cost, hadEffects } as const
  if (run.step === run.definition.steps.length) {
    return { ...UNCHANGED, event: 'step_completed', status: 'success', result: message, ended }
  }
  const next = newAttempt(run, run.step + 1, 1, now)
  return { ...UNCHANGED, event: 'step_completed', ended, next, dueAt: now }
}

const UNCHANGED = {
  status: 'in_progress',
  result: null,
  error: null,
  ended: null,
  next: null,
  dueAt: null,
} as const

/** The change of a run that is cancelled: the delivery that is due ends its response. */
export function cancellation(run: Pick<RunState, 'status'>, now: number): RunChange {
  checkRunTransition(run.status, 'cancelled', 'cancelled')
  const ended = { status: 'cancelled', output: null, error: CANCELLED, cost: 0, hadEffects: false } as const
  return { ...UNCHANGED, event: 'cancelled', status: 'cancelled', error: CANCELLED, ended, dueAt: now }
}

/** The change of a failed run whose last step is repeated, with the time of a new run. */
export function rerun(run: RunState, now: number): RunChange & { deadlineAt: number } {
  checkRunTransition(run.status, 'step_rerun', 'in_progress')
  const { number } = currentAttempt(run)
  const deadlineAt = runDeadline(run.definition, now)
  const next = newAttempt({ ...run, deadlineAt: new Date(deadlineAt) }, number, run.attempt + 1, now)
  return { ...UNCHANGED, event: 'step_rerun', next, dueAt: now, deadlineAt }
}

/** Milliseconds since the epoch. */
export const runDeadline = ({ limits }: RunState['definition'], now: number): number =>
  now + limits.timeout_seconds * 1_000

/** @param at when it begins, in milliseconds since the epoch. Its time ends with that of the run at the latest. */
export function newAttempt(
  { definition, deadlineAt }: Pick<RunState, 'definition' | 'deadlineAt'>,
  number: number,
  attempt: number,
  at: number,
): NewAttempt {
  const seconds = definition.steps[number - 1]?.timeout_seconds ?? 0
  return { number, attempt, deadlineAt: Math.min(at + seconds * 1_000, deadlineAt.getTime()) }
}
