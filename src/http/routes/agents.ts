import { Hono } from 'hono'
import { storedDefinition } from '../../agents/definitions/agents.ts'
import {
  selectVisibleAgent,
  selectVisibleAgents,
  type VisibleAgent,
} from '../../agents/definitions/visible-agents.store.ts'
import { beginRun } from '../../agents/runs/begin-run.ts'
import { selectRecentRuns } from '../../agents/runs/read-runs.store.ts'
import { runRequest, visibleAgentsQuery } from '../../wire/agents.ts'
import { isUuid } from '../../wire/management-fields.ts'
import type { AppContext, AppEnv } from '../context.ts'
import { idempotencyKey } from '../idempotency-key.ts'
import { readJson } from '../json-request.ts'
import { query, unknownId } from '../validated-request.ts'
import { ownerOf } from './response-answers.ts'

const MOST_RECENT_RUNS = 10

/** Agents that the caller may see, and their runs (interface: Agents). Others do not exist for it. */
export const agentRoutes = new Hono<AppEnv>()
  .get('/v1/agents/list', query(visibleAgentsQuery), async (context) => {
    const { deps, rights } = context.var
    const found = await selectVisibleAgents(deps.database, rights.principal, context.req.valid('query'))
    return context.json({ items: found.items.map(summary), total: found.total })
  })
  .post('/v1/agents/runs', async (context) => {
    const { deps } = context.var
    const { agentId, inputs } = await readJson(context, runRequest)
    const key = idempotencyKey(context)
    const agent = await visibleAgent(context, agentId)
    const given = inputs ?? []
    const run = await beginRun(deps, {
      agent,
      owner: ownerOf(context),
      origin: 'api',
      inputs: given,
      ...(key !== null && {
        repeatable: { identities: [`trigger ${key}`], content: JSON.stringify([agent.id, given]) },
      }),
    })
    return context.json(run, 202)
  })
  .get('/v1/agents/:agentId', async (context) => {
    const agent = await visibleAgent(context, context.req.param('agentId'))
    const definition = storedDefinition(agent.definition)
    const runs = await selectRecentRuns(
      context.var.deps.database,
      ownerOf(context),
      agent.id,
      MOST_RECENT_RUNS,
    )
    return context.json({
      agentId: agent.id,
      name: agent.name,
      description: agent.description,
      inputs: definition.inputs.map(({ name }) => name),
      hasTriggers: agent.hasTriggers,
      modelsInUse: [...new Set(definition.steps.map(({ model }) => model))],
      recentRunIds: runs.map(({ id }) => id),
      lastRunAtUtc: runs[0]?.createdAt.toISOString() ?? null,
      metadata: agent.metadata,
    })
  })

const summary = ({ id, name, description, createdAt, creatorName, metadata }: VisibleAgent) => ({
  agentId: id,
  name,
  description,
  createdAt: createdAt.toISOString(),
  creatorName,
  metadata,
})

/** @throws ApiError not_found for an agent that the caller may not see, and for text that is no id. */
async function visibleAgent(context: AppContext, text: string) {
  const { deps, rights } = context.var
  const id = text.toLowerCase()
  const agent = isUuid(id) ? await selectVisibleAgent(deps.database, rights.principal, id) : null
  if (agent === null) throw unknownId('Agent', text)
  return agent
}
