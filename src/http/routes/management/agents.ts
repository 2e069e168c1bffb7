import { Hono } from 'hono'
import { type AgentRow, type AgentVersionRow, selectAgents } from '../../../admin/agents.store.ts'
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
import { publishTriggers } from '../../../agents/triggers/publish-triggers.ts'
import { notFound } from '../../../lib/api-error.ts'
import { agentCreation, agentListQuery, agentUpdate } from '../../../wire/agents.ts'
import { noQuery, pageQuery } from '../../../wire/management-fields.ts'
import { listBody } from '../../../wire/page-cursor.ts'
import type { AppContext, AppEnv } from '../../context.ts'
import { jsonBody, query } from '../../validated-request.ts'
import { changeScope, pageRequest, pathId } from './request.ts'

const AGENTS = '/organizations/:organizationId/agents'
const AGENT = '/organizations/:organizationId/agents/:agentId'
const SECRET = '/organizations/:organizationId/agents/:agentId/triggers/:trigger/secret'
const VERSIONS = '/organizations/:organizationId/agents/:agentId/versions'
const VERSION = '/organizations/:organizationId/agents/:agentId/versions/:version'

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

const present = ({ definition, triggers, ...row }: ShownAgent) => ({
  ...listed(row),
  definition,
  triggers: triggers
    .filter(({ removedAt }) => removedAt === null)
    .map(({ name, kind, cron, publishedAt, hasSecret }) => ({
      name,
      kind,
      ...(kind === 'schedule' ? { cron, active: publishedAt !== null } : { secret_set: hasSecret }),
    })),
})

/** The agent after its schedules were published; one that QStash has not accepted yet is shown as not active. */
async function published(context: AppContext, id: string) {
  await publishTriggers(context.var.deps, id)
  return present(await readAgent(changeScope(context), id))
}

const presentVersion = (row: AgentVersionRow) => ({
  version: row.version,
  author: row.author,
  created_at: row.createdAt,
})

/** Agents and their versions. A change names the version that it is made for. */
export const agentManagementRoutes = new Hono<AppEnv>()
  .get(AGENTS, query(agentListQuery), async (context) => {
    const { name, ...paging } = context.req.valid('query')
    const page = await selectAgents(changeScope(context), { name }, pageRequest(paging))
    return context.json(listBody(page, listed))
  })
  .post(AGENTS, query(noQuery), jsonBody(agentCreation), async (context) => {
    const { created_by: createdBy, definition } = context.req.valid('json')
    const agent = await createAgent(changeScope(context), createdBy, definition)
    return context.json(await published(context, agent.id), 201)
  })
  .get(AGENT, query(noQuery), async (context) =>
    context.json(present(await readAgent(changeScope(context), pathId(context, 'Agent')))),
  )
  .put(AGENT, query(noQuery), jsonBody(agentUpdate), async (context) => {
    const id = pathId(context, 'Agent')
    await changeAgent(changeScope(context), id, context.req.valid('json'))
    return context.json(await published(context, id))
  })
  .delete(AGENT, query(noQuery), async (context) => {
    const id = pathId(context, 'Agent')
    await removeAgent(changeScope(context), id)
    await publishTriggers(context.var.deps, id)
    return context.json({ id, deleted: true })
  })
  .post(SECRET, query(noQuery), async (context) => {
    const id = pathId(context, 'Agent')
    const { trigger } = context.req.param()
    // The only time that it is shown.
    return context.json({ secret: await renewWebhookSecret(changeScope(context), id, trigger) })
  })
  .get(VERSIONS, query(pageQuery), async (context) => {
    const id = pathId(context, 'Agent')
    const page = await listAgentVersions(changeScope(context), id, pageRequest(context.req.valid('query')))
    return context.json(listBody(page, presentVersion))
  })
  .get(VERSION, query(noQuery), async (context) => {
    const id = pathId(context, 'Agent')
    const text = context.req.param('version')
    if (!/^[1-9]\d{0,8}$/.test(text)) throw notFound('Agent version', `${id}@${text.slice(0, 20)}`)
    const { definition, ...row } = await readAgentVersion(changeScope(context), id, Number(text))
    return context.json({ ...presentVersion(row), definition })
  })
