import { type ChangeScope, changeCatalogue } from '../ledger/changes/audited-change.ts'
import { notFound } from '../lib/api-error.ts'
import type { ModelReplacement } from '../wire/model-catalogue.ts'
import {
  type ModelRow,
  replaceModel,
  selectModel,
  selectProviderIds,
  updateModelDisabled,
} from './model-catalogue.store.ts'

/** @throws ApiError `not_found`. */
export async function readModel(scope: ChangeScope, modelId: string): Promise<ModelRow> {
  const row = await selectModel(scope.database, modelId)
  if (row === null) throw notFound('Model', modelId)
  return row
}

/**
 * Creates a model, or replaces every member and all routes of an existing one.
 * @returns the model, and whether it is new. @throws ApiError `not_found` for a provider of a route.
 */
export async function putModel(
  scope: ChangeScope,
  modelId: string,
  replacement: ModelReplacement,
): Promise<{ row: ModelRow; created: boolean }> {
  const providerIds = [...new Set(replacement.routes.map((route) => route.provider_id))]
  const known = await selectProviderIds(scope.database, providerIds)
  const unknown = providerIds.find((id) => !known.has(id))
  if (unknown !== undefined) throw notFound('Provider', unknown)
  const created = (await selectModel(scope.database, modelId)) === null
  await changeCatalogue(
    scope,
    {
      action: created ? 'model.created' : 'model.updated',
      resource: `models/${modelId}`,
      detail: { ...replacement },
    },
    () => replaceModel(scope.database, modelId, replacement),
  )
  return { row: await readModel(scope, modelId), created }
}

/** Disables a model; a PUT enables it again. @throws ApiError `not_found`. */
export async function disableModel(scope: ChangeScope, modelId: string): Promise<ModelRow> {
  await readModel(scope, modelId)
  await changeCatalogue(
    scope,
    {
      action: 'model.disabled',
      resource: `models/${modelId}`,
      detail: {},
    },
    () => updateModelDisabled(scope.database, modelId),
  )
  return readModel(scope, modelId)
}
