import { renewPrincipal } from '../../identity/identify.ts'
import { sha256Hex } from '../../lib/crypto.ts'
import { logEvent } from '../../lib/log.ts'
import type { InputValue } from '../../wire/agents.ts'
import type { AgentDeps } from '../agent-deps.ts'
import { beginRun } from '../runs/begin-run.ts'
import { type FiringTrigger, selectTrigger, type TriggerKey } from './triggers.store.ts'

/**
 * Begins the run of a schedule's message, once for each message and each signature: a repeated or replayed delivery begins no
 * other. A trigger that was removed meanwhile does nothing, and neither does one whose agent's creator has no access: its run could do
 * nothing, and after the erasure of a person nothing would erase it.
 * @throws as `beginRun`, and what the database throws.
 */
export async function fireSchedule(
  deps: AgentDeps,
  key: TriggerKey,
  { messageId, signatureId }: { messageId: string; signatureId: string },
): Promise<void> {
  const trigger = await selectTrigger(deps.database, key)
  if (trigger?.kind !== 'schedule') return
  const { organizationId, agentId, name } = key
  const owner = { organizationId, userId: trigger.agent.createdBy }
  const credential = { kind: 'trigger', agentId, name } as const
  const identification = await renewPrincipal(deps, { ...owner, credential })
  if (identification.kind === 'refused') {
    logEvent('warn', 'schedule_without_access', { agent_id: agentId, trigger: name })
    return
  }
  await beginRun(deps, {
    agent: trigger.agent,
    owner,
    origin: 'schedule',
    inputs: trigger.inputs,
    repeatable: { identities: [`message ${messageId}`, `signature ${signatureId}`], content: '' },
  })
}

/** Begins the run of a webhook, once for each of its ids. @throws as `beginRun`. */
export function fireWebhook(
  deps: AgentDeps,
  key: TriggerKey,
  { agent }: FiringTrigger,
  { id, body, inputs }: { id: string; body: string; inputs: readonly InputValue[] },
): Promise<{ runId: string; conversationId: string }> {
  return beginRun(deps, {
    agent,
    owner: { organizationId: key.organizationId, userId: agent.createdBy },
    origin: 'webhook',
    inputs,
    repeatable: { identities: [`webhook ${key.agentId} ${key.name} ${id}`], content: sha256Hex(body) },
  })
}
