import type { Owner } from '../../responses/model/types.ts'
import type { AgentDefinition, AgentStep, RunStatus } from '../../wire/agents.ts'

/** Why a run or a step ended without success. */
export interface RunError {
  code: string
  message: string
}

/** An attempt of a step, as it is stored. */
export interface StepAttempt {
  number: number
  attempt: number
  status: 'running' | 'completed' | 'failed' | 'cancelled'
  responseId: string
  output: string | null
  hadEffects: boolean
  /** Micro-credits. */
  cost: number
  createdAt: Date
  deadlineAt: Date
}

/** A run, as much of it as its progress depends on. */
export interface RunState {
  id: string
  organizationId: string
  userId: string
  conversationId: string
  status: RunStatus
  rev: number
  step: number
  attempt: number
  sealedInputs: string
  deadlineAt: Date
  definition: AgentDefinition
  /** Every attempt that was begun, in order. */
  attempts: readonly StepAttempt[]
}

/** A run that one delivery may change, until its lease ends or the run changes otherwise. */
export interface LeasedRun extends RunState {
  leaseToken: string
}

export const ownerOf = ({ organizationId, userId }: Pick<RunState, 'organizationId' | 'userId'>): Owner => ({
  organizationId,
  userId,
})

/** The definition of the current step. @throws for a run whose definition does not have it. */
export function currentStep({ definition, step }: RunState): AgentStep {
  const found = definition.steps[step - 1]
  if (!found) throw new Error(`there is no step ${step}`)
  return found
}

/** The current attempt. @throws for a run without it. */
export function currentAttempt({ attempts, step, attempt }: RunState): StepAttempt {
  const found = attempts.find((each) => each.number === step && each.attempt === attempt)
  if (!found) throw new Error(`there is no attempt ${attempt} of step ${step}`)
  return found
}

/** Micro-credits of all attempts. */
export const spentCredits = ({ attempts }: Pick<RunState, 'attempts'>): number =>
  attempts.reduce((sum, { cost }) => sum + cost, 0)

/** The output of a completed step. */
export const outputOf = ({ attempts }: Pick<RunState, 'attempts'>, number: number): string | undefined =>
  attempts.find((each) => each.number === number && each.status === 'completed')?.output ?? undefined
