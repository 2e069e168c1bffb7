import { Hono } from 'hono'
import { readCatalogues } from '../../../admin/integration-tools.ts'
import { type IntegrationRow, selectIntegrations } from '../../../admin/integrations.store.ts'
import {
  changeIntegration,
  createIntegration,
  readIntegration,
  removeIntegration,
} from '../../../admin/integrations.ts'
import { refreshIntegration } from '../../../admin/refresh-integration.ts'
import {
  integrationCreation,
  integrationListQuery,
  integrationRefresh,
  integrationUpdate,
} from '../../../wire/integrations.ts'
import { noQuery } from '../../../wire/management-fields.ts'
import { listBody } from '../../../wire/page-cursor.ts'
import type { AppEnv } from '../../context.ts'
import { jsonBody, query } from '../../validated-request.ts'
import { changeScope, pageRequest, pathId } from './request.ts'

const INTEGRATIONS = '/organizations/:organizationId/integrations'
const INTEGRATION = '/organizations/:organizationId/integrations/:integrationId'
const REFRESH = '/organizations/:organizationId/integrations/:integrationId/refresh'

/** The public form of an integration. The secret of the OAuth client is write-only. */
const present = (row: IntegrationRow) => {
  const { authorizationServer, clientId, ...authorization } = row.authorization
  return {
    id: row.id,
    slug: row.slug,
    display_name: row.displayName,
    description: row.description,
    kind: row.kind,
    url: row.url,
    authorization: {
      ...authorization,
      ...(authorizationServer !== undefined && { authorization_server: authorizationServer }),
      ...(clientId !== undefined && { client_id: clientId }),
      ...(row.hasClientSecret && { client_secret_set: true }),
    },
    approval: row.approval,
    price: row.price,
    disabled_tools: row.disabledTools,
    disabled_at: row.disabledAt,
    created_at: row.createdAt,
  }
}

export const integrationRoutes = new Hono<AppEnv>()
  .get(INTEGRATIONS, query(integrationListQuery), async (context) => {
    const { slug, ...paging } = context.req.valid('query')
    const page = await selectIntegrations(changeScope(context), { slug }, pageRequest(paging))
    return context.json(listBody(page, present))
  })
  .post(INTEGRATIONS, query(noQuery), jsonBody(integrationCreation), async (context) => {
    const row = await createIntegration(context.get('deps'), changeScope(context), context.req.valid('json'))
    return context.json(present(row), 201)
  })
  .get(INTEGRATION, query(noQuery), async (context) => {
    const id = pathId(context, 'Integration')
    const row = await readIntegration(changeScope(context), id)
    const catalogues = await readCatalogues(changeScope(context), id)
    return context.json({ ...present(row), catalogues })
  })
  .put(INTEGRATION, query(noQuery), jsonBody(integrationUpdate), async (context) => {
    const id = pathId(context, 'Integration')
    const row = await changeIntegration(
      context.get('deps'),
      changeScope(context),
      id,
      context.req.valid('json'),
    )
    return context.json(present(row))
  })
  .delete(INTEGRATION, query(noQuery), async (context) => {
    const id = pathId(context, 'Integration')
    await removeIntegration(changeScope(context), id)
    return context.json({ id, deleted: true })
  })
  .post(REFRESH, query(noQuery), jsonBody(integrationRefresh), async (context) => {
    const id = pathId(context, 'Integration')
    const { connection_id: connectionId = null } = context.req.valid('json')
    const catalogues = await refreshIntegration(context.get('deps'), changeScope(context), id, connectionId)
    return context.json({ id, catalogues })
  })
