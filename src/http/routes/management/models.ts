import { type ModelRow, selectModels } from '../../../admin/model-catalogue.store.ts'
import { disableModel, putModel, readModel } from '../../../admin/models.ts'
import { listBody } from '../../../wire/page-cursor.ts'
import { pageRequest } from './change-scope.ts'
import { Created, type HandlersOf } from './mount-endpoints.ts'

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

export const modelHandlers: HandlersOf<'models'> = {
  'models.list': async ({ scope, query }) =>
    listBody(await selectModels(scope.database, pageRequest(query)), present),
  'models.show': async ({ scope, path }) => present(await readModel(scope, path.modelId)),
  'models.replace': async ({ scope, path, body }) => {
    const { row, created } = await putModel(scope, path.modelId, body)
    return created ? new Created(present(row)) : present(row)
  },
  'models.disable': async ({ scope, path }) => present(await disableModel(scope, path.modelId)),
}
