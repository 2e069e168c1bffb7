import { Hono } from 'hono'
import {
  changeProvider,
  createProvider,
  listProviders,
  type ProviderRow,
  readProvider,
} from '../../../gateway/administration/providers.ts'
import { noQuery, pageQuery, providerCreation, providerUpdate } from '../../../wire/management.ts'
import { listBody } from '../../../wire/page-cursor.ts'
import type { AppEnv } from '../../context.ts'
import { jsonBody, query } from '../../validated-request.ts'
import { administrationOf, deploymentScope, pageRequest, pathId } from './request.ts'

/** The credential goes in and never comes out. */
const present = (row: ProviderRow) => ({
  id: row.id,
  name: row.name,
  kind: row.kind,
  base_url: row.baseUrl,
  allow_unpriced: row.allowsUnpriced,
  credential_set: true,
  disabled_at: row.disabledAt,
  created_at: row.createdAt,
})

export const providerRoutes = new Hono<AppEnv>()
  .use('/providers/*', deploymentScope())
  .get('/providers', query(pageQuery), async (context) => {
    const page = await listProviders(administrationOf(context), pageRequest(context.req.valid('query')))
    return context.json(listBody(page, present))
  })
  .post('/providers', query(noQuery), jsonBody(providerCreation), async (context) => {
    const { base_url: baseUrl, allow_unpriced: allowsUnpriced, ...given } = context.req.valid('json')
    const row = await createProvider(administrationOf(context), { ...given, baseUrl, allowsUnpriced })
    return context.json(present(row), 201)
  })
  .get('/providers/:providerId', query(noQuery), async (context) => {
    const id = pathId(context, 'Provider')
    return context.json(present(await readProvider(administrationOf(context), id)))
  })
  .put('/providers/:providerId', query(noQuery), jsonBody(providerUpdate), async (context) => {
    const id = pathId(context, 'Provider')
    const { base_url: baseUrl, allow_unpriced: allowsUnpriced, ...given } = context.req.valid('json')
    const changes = { ...given, baseUrl, allowsUnpriced }
    return context.json(present(await changeProvider(administrationOf(context), id, changes)))
  })
  .delete('/providers/:providerId', query(noQuery), async (context) => {
    const id = pathId(context, 'Provider')
    return context.json(present(await changeProvider(administrationOf(context), id, { disabled: true })))
  })
