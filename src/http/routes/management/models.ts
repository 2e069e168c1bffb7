import { Hono } from 'hono'
import { type ModelRow, selectModels } from '../../../admin/model-catalogue.store.ts'
import { disableModel, putModel, readModel } from '../../../admin/models.ts'
import { invalidRequest } from '../../../lib/api-error.ts'
import { isModelId, noQuery, pageQuery } from '../../../wire/management-fields.ts'
import { modelReplacement } from '../../../wire/model-catalogue.ts'
import { listBody } from '../../../wire/page-cursor.ts'
import type { AppEnv } from '../../context.ts'
import { jsonBody, query, unknownId } from '../../validated-request.ts'
import { changeScope, deploymentScope, pageRequest } from './request.ts'

/** Model ids may hold slashes. */
const MODEL = '/models/:modelId{.+}'

const present = (row: ModelRow) => ({
  id: row.id,
  owned_by: row.ownedBy,
  context_window: row.contextWindow,
  max_output_tokens: row.maxOutputTokens,
  prices: {
    input: row.prices.input,
    output: row.prices.output,
    cache_read: row.prices.cacheRead,
    cache_write_5_minutes: row.prices.cacheWrite5Minutes,
    cache_write_1_hour: row.prices.cacheWrite1Hour,
    ...(row.prices.units && { units: row.prices.units }),
    ...(row.prices.classes && { classes: row.prices.classes }),
    ...(row.prices.longContext && {
      long_context: {
        above: row.prices.longContext.above,
        input_percent: row.prices.longContext.inputPercent,
        output_percent: row.prices.longContext.outputPercent,
      },
    }),
  },
  capabilities: row.capabilities,
  routes: row.routes.map((route) => ({
    provider_id: route.providerId,
    provider: route.providerName,
    upstream_model: route.upstreamModel,
  })),
  disabled_at: row.disabledAt,
  created_at: row.createdAt,
})

export const modelManagementRoutes = new Hono<AppEnv>()
  .use('/models/*', deploymentScope())
  .get('/models', query(pageQuery), async (context) => {
    const { database } = changeScope(context)
    const page = await selectModels(database, pageRequest(context.req.valid('query')))
    return context.json(listBody(page, present))
  })
  .get(MODEL, query(noQuery), async (context) => {
    const id = modelParameter(context.req.param('modelId'))
    return context.json(present(await readModel(changeScope(context), id)))
  })
  .put(MODEL, query(noQuery), jsonBody(modelReplacement), async (context) => {
    const id = context.req.param('modelId')
    if (!isModelId(id)) {
      throw invalidRequest('The model id must be letters, digits and . _ : @ / -, and not begin with agent/.')
    }
    const { row, created } = await putModel(changeScope(context), id, context.req.valid('json'))
    return context.json(present(row), created ? 201 : 200)
  })
  .delete(MODEL, query(noQuery), async (context) => {
    const id = modelParameter(context.req.param('modelId'))
    return context.json(present(await disableModel(changeScope(context), id)))
  })

function modelParameter(text: string): string {
  if (!isModelId(text)) throw unknownId('Model', text)
  return text
}
