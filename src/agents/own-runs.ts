/** Runs as their user starts and reads them. Runs of other users are treated as missing (interface: Agents). */
import type { Database } from '../../schema/database.ts'
import { policyFor } from '../calls/policy-for-call.ts'
import { modelTarget } from '../calls/target.ts'
import type { Principal } from '../identity/principal.ts'
import { notFound } from '../lib/api-error.ts'
import { runSlices } from '../lib/slices.ts'
import { redactItems } from '../responses/items/redaction.ts'
import type { Owner } from '../responses/model/types.ts'
import type { RunEvaluation, ShownRun, ShownStep, StartedRun } from '../wire/agent-answers.ts'
import type { InputValue } from '../wire/agents.ts'
import type { AgentDeps } from './agent-deps.ts'
import { storedDefinition } from './definitions/stored-definition.ts'
import { mayUseAgents, visibleAgent } from './definitions/visible-agents.ts'
import { readEvaluation } from './evaluations/read-evaluation.ts'
import { beginRun } from './runs/begin-run.ts'
import { type ReadRun, selectAttempts, selectRun, selectRunInputs } from './runs/read-runs.store.ts'
import { openInputs } from './runs/run-inputs.ts'

const ownerOf = ({ organizationId, userId }: Principal): Owner => ({ organizationId, userId })

/**
 * Starts a run of an agent that the caller may see.
 * @param request.agentId a UUID. @param request.idempotencyKey null for a request that cannot be recognized again.
 * @throws ApiError not_found; what `beginRun` throws.
 */
export async function startRun(
  deps: AgentDeps,
  principal: Principal,
  request: { agentId: string; inputs: readonly InputValue[]; idempotencyKey: string | null },
): Promise<StartedRun> {
  const { agentId, inputs, idempotencyKey } = request
  const agent = await visibleAgent(deps, principal, agentId)
  return beginRun(deps, {
    agent,
    owner: ownerOf(principal),
    origin: 'api',
    inputs,
    ...(idempotencyKey !== null && {
      repeatable: {
        identities: [`trigger ${idempotencyKey}`],
        content: JSON.stringify([agent.id, inputs]),
      },
    }),
  })
}

/**
 * Starts a run with the inputs of another one, by the latest version of its agent.
 * @param runId a UUID. @param idempotencyKey as `startRun`.
 * @throws ApiError not_found for a run that is not the caller's, and for an agent that it may not see; what `beginRun` throws.
 */
export async function restartRun(
  deps: AgentDeps,
  principal: Principal,
  runId: string,
  idempotencyKey: string | null,
): Promise<StartedRun> {
  const owner = ownerOf(principal)
  const source = mayUseAgents(principal) ? await selectRunInputs(deps.database, owner, runId) : null
  if (source === null) throw notFound('Run', runId)
  const agent = await visibleAgent(deps, principal, source.agentId)
  const inputs = openInputs(deps.configuration.VAULT_KEYS, runId, source.sealedInputs)
  return beginRun(deps, {
    agent,
    owner,
    origin: 'restart',
    restartedFrom: runId,
    inputs: Object.entries(inputs).map(([name, value]) => ({ name, value })),
    ...(idempotencyKey !== null && {
      repeatable: { identities: [`restart ${idempotencyKey}`], content: runId },
    }),
  })
}

/** @param runId a UUID. @throws ApiError not_found; internal when the policies cannot be read. */
export async function readRun(deps: AgentDeps, principal: Principal, runId: string): Promise<ShownRun> {
  const run = await ownRun(deps, principal, runId)
  return {
    runId: run.id,
    agentId: run.agentDeletedAt === null ? run.agentId : null,
    conversationId: run.conversationId,
    createdAtUtc: run.createdAt.toISOString(),
    endedAtUtc: run.endedAt?.toISOString() ?? null,
    result: await redactedResult(deps, principal, run),
    status: run.status,
  }
}

/** The attempts of a run's steps, in order. @param runId a UUID. @throws ApiError not_found. */
export async function readRunSteps(
  deps: { database: Database },
  principal: Principal,
  runId: string,
): Promise<ShownStep[]> {
  const { definition } = await ownRun(deps, principal, runId)
  const { steps } = storedDefinition(definition)
  const { organizationId } = principal
  const attempts = await selectAttempts({ database: deps.database, organizationId }, runId)
  return attempts.map(({ number, attempt, status, error, createdAt, endedAt }) => ({
    stepNumber: number,
    name: steps[number - 1]?.name ?? null,
    attempt,
    status,
    error,
    createdAtUtc: createdAt.toISOString(),
    endedAtUtc: endedAt?.toISOString() ?? null,
  }))
}

/** The verdicts of a run. @param runId a UUID. @throws ApiError not_found. */
export async function evaluateRun(
  deps: AgentDeps,
  principal: Principal,
  runId: string,
): Promise<RunEvaluation> {
  return readEvaluation(deps, principal, await ownRun(deps, principal, runId))
}

/** @param runId a UUID. @throws ApiError not_found. */
export async function ownRun(
  { database }: { database: Database },
  principal: Principal,
  runId: string,
): Promise<ReadRun> {
  const run = mayUseAgents(principal) ? await selectRun(database, ownerOf(principal), runId) : null
  if (run === null) throw notFound('Run', runId)
  return run
}

/** The result as its user may read it under the current policies. */
async function redactedResult(
  deps: AgentDeps,
  principal: Principal,
  { result, definition, step }: ReadRun,
): Promise<string | null> {
  if (result === null) return null
  const model = storedDefinition(definition).steps[step - 1]?.model ?? ''
  const { parts, ...message } = JSON.parse(result) as { role: string; parts: Array<{ text: string }> }
  // Policies read the parts of a message in their form of the Responses surface.
  const content = parts.map(({ text }) => ({ type: 'output_text', text }))
  const policy = await policyFor(deps, principal, modelTarget(model))
  const [redacted] = await runSlices(redactItems(policy, [{ type: 'message', role: 'assistant', content }]))
  const shown = redacted?.content.map(({ text }) => ({ type: 'text', text }))
  return JSON.stringify({ ...message, parts: shown })
}
