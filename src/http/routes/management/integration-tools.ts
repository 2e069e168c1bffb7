import { Hono } from 'hono'
import { decideTools, readTools, switchTools } from '../../../admin/integration-tools.ts'
import { toolDecision, toolSwitch } from '../../../wire/integrations.ts'
import { noQuery } from '../../../wire/management-fields.ts'
import type { AppEnv } from '../../context.ts'
import { jsonBody, query } from '../../validated-request.ts'
import { changeScope, pathId } from './request.ts'

const TOOLS = '/organizations/:organizationId/integrations/:integrationId/tools'

/** The tools of an integration: what is offered, what waits for a decision, and what is switched off. */
export const integrationToolRoutes = new Hono<AppEnv>()
  .get(TOOLS, query(noQuery), async (context) => {
    const id = pathId(context, 'Integration')
    const data = await readTools(changeScope(context), id)
    return context.json({ data, has_more: false, next_cursor: null })
  })
  .post(`${TOOLS}/approve`, query(noQuery), jsonBody(toolDecision), async (context) => {
    const id = pathId(context, 'Integration')
    const tools = await decideTools(changeScope(context), id, 'approved', context.req.valid('json'))
    return context.json({ id, approved: tools })
  })
  .post(`${TOOLS}/reject`, query(noQuery), jsonBody(toolDecision), async (context) => {
    const id = pathId(context, 'Integration')
    const tools = await decideTools(changeScope(context), id, 'rejected', context.req.valid('json'))
    return context.json({ id, rejected: tools })
  })
  .post(`${TOOLS}/enable`, query(noQuery), jsonBody(toolSwitch), async (context) => {
    const id = pathId(context, 'Integration')
    const { tools } = context.req.valid('json')
    const disabledTools = await switchTools(changeScope(context), id, { enable: tools })
    return context.json({ id, disabled_tools: disabledTools })
  })
  .post(`${TOOLS}/disable`, query(noQuery), jsonBody(toolSwitch), async (context) => {
    const id = pathId(context, 'Integration')
    const { tools } = context.req.valid('json')
    const disabledTools = await switchTools(changeScope(context), id, { disable: tools })
    return context.json({ id, disabled_tools: disabledTools })
  })
