import { Hono } from 'hono'
import { describeAgent, listVisibleAgents } from '../../agents/definitions/visible-agents.ts'
import { startRun } from '../../agents/own-runs.ts'
import { runRequest, visibleAgentsQuery } from '../../wire/agents.ts'
import { isUuid } from '../../wire/management-fields.ts'
import type { AppEnv } from '../context.ts'
import { idempotencyKey } from '../idempotency-key.ts'
import { readJson } from '../json-request.ts'
import { query, unknownId } from '../validated-request.ts'

/** Agents that the caller may see, and their runs (interface: Agents). Others do not exist for it. */
export const agentRoutes = new Hono<AppEnv>()
  .get('/v1/agents/list', query(visibleAgentsQuery), async (context) => {
    const { deps, rights } = context.var
    return context.json(await listVisibleAgents(deps, rights.principal, context.req.valid('query')))
  })
  .post('/v1/agents/runs', async (context) => {
    const { deps, rights } = context.var
    const { agentId, inputs } = await readJson(context, runRequest)
    const key = idempotencyKey(context)
    const request = { agentId: knownForm(agentId), inputs: inputs ?? [], idempotencyKey: key }
    return context.json(await startRun(deps, rights.principal, request), 202)
  })
  .get('/v1/agents/:agentId', async (context) => {
    const { deps, rights } = context.var
    const agentId = knownForm(context.req.param('agentId'))
    return context.json(await describeAgent(deps, rights.principal, agentId))
  })

/** @throws ApiError not_found for text that is no id. */
function knownForm(text: string): string {
  const id = text.toLowerCase()
  if (!isUuid(id)) throw unknownId('Agent', text)
  return id
}
