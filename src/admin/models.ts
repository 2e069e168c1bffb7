import { type Administration, changeCatalogue } from '../ledger/changes/audited-change.ts'
import { notFound } from '../lib/api-error.ts'
import type { ModelReplacement } from '../wire/catalogue.ts'
import {
  type ModelRow,
  replaceModel,
  selectModel,
  selectProviderIds,
  updateModelDisabled,
} from './catalogue.store.ts'

/** @throws ApiError `not_found`. */
export async function readModel(administration: Administration, modelId: string): Promise<ModelRow> {
  const row = await selectModel(administration.database, modelId)
  if (row === null) throw notFound('Model', modelId)
  return row
}

/**
 * Creates a model, or replaces every member and all routes of an existing one.
 * @returns the model, and whether it is new. @throws ApiError `not_found` for a provider of a route.
 */
export async function putModel(
  administration: Administration,
  modelId: string,
  replacement: ModelReplacement,
): Promise<{ row: ModelRow; created: boolean }> {
  const providerIds = [...new Set(replacement.routes.map((route) => route.provider_id))]
  const known = await selectProviderIds(administration.database, providerIds)
  const unknown = providerIds.find((id) => !known.has(id))
  if (unknown !== undefined) throw notFound('Provider', unknown)
  const created = (await selectModel(administration.database, modelId)) === null
  await changeCatalogue(
    administration,
    {
      action: created ? 'model.created' : 'model.updated',
      resource: `models/${modelId}`,
      detail: { ...replacement },
    },
    () => replaceModel(administration.database, modelId, replacement),
  )
  return { row: await readModel(administration, modelId), created }
}

/** Disables a model; a PUT enables it again. @throws ApiError `not_found`. */
export async function disableModel(administration: Administration, modelId: string): Promise<ModelRow> {
  await readModel(administration, modelId)
  await changeCatalogue(
    administration,
    {
      action: 'model.disabled',
      resource: `models/${modelId}`,
      detail: {},
    },
    () => updateModelDisabled(administration.database, modelId),
  )
  return readModel(administration, modelId)
}
