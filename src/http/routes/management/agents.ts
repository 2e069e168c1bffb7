import { type AgentRow, selectAgents, type TriggerRow, type VersionRow } from '../../../admin/agents.store.ts'
import {
  changeAgent,
  createAgent,
  listVersions,
  readAgent,
  readVersion,
  removeAgent,
  renewWebhookSecret,
  type ShownAgent,
} from '../../../admin/agents.ts'
import { publishTriggers } from '../../../agents/triggers/publish-triggers.ts'
import type { Administration } from '../../../ledger/changes/audited-change.ts'
import type { AgentDefinition } from '../../../wire/agents.ts'
import { listBody } from '../../../wire/page-cursor.ts'
import type { AppContext } from '../../context.ts'
import { pageRequest } from './administration.ts'
import type { HandlersOf } from './mount-endpoints.ts'

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
async function published(context: AppContext, administration: Administration, id: string) {
  await publishTriggers(context.var.deps, id)
  return present(await readAgent(administration, id))
}

const presentVersion = (row: VersionRow) => ({
  version: row.version,
  author: row.author,
  created_at: row.createdAt,
})

/** Agents and their versions. A change names the version that it is made for. */
export const agentHandlers: HandlersOf<'agents'> = {
  'agents.list': async ({ administration, query: { name, ...paging } }) =>
    listBody(await selectAgents(administration, { name }, pageRequest(paging)), listed),
  'agents.create': async ({ context, administration, body }) => {
    const agent = await createAgent(administration, body.created_by, body.definition)
    return published(context, administration, agent.id)
  },
  'agents.show': async ({ administration, path }) => present(await readAgent(administration, path.agentId)),
  'agents.change': async ({ context, administration, path: { agentId }, body }) => {
    await changeAgent(administration, agentId, body)
    return published(context, administration, agentId)
  },
  'agents.remove': async ({ context, administration, path: { agentId: id } }) => {
    await removeAgent(administration, id)
    await publishTriggers(context.var.deps, id)
    return { id, deleted: true }
  },
  // The only time that it is shown.
  'agents.renew-secret': async ({ administration, path }) => ({
    secret: await renewWebhookSecret(administration, path.agentId, path.trigger),
  }),
  'agents.versions': async ({ administration, path, query }) =>
    listBody(await listVersions(administration, path.agentId, pageRequest(query)), presentVersion),
  'agents.version': async ({ administration, path }) => {
    const { definition, ...row } = await readVersion(administration, path.agentId, path.version)
    return { ...presentVersion(row), definition: definition as AgentDefinition }
  },
}
