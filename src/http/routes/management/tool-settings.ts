import { Hono } from 'hono'
import { readToolSettings, replaceToolSettings } from '../../../admin/tool-settings.ts'
import { noQuery } from '../../../wire/management-fields.ts'
import { toolSettings } from '../../../wire/tool-settings.ts'
import type { AppEnv } from '../../context.ts'
import { jsonBody, query } from '../../validated-request.ts'
import { changeScope } from './request.ts'

/** `organizationScope` has checked that the organization exists. */
const TOOLS = '/organizations/:organizationId/tools'

export const toolSettingsRoutes = new Hono<AppEnv>()
  .get(TOOLS, query(noQuery), async (context) => context.json(await readToolSettings(changeScope(context))))
  .put(TOOLS, query(noQuery), jsonBody(toolSettings), async (context) =>
    context.json(await replaceToolSettings(changeScope(context), context.req.valid('json'))),
  )
