import { type ProviderRow, selectProviders } from '../../../admin/model-catalogue.store.ts'
import { changeProvider, createProvider, readProvider } from '../../../admin/providers.ts'
import { forgetRefusal, readRefusal } from '../../../gateway/upstreams/provider-health.ts'
import { listBody } from '../../../wire/page-cursor.ts'
import type { AppContext } from '../../context.ts'
import { pageRequest } from './change-scope.ts'
import type { HandlersOf } from './mount-endpoints.ts'

/** The public form of a provider. The credential is write-only. */
const present = (row: ProviderRow) => ({
  id: row.id,
  name: row.name,
  kind: row.kind,
  base_url: row.baseUrl,
  organization_id: row.organizationId,
  allowed_members: row.allowedMembers,
  allow_unpriced: row.allowsUnpriced,
  credential_set: true as const,
  disabled_at: row.disabledAt,
  created_at: row.createdAt,
})

/** Adds the provider's latest refusal of the gateway's credential, since which it has served no call. */
async function presentWithHealth(context: AppContext, row: ProviderRow) {
  const refusal = await readRefusal(context.get('deps').redis, row.id)
  const health: 'refuses_gateway' | 'ok' | 'unknown' = refusal
    ? 'refuses_gateway'
    : refusal === null
      ? 'ok'
      : 'unknown'
  const refusedAt = refusal ? new Date(refusal.at) : null
  return { ...present(row), health, refused_status: refusal?.status ?? null, refused_at: refusedAt }
}

export const providerHandlers: HandlersOf<'providers'> = {
  'providers.list': async ({ scope, query }) =>
    listBody(await selectProviders(scope.database, pageRequest(query)), present),
  'providers.create': async ({ scope, body }) => {
    const { name, kind, credential } = body
    const values = { name, kind, credential, ...sharedValues(body), organizationId: body.organization_id }
    return present(await createProvider(scope, { ...values, baseUrl: body.base_url }))
  },
  'providers.show': async ({ context, scope, path }) =>
    presentWithHealth(context, await readProvider(scope, path.providerId)),
  'providers.change': async ({ context, scope, path: { providerId: id }, body }) => {
    const { name, credential, disabled } = body
    const changes = { name, credential, disabled, ...sharedValues(body), baseUrl: body.base_url }
    const row = await changeProvider(scope, id, changes)
    if (credential !== undefined) await forgetRefusal(context.get('deps').redis, id)
    return present(row)
  },
  'providers.disable': async ({ scope, path }) =>
    present(await changeProvider(scope, path.providerId, { disabled: true })),
}

const sharedValues = (body: {
  allowed_members?: string[] | undefined
  allow_unpriced?: boolean | undefined
}) => ({
  allowedMembers: body.allowed_members,
  allowsUnpriced: body.allow_unpriced,
})
