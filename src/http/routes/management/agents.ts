import {
  type AgentRow,
  type AgentVersionRow,
  selectAgents,
  type TriggerRow,
} from '../../../admin/agents.store.ts'
import {
  changeAgent,
  createAgent,
  listAgentVersions,
  readAgent,
  readAgentVersion,
  removeAgent,
  renewWebhookSecret,
  type ShownAgent,
} from '../../../admin/agents.ts'
import { checkActsFor, checkAgentChange } from '../../../admin/member-rules.ts'
import { readMember } from '../../../admin/members.ts'
import { publishTriggers } from '../../../agents/triggers/publish-triggers.ts'
import type { ChangeScope } from '../../../ledger/changes/audited-change.ts'
import type { AgentDefinition } from '../../../wire/agents.ts'
import { listBody } from '../../../wire/page-cursor.ts'
import type { AppContext } from '../../context.ts'
import { pageRequest } from './change-scope.ts'
import type { HandlersOf } from './mount-endpoints.ts'
import { authorOf } from './require-permission.ts'

const listed = (row: AgentRow) => ({
  id: row.id,
  name: row.name,
  description: row.description,
  visibility: row.visibility,
  group_ids: row.groupIds,
  created_by: row.createdBy,
  version: row.version,
  created_at: row.createdAt,
  updated_at: row.updatedAt,
})

const presentTrigger = ({ name, kind, cron, publishedAt, hasSecret }: TriggerRow) =>
  kind === 'schedule'
    ? { name, kind, cron: cron ?? '', active: publishedAt !== null }
    : { name, kind, secret_set: hasSecret }

const present = ({ definition, triggers, ...row }: ShownAgent) => ({
  ...listed(row),
  // Stored as it was checked.
  definition: definition as AgentDefinition,
  triggers: triggers.filter(({ removedAt }) => removedAt === null).map(presentTrigger),
})

/** The agent after its schedules were published; one that QStash has not accepted yet is shown as not active. */
async function published(context: AppContext, scope: ChangeScope, id: string) {
  await publishTriggers(context.var.deps, id)
  return present(await readAgent(scope, id))
}

/** @param definition the next one; the present one where left out. @throws ApiError as `checkAgentChange`; `not_found`. */
async function checkAuthor(
  context: AppContext,
  scope: ChangeScope,
  agentId: string,
  definition?: AgentDefinition,
): Promise<void> {
  const author = authorOf(context, 'agents.change')
  if (author === null) return
  const agent = await readAgent(scope, agentId)
  const creator = await readMember(scope, agent.createdBy)
  checkAgentChange(author, creator, definition ?? (agent.definition as AgentDefinition))
}

const presentVersion = (row: AgentVersionRow) => ({
  version: row.version,
  author: row.author,
  created_at: row.createdAt,
})

/** Agents and their versions. A change names the version that it is made for. */
export const agentHandlers: HandlersOf<'agents'> = {
  'agents.list': async ({ scope, query: { name, ...paging } }) =>
    listBody(await selectAgents(scope, { name }, pageRequest(paging)), listed),
  'agents.create': async ({ context, scope, body }) => {
    const author = authorOf(context, 'agents.create')
    // Its triggers run with the rights of this user.
    if (author) checkActsFor(author, await readMember(scope, body.created_by))
    const agent = await createAgent(scope, body.created_by, body.definition)
    return published(context, scope, agent.id)
  },
  'agents.show': async ({ scope, path }) => present(await readAgent(scope, path.agentId)),
  'agents.change': async ({ context, scope, path: { agentId }, body }) => {
    await checkAuthor(context, scope, agentId, body.definition)
    await changeAgent(scope, agentId, body)
    return published(context, scope, agentId)
  },
  'agents.remove': async ({ context, scope, path: { agentId: id } }) => {
    await removeAgent(scope, id)
    await publishTriggers(context.var.deps, id)
    return { id, deleted: true }
  },
  // The only time that it is shown.
  'agents.renew-secret': async ({ context, scope, path }) => {
    // Whoever has the secret makes runs with the rights of the creator.
    await checkAuthor(context, scope, path.agentId)
    return { secret: await renewWebhookSecret(scope, path.agentId, path.trigger) }
  },
  'agents.versions': async ({ scope, path, query }) =>
    listBody(await listAgentVersions(scope, path.agentId, pageRequest(query)), presentVersion),
  'agents.version': async ({ scope, path }) => {
    const { definition, ...row } = await readAgentVersion(scope, path.agentId, path.version)
    return { ...presentVersion(row), definition: definition as AgentDefinition }
  },
}
