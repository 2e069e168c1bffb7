import { type DefinitionIssue, definitionIssues } from '../agents/definitions/check-definition.ts'
import { newWebhookSecret, webhookSecretContext } from '../agents/triggers/webhook-signature.ts'
import {
  type Administration,
  audited,
  conflict,
  type Intent,
  withoutKeys,
} from '../ledger/changes/audited-change.ts'
import { ApiError, notFound } from '../lib/api-error.ts'
import { canonicalJson } from '../lib/canonical-json.ts'
import { seal, sha256Hex } from '../lib/crypto.ts'
import { type AgentDefinition, MOST_AGENTS } from '../wire/agents.ts'
import type { Page, PageRequest } from '../wire/page-cursor.ts'
import {
  type CurrentAgent,
  countAgents,
  deleteAgent,
  insertAgent,
  selectAgent,
  selectTriggers,
  selectVersion,
  selectVersions,
  type TriggerRow,
  updateAgent,
  updateTriggerSecret,
  type VersionRow,
} from './agents.store.ts'
import { selectKnownNames } from './known-names.store.ts'

export type ShownAgent = CurrentAgent & { triggers: TriggerRow[] }

/**
 * Creates an agent with its first version.
 * @param createdBy the user with whose rights its triggers run.
 * @throws ApiError `invalid_request` for a definition that contradicts itself; `not_found` for a user or group that the
 * organization does not have; `unprocessable` for a taken name or one agent too many.
 */
export async function createAgent(
  administration: Administration,
  createdBy: string,
  definition: AgentDefinition,
): Promise<ShownAgent> {
  checkDefinition(definition)
  await checkScope(administration, definition, [createdBy])
  if ((await countAgents(administration)) >= MOST_AGENTS) {
    throw conflict(`An organization has at most ${MOST_AGENTS} agents.`)
  }
  const id = crypto.randomUUID()
  const author = authorOf(administration)
  const intent = intentOf('agent.created', { id, version: 1 }, definition, { created_by: createdBy })
  await audited(administration, intent, () =>
    insertAgent(administration, { id, createdBy, author, definition }),
  )
  return readAgent(administration, id)
}

/**
 * Makes the next version of an agent. Runs that have begun keep theirs.
 * @throws ApiError as `createAgent`; `unprocessable` when `version` is not the current one any more.
 */
export async function changeAgent(
  administration: Administration,
  id: string,
  { version, definition }: { version: number; definition: AgentDefinition },
): Promise<ShownAgent> {
  const before = await readAgent(administration, id)
  if (before.version !== version) throw overtaken(` (its version is ${before.version})`)
  checkDefinition(definition)
  await checkScope(administration, definition, [])
  const intent = intentOf('agent.updated', { id, version: version + 1 }, definition)
  await audited(administration, intent, async () => {
    const change = { author: authorOf(administration), definition }
    if (!(await updateAgent(administration, { id, version }, change))) throw overtaken('')
  })
  return readAgent(administration, id)
}

/** Takes an agent out of use. Its runs and versions stay. @throws ApiError `not_found`. */
export async function removeAgent(administration: Administration, id: string): Promise<void> {
  const { name, version } = await readAgent(administration, id)
  const intent = { action: 'agent.deleted', resource: `agents/${id}`, detail: { name, version } }
  await audited(administration, intent, async () => {
    if (!(await deleteAgent(administration, id))) throw notFound('Agent', id)
  })
}

/** @throws ApiError `not_found` for a deleted agent and one of another organization, too. */
export async function readAgent(administration: Administration, id: string): Promise<ShownAgent> {
  const [agent, triggers] = await Promise.all([
    selectAgent(administration, id),
    selectTriggers(administration, id),
  ])
  if (agent === null) throw notFound('Agent', id)
  return { ...agent, triggers }
}

/** Versions without their definitions, newest first, of a deleted agent as well. @throws ApiError `not_found`. */
export async function listVersions(
  administration: Administration,
  id: string,
  page: PageRequest,
): Promise<Page<VersionRow>> {
  if ((await selectVersion(administration, id, 1)) === null) throw notFound('Agent', id)
  return selectVersions(administration, id, page)
}

/** @throws ApiError `not_found`. */
export async function readVersion(
  administration: Administration,
  id: string,
  version: number,
): Promise<VersionRow & { definition: unknown }> {
  const row = await selectVersion(administration, id, version)
  if (row === null) throw notFound('Agent version', `${id}@${version}`)
  return row
}

/**
 * Creates the secret of a webhook. The one before is valid no more.
 * @returns the secret, which is not shown again. @throws ApiError `not_found`.
 */
export async function renewWebhookSecret(
  administration: Administration,
  id: string,
  trigger: string,
): Promise<string> {
  const { triggers } = await readAgent(administration, id)
  const isWebhook = triggers.some(
    ({ name, kind, removedAt }) => name === trigger && kind === 'webhook' && removedAt === null,
  )
  if (!isWebhook) throw notFound('Webhook', withoutKeys(trigger.slice(0, 100)))
  const secret = newWebhookSecret()
  const sealed = seal(administration.vaultRing, secret, webhookSecretContext(id, trigger))
  const intent = { action: 'agent.webhook_secret_renewed', resource: `agents/${id}`, detail: { trigger } }
  await audited(administration, intent, async () => {
    const key = { agentId: id, name: trigger }
    if (!(await updateTriggerSecret(administration, key, sealed))) throw notFound('Webhook', trigger)
  })
  return secret
}

/** @throws ApiError `invalid_request` naming every part that contradicts another. */
function checkDefinition(definition: AgentDefinition): void {
  const issues = definitionIssues(definition)
  if (issues.length > 0) throw invalidDefinition(issues)
}

function invalidDefinition(issues: readonly DefinitionIssue[]): ApiError {
  const message = issues.map(({ path, reason }) => `definition.${path}: ${reason}`).join('; ')
  return new ApiError('invalid_request', message, { code: 'invalid_body', details: { issues } })
}

/** @throws ApiError `not_found` for a user or a group that the organization does not have. */
async function checkScope(
  administration: Administration,
  { group_ids: groupIds }: AgentDefinition,
  userIds: readonly string[],
): Promise<void> {
  const known = await selectKnownNames(administration, { group: groupIds, user: userIds })
  const user = userIds.find((id) => !known.user.has(id))
  if (user !== undefined) throw notFound('User', user)
  const group = groupIds.find((id) => !known.group.has(id))
  if (group !== undefined) throw notFound('Group', group)
}

const authorOf = ({ actor }: Administration) => actor.administrator ?? actor.userId ?? 'unknown'

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
