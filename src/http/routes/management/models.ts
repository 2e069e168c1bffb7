import { readMember } from '../../../admin/members.ts'
import { type ModelRow, selectModels } from '../../../admin/model-catalogue.store.ts'
import { disableModel, putModel, readModel } from '../../../admin/models.ts'
import { type NamedGrant, selectOrganizationModels } from '../../../admin/organization-models.store.ts'
import type { ChangeScope } from '../../../ledger/changes/audited-change.ts'
import { notFound } from '../../../lib/api-error.ts'
import { listBody } from '../../../wire/page-cursor.ts'
import { pageRequest } from './change-scope.ts'
import { Created, type HandlersOf } from './mount-endpoints.ts'

/** What callers of a model see of it. */
const presentPublic = (row: Omit<ModelRow, 'routes'>) => ({
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
})

const present = (row: ModelRow) => ({
  ...presentPublic(row),
  routes: row.routes.map((route) => ({
    provider_id: route.providerId,
    provider: route.providerName,
    upstream_model: route.upstreamModel,
    price_percent: route.pricePercent,
  })),
  disabled_at: row.disabledAt,
  created_at: row.createdAt,
})

const presentGrant = (grant: NamedGrant) => ({
  id: grant.id,
  subject_type: grant.subjectType,
  subject_id: grant.subjectId,
  name: grant.name,
  model_id: grant.modelId,
})

/** The member whose models are listed; undefined for all models of an organization. @throws ApiError `not_found` for a user out of reach. */
async function grantedMember(scope: ChangeScope, own: string | null, userId: string | undefined) {
  if (own !== null && userId !== undefined && userId !== own) throw notFound('User', userId)
  const subject = own ?? userId
  return subject === undefined ? undefined : readMember(scope, subject)
}

export const modelHandlers: HandlersOf<'models' | 'organization-models'> = {
  'organization-models.list': async ({ scope, own, query: { user_id: userId, ...paging } }) => {
    const member = await grantedMember(scope, own, userId)
    const page = await selectOrganizationModels(scope, member, pageRequest(paging))
    return listBody(page, ({ grants, ...row }) => ({
      ...presentPublic(row),
      granted_by: grants.map(presentGrant),
    }))
  },
  'models.list': async ({ scope, query }) =>
    listBody(await selectModels(scope.database, pageRequest(query)), present),
  'models.show': async ({ scope, path }) => present(await readModel(scope, path.modelId)),
  'models.replace': async ({ scope, path, body }) => {
    const { row, created } = await putModel(scope, path.modelId, body)
    return created ? new Created(present(row)) : present(row)
  },
  'models.disable': async ({ scope, path }) => present(await disableModel(scope, path.modelId)),
}
