import { decideTools, readCatalogues, readTools, switchTools } from '../../../admin/integration-tools.ts'
import { type IntegrationRow, selectIntegrations } from '../../../admin/integrations.store.ts'
import {
  changeIntegration,
  createIntegration,
  readIntegration,
  removeIntegration,
} from '../../../admin/integrations.ts'
import { refreshIntegration } from '../../../admin/refresh-integration.ts'
import type { AuthorizationMethod } from '../../../integrations/types.ts'
import { listBody } from '../../../wire/page-cursor.ts'
import { pageRequest } from './change-scope.ts'
import type { HandlersOf } from './mount-endpoints.ts'

/** The members of every kind of `AuthorizationMethod`. */
interface StoredAuthorization {
  kind: AuthorizationMethod['kind']
  header?: string
  authorizationServer?: string
  clientId?: string
  scopes?: readonly string[]
}

/** The public form of an integration. The secret of the OAuth client is write-only. */
function present(row: IntegrationRow) {
  const { authorizationServer, clientId, ...authorization } =
    row.authorization as unknown as StoredAuthorization
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
      ...(row.hasClientSecret && { client_secret_set: true as const }),
    },
    approval: row.approval,
    price: row.price,
    disabled_tools: row.disabledTools,
    disabled_at: row.disabledAt,
    created_at: row.createdAt,
  }
}

export const integrationHandlers: HandlersOf<'integrations'> = {
  'integrations.list': async ({ scope, query: { slug, ...paging } }) =>
    listBody(await selectIntegrations(scope, { slug }, pageRequest(paging)), present),
  'integrations.create': async ({ context, scope, body }) =>
    present(await createIntegration(context.get('deps'), scope, body)),
  'integrations.show': async ({ scope, path }) => {
    const row = await readIntegration(scope, path.integrationId)
    return { ...present(row), catalogues: await readCatalogues(scope, path.integrationId) }
  },
  'integrations.change': async ({ context, scope, path, body }) =>
    present(await changeIntegration(context.get('deps'), scope, path.integrationId, body)),
  'integrations.remove': async ({ scope, path }) => {
    await removeIntegration(scope, path.integrationId)
    return { id: path.integrationId, deleted: true }
  },
  'integrations.refresh': async ({ context, scope, path: { integrationId: id }, body }) => {
    const { connection_id: connectionId = null } = body
    const catalogues = await refreshIntegration(context.get('deps'), scope, id, connectionId)
    return { id, catalogues }
  },
}

/** The tools of an integration: what is offered, what waits for a decision, and what is switched off. */
export const integrationToolHandlers: HandlersOf<'integration-tools'> = {
  'integration-tools.list': async ({ scope, path }) => ({
    data: await readTools(scope, path.integrationId),
    has_more: false,
    next_cursor: null,
  }),
  'integration-tools.approve': async ({ scope, path: { integrationId: id }, body }) => ({
    id,
    approved: await decideTools(scope, id, 'approved', body),
  }),
  'integration-tools.reject': async ({ scope, path: { integrationId: id }, body }) => ({
    id,
    rejected: await decideTools(scope, id, 'rejected', body),
  }),
  'integration-tools.enable': async ({ scope, path: { integrationId: id }, body }) => ({
    id,
    disabled_tools: await switchTools(scope, id, { enable: body.tools }),
  }),
  'integration-tools.disable': async ({ scope, path: { integrationId: id }, body }) => ({
    id,
    disabled_tools: await switchTools(scope, id, { disable: body.tools }),
  }),
}
