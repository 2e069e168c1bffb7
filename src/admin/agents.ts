import { type DefinitionIssue, definitionIssues } from '../agents/definitions/check-definition.ts'
import { newWebhookSecret, webhookSecretContext } from '../agents/triggers/webhook-signature.ts'
import {
  audited,
  type ChangeScope,
  conflict,
  type Intent,
  withoutKeys,
} from '../ledger/changes/audited-change.ts'
import { type ApiError, notFound, unprocessable } from '../lib/api-error.ts'
import { canonicalJson } from '../lib/canonical-json.ts'
import { seal, sha256Hex } from '../lib/crypto.ts'
import { type AgentDefinition, MOST_AGENTS } from '../wire/agents.ts'
import type { Page, PageRequest } from '../wire/page-cursor.ts'
import {
  type AgentVersionRow,
  type CurrentAgent,
  countAgents,
  deleteAgent,
  insertAgent,
  selectAgent,
  selectAgentVersion,
  selectAgentVersions,
  selectTriggers,
  type TriggerRow,
  updateAgent,
  updateTriggerSecret,
} from './agents.store.ts'
import { selectKnownNames } from './known-names.store.ts'

export type ShownAgent = CurrentAgent & { triggers: TriggerRow[] }

/**
 * Creates an agent with its first version.
 * @param createdBy the user with whose rights its triggers run.
 * @throws ApiError `unprocessable` for a definition that contradicts itself; `not_found` for a user or group that the
 * organization does not have; `unprocessable` for a taken name or one agent too many.
 */
export async function createAgent(
  scope: ChangeScope,
  createdBy: string,
  definition: AgentDefinition,
): Promise<ShownAgent> {
  checkDefinition(definition)
  await checkScope(scope, definition, [createdBy])
  if ((await countAgents(scope)) >= MOST_AGENTS) {
    throw conflict(`An organization has at most ${MOST_AGENTS} agents.`)
  }
  const id = crypto.randomUUID()
  const author = authorOf(scope)
  const intent = intentOf('agent.created', { id, version: 1 }, definition, { created_by: createdBy })
  await audited(scope, intent, () => insertAgent(scope, { id, createdBy, author, definition }))
  return readAgent(scope, id)
}

/**
 * Makes the next version of an agent. Runs that have begun keep theirs.
 * @throws ApiError as `createAgent`; `unprocessable` when `version` is not the current one any more.
 */
export async function changeAgent(
  scope: ChangeScope,
  id: string,
  { version, definition }: { version: number; definition: AgentDefinition },
): Promise<ShownAgent> {
  const before = await readAgent(scope, id)
  if (before.version !== version) throw overtaken(` (its version is ${before.version})`)
  checkDefinition(definition)
  await checkScope(scope, definition, [])
  const intent = intentOf('agent.updated', { id, version: version + 1 }, definition)
  await audited(scope, intent, async () => {
    const change = { author: authorOf(scope), definition }
    if (!(await updateAgent(scope, { id, version }, change))) throw overtaken('')
  })
  return readAgent(scope, id)
}

/** Takes an agent out of use. Its runs and versions stay. @throws ApiError `not_found`. */
export async function removeAgent(scope: ChangeScope, id: string): Promise<void> {
  const { name, version } = await readAgent(scope, id)
  const intent = { action: 'agent.deleted', resource: `agents/${id}`, detail: { name, version } }
  await audited(scope, intent, async () => {
    if (!(await deleteAgent(scope, id))) throw notFound('Agent', id)
  })
}

/** @throws ApiError `not_found` for a deleted agent and one of another organization, too. */
export async function readAgent(scope: ChangeScope, id: string): Promise<ShownAgent> {
  const [agent, triggers] = await Promise.all([selectAgent(scope, id), selectTriggers(scope, id)])
  if (agent === null) throw notFound('Agent', id)
  return { ...agent, triggers }
}

/** Versions without their definitions, newest first, of a deleted agent as well. @throws ApiError `not_found`. */
export async function listAgentVersions(
  scope: ChangeScope,
  id: string,
  page: PageRequest,
): Promise<Page<AgentVersionRow>> {
  if ((await selectAgentVersion(scope, id, 1)) === null) throw notFound('Agent', id)
  return selectAgentVersions(scope, id, page)
}

/** @throws ApiError `not_found`. */
export async function readAgentVersion(
  scope: ChangeScope,
  id: string,
  version: number,
): Promise<AgentVersionRow & { definition: unknown }> {
  const row = await selectAgentVersion(scope, id, version)
  if (row === null) throw notFound('Agent version', `${id}@${version}`)
  return row
}

/**
 * Creates the secret of a webhook. The one before is valid no more.
 * @returns the secret, which is not shown again. @throws ApiError `not_found`.
 */
export async function renewWebhookSecret(scope: ChangeScope, id: string, trigger: string): Promise<string> {
  const { triggers } = await readAgent(scope, id)
  const isWebhook = triggers.some(
    ({ name, kind, removedAt }) => name === trigger && kind === 'webhook' && removedAt === null,
  )
  if (!isWebhook) throw notFound('Webhook', withoutKeys(trigger.slice(0, 100)))
  const secret = newWebhookSecret()
  const sealed = seal(scope.vaultRing, secret, webhookSecretContext(id, trigger))
  const intent = { action: 'agent.webhook_secret_renewed', resource: `agents/${id}`, detail: { trigger } }
  await audited(scope, intent, async () => {
    const key = { agentId: id, name: trigger }
    if (!(await updateTriggerSecret(scope, key, sealed))) throw notFound('Webhook', trigger)
  })
  return secret
}

/** @throws ApiError `unprocessable` naming every part that contradicts another. */
function checkDefinition(definition: AgentDefinition): void {
  const issues = definitionIssues(definition)
  if (issues.length > 0) throw invalidDefinition(issues)
}

function invalidDefinition(issues: readonly DefinitionIssue[]): ApiError {
  const message = issues.map(({ path, reason }) => `definition.${path}: ${reason}`).join('; ')
  return unprocessable(message, { issues })
}

/** @throws ApiError `not_found` for a user or a group that the organization does not have. */
async function checkScope(
  scope: ChangeScope,
  { group_ids: groupIds }: AgentDefinition,
  userIds: readonly string[],
): Promise<void> {
  const known = await selectKnownNames(scope, { group: groupIds, user: userIds })
  const user = userIds.find((id) => !known.user.has(id))
  if (user !== undefined) throw notFound('User', user)
  const group = groupIds.find((id) => !known.group.has(id))
  if (group !== undefined) throw notFound('Group', group)
}

const authorOf = ({ actor }: ChangeScope) => actor.administrator ?? actor.userId ?? 'unknown'

const overtaken = (detail: string) =>
  conflict(`The agent was changed at the same time${detail}; look at it again.`)

/** Instructions can be confidential, so the record names the version's definition by a digest. */
const intentOf = (
  action: string,
  { id, version }: { id: string; version: number },
  definition: AgentDefinition,
  more: Record<string, unknown> = {},
): Intent => ({
  action,
  resource: `agents/${id}`,
  detail: {
    name: definition.name,
    version,
    visibility: definition.visibility,
    ...more,
    definition_sha256: sha256Hex(canonicalJson(definition)),
  },
})
