import { readPrincipal } from '../../calls/renew-rights.ts'
import type { Principal } from '../../identity/principal.ts'
import { newId } from '../../lib/ids.ts'
import { TimeLimitError, withinTime } from '../../lib/time-limit.ts'
import type { Owner, StartResult } from '../../responses/model/types.ts'
import { storedResponse } from '../../responses/object/stored-response.ts'
import { messageBody } from '../../responses/sockets/message-body.ts'
import type { AgentDeps } from '../agent-deps.ts'
import { currentAttempt, ownerOf, type RunState, spentCredits } from './run.ts'
import { openInputs } from './run-inputs.ts'
import type { EndedStep } from './step-output.ts'
import { stepRequest } from './step-request.ts'

/**
 * The response of the current attempt, as its object or Postgres has it.
 * @returns `running`, or null if it has not begun.
 */
export const findAttemptResponse = (deps: AgentDeps, run: RunState): Promise<EndedStep | 'running' | null> =>
  findResponseOf(deps, ownerOf(run), currentAttempt(run).responseId)

/** The same for a response by its id. */
export async function findResponseOf(
  deps: AgentDeps,
  owner: Owner,
  responseId: string,
): Promise<EndedStep | 'running' | null> {
  const object = deps.responseObject(owner.organizationId, responseId)
  const state = await object.state(owner)
  if (state?.running) return 'running'
  const response = state && (await object.snapshot(owner))
  if (state && response) return { response, cost: state.cost }
  return storedResponse(deps, owner, responseId)
}

/**
 * Begins the response of the current attempt, with the rights of this moment. Beginning it again is refused by its object.
 * @throws ApiError for a user without access, and for instructions that are too long; what the database throws.
 */
export async function startStepResponse(deps: AgentDeps, run: RunState): Promise<StartResult> {
  const principal = await principalOf(deps, run)
  const inputs = openInputs(deps.configuration.VAULT_KEYS, run.id, run.sealedInputs)
  const { responseId } = currentAttempt(run)
  const { max_credits: mostCredits } = run.definition.limits
  const request = {
    ...responseStart(deps, run, `RUN /v1/runs/${run.id} step ${run.step} attempt ${run.attempt}`),
    responseId,
    principal,
    repeatsTurns: true,
    ...(mostCredits !== undefined && { creditLimit: Math.max(0, mostCredits - spentCredits(run)) }),
  }
  const body = messageBody(JSON.stringify(stepRequest(run, inputs)))
  return deps.responseObject(run.organizationId, responseId).start(request, body)
}

/** The members of a start that all responses of a run share. @param action as audit records have it. */
export const responseStart = (deps: AgentDeps, run: RunState, action: string) => ({
  identity: {
    callId: newId('call'),
    requestId: `run_${run.id}`,
    at: deps.clock(),
    actor: { userId: run.userId, keyId: null, administrator: null, ip: null },
    surface: 'agents' as const,
    action,
    runId: run.id,
  },
  headers: [],
  compatibility: null,
})

/** The run's user, with its rights of this moment. @throws ApiError unauthorized for one that may not call any more. */
export const principalOf = (deps: AgentDeps, { id, organizationId, userId }: RunState): Promise<Principal> =>
  readPrincipal(deps, { organizationId, userId, credential: { kind: 'run', runId: id } })

/**
 * Waits until the response has ended.
 * @param limit milliseconds. @returns whether it may have ended: false when the time is over.
 */
export const waitForResponse = (deps: AgentDeps, run: RunState, limit: number): Promise<boolean> =>
  waitForResponseOf(deps, ownerOf(run), currentAttempt(run).responseId, limit)

/** The same for a response by its id. */
export async function waitForResponseOf(
  deps: AgentDeps,
  owner: Owner,
  responseId: string,
  limit: number,
): Promise<boolean> {
  const object = deps.responseObject(owner.organizationId, responseId)
  try {
    await withinTime(object.ended(owner), Math.max(0, limit), 'the response of a step')
    return true
  } catch (error) {
    if (error instanceof TimeLimitError) return false
    throw error
  }
}

/** Ends the response of the current attempt. @returns what it cost; null if there is none. */
export async function stopResponse(deps: AgentDeps, run: RunState): Promise<EndedStep | null> {
  const owner = ownerOf(run)
  await deps.responseObject(owner.organizationId, currentAttempt(run).responseId).cancel(owner)
  const found = await findAttemptResponse(deps, run)
  if (found === 'running') throw new Error('the response of a step did not end')
  return found
}
