import { type IntegrationGrantRow, selectIntegrationGrants } from '../../../admin/integration-grants.store.ts'
import { createIntegrationGrant, removeIntegrationGrant } from '../../../admin/integration-grants.ts'
import { listBody } from '../../../wire/page-cursor.ts'
import { pageRequest } from './change-scope.ts'
import type { HandlersOf } from './mount-endpoints.ts'

const present = (row: IntegrationGrantRow) => ({
  id: row.id,
  subject_type: row.subjectType,
  subject_id: row.subjectId,
  integration: row.integration,
  tools: row.tools,
  created_at: row.createdAt,
})

/** Rights to use the tools of integrations. */
export const integrationGrantHandlers: HandlersOf<'integration-grants'> = {
  'integration-grants.list': async ({ scope, query: { integration, ...paging } }) =>
    listBody(await selectIntegrationGrants(scope, { integration }, pageRequest(paging)), present),
  'integration-grants.create': async ({ scope, body }) => present(await createIntegrationGrant(scope, body)),
  'integration-grants.remove': async ({ scope, path }) => {
    await removeIntegrationGrant(scope, path.grantId)
    return { id: path.grantId, deleted: true }
  },
}
