import { Hono } from 'hono'
import { type ProviderRow, selectProviders } from '../../../admin/model-catalogue.store.ts'
import { changeProvider, createProvider, readProvider } from '../../../admin/providers.ts'
import { forgetRefusal, readRefusal } from '../../../gateway/upstreams/provider-health.ts'
import { noQuery, pageQuery } from '../../../wire/management-fields.ts'
import { providerCreation, providerUpdate } from '../../../wire/model-catalogue.ts'
import { listBody } from '../../../wire/page-cursor.ts'
import type { AppContext, AppEnv } from '../../context.ts'
import { jsonBody, query } from '../../validated-request.ts'
import { changeScope, deploymentScope, pageRequest, pathId } from './request.ts'

/** The public form of a provider. The credential is write-only. */
const present = (row: ProviderRow) => ({
  id: row.id,
  name: row.name,
  kind: row.kind,
  base_url: row.baseUrl,
  organization_id: row.organizationId,
  allowed_members: row.allowedMembers,
  allow_unpriced: row.allowsUnpriced,
  credential_set: true,
  disabled_at: row.disabledAt,
  created_at: row.createdAt,
})

/** Adds the provider's latest refusal of the gateway's credential, since which it has served no call. */
async function presentWithHealth(context: AppContext, row: ProviderRow) {
  const refusal = await readRefusal(context.get('deps').redis, row.id)
  const health = refusal ? 'refuses_gateway' : refusal === null ? 'ok' : 'unknown'
  const refusedAt = refusal ? new Date(refusal.at).toISOString() : null
  return { ...present(row), health, refused_status: refusal?.status ?? null, refused_at: refusedAt }
}

export const providerRoutes = new Hono<AppEnv>()
  .use('/providers/*', deploymentScope())
  .get('/providers', query(pageQuery), async (context) => {
    const { database } = changeScope(context)
    const page = await selectProviders(database, pageRequest(context.req.valid('query')))
    return context.json(listBody(page, present))
  })
  .post('/providers', query(noQuery), jsonBody(providerCreation), async (context) => {
    const given = context.req.valid('json')
    const { name, kind, base_url: baseUrl, credential } = given
    const {
      organization_id: organizationId,
      allowed_members: allowedMembers,
      allow_unpriced: allowsUnpriced,
    } = given
    const values = { name, kind, baseUrl, credential, organizationId, allowedMembers, allowsUnpriced }
    const row = await createProvider(changeScope(context), values)
    return context.json(present(row), 201)
  })
  .get('/providers/:providerId', query(noQuery), async (context) => {
    const id = pathId(context, 'Provider')
    const row = await readProvider(changeScope(context), id)
    return context.json(await presentWithHealth(context, row))
  })
  .put('/providers/:providerId', query(noQuery), jsonBody(providerUpdate), async (context) => {
    const id = pathId(context, 'Provider')
    const given = context.req.valid('json')
    const {
      name,
      base_url: baseUrl,
      credential,
      disabled,
      allowed_members: allowedMembers,
      allow_unpriced: allowsUnpriced,
    } = given
    const changes = { name, baseUrl, credential, disabled, allowedMembers, allowsUnpriced }
    const row = await changeProvider(changeScope(context), id, changes)
    if (credential !== undefined) await forgetRefusal(context.get('deps').redis, id)
    return context.json(present(row))
  })
  .delete('/providers/:providerId', query(noQuery), async (context) => {
    const id = pathId(context, 'Provider')
    return context.json(present(await changeProvider(changeScope(context), id, { disabled: true })))
  })
