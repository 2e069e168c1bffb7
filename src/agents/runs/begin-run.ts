import { ApiError, notFound } from '../../lib/api-error.ts'
import { sha256Hex } from '../../lib/crypto.ts'
import { newConversationId } from '../../responses/model/response-ids.ts'
import { storedResponseId } from '../../responses/pool/start-response.ts'
import type { InputValue } from '../../wire/agents.ts'
import type { AgentDeps } from '../agent-deps.ts'
import { storedDefinition } from '../definitions/stored-definition.ts'
import {
  type BegunRun,
  insertRun,
  type NewRun,
  type RequestIdentity,
  type RunnableAgent,
} from './begin-run.store.ts'
import { announceRun } from './publish-run.ts'
import { declaredInputs, type RunMetadata, sealInputs } from './run-inputs.ts'
import { newAttempt, runDeadline } from './transitions.ts'

/** A request for a run of the latest version of an agent. */
interface RunBeginning extends Pick<NewRun, 'owner' | 'origin'> {
  agent: RunnableAgent
  inputs: readonly InputValue[]
  /** Metadata of the run's response; empty when left out. */
  metadata?: RunMetadata
  restartedFrom?: string
  /** Identity by which a repeated request is recognized; absent for a request that is not repeated. */
  repeatable?: RepeatableRequest
}

interface RepeatableRequest {
  /** Texts that identify it, each alone. */
  identities: readonly string[]
  /** The requested content: another content under the same identity is an error. */
  content: string
}

/**
 * Begins a run, or finds the one that the same request has begun. The run and its message are stored before this returns.
 * @throws ApiError unprocessable for a missing input, and for an Idempotency-Key that was sent with other content; not_found
 * for an agent that is deleted at this moment; internal where QStash is not configured.
 */
export async function beginRun(
  deps: AgentDeps,
  { agent, owner, origin, inputs, metadata, restartedFrom, repeatable }: RunBeginning,
): Promise<{ runId: string; conversationId: string }> {
  if (!deps.runQueue) throw notConfigured()
  const definition = storedDefinition(agent.definition)
  const values = declaredInputs(definition, inputs)
  const id = crypto.randomUUID()
  const createdAt = deps.clock()
  const deadlineAt = runDeadline(definition, createdAt)
  const attempt = newAttempt({ definition, deadlineAt: new Date(deadlineAt) }, 1, 1, createdAt)
  const content = sha256Hex(repeatable?.content ?? '')
  const run = {
    ...{ id, owner, origin, createdAt, deadlineAt, stepDeadlineAt: attempt.deadlineAt },
    agentId: agent.id,
    agentVersion: agent.version,
    restartedFrom: restartedFrom ?? null,
    conversationId: newConversationId(),
    responseId: storedResponseId(deps),
    sealedInputs: sealInputs(deps.configuration.VAULT_KEYS, id, values, metadata),
  }
  const identities = repeatable?.identities ?? []
  const known = identities.map((text): RequestIdentity => ({ digest: sha256Hex(text), content }))
  const begun = await insertRun(deps.database, run, known)
  if (!begun) throw notFound('Agent', agent.id)
  checkContent(begun, content)
  if (begun.isNew) {
    await announceRun(deps, { organizationId: owner.organizationId, runId: id, rev: 1 })
  }
  const { runId, conversationId } = begun
  return { runId, conversationId }
}

function checkContent(begun: BegunRun, content: string): void {
  if (begun.content === null || begun.content === content) return
  throw new ApiError(
    'unprocessable',
    'This Idempotency-Key was used for another request within the last 24 hours.',
    { code: 'idempotency_key_reused' },
  )
}

export const notConfigured = () =>
  new ApiError('internal', 'Agents cannot run: QStash or BASE_URL is not configured.')
