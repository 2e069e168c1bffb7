import { Hono } from 'hono'
import { type IntegrationGrantRow, selectIntegrationGrants } from '../../../admin/integration-grants.store.ts'
import { createIntegrationGrant, removeIntegrationGrant } from '../../../admin/integration-grants.ts'
import { integrationGrantCreation, integrationGrantListQuery } from '../../../wire/integrations.ts'
import { noQuery } from '../../../wire/management-fields.ts'
import { listBody } from '../../../wire/page-cursor.ts'
import type { AppEnv } from '../../context.ts'
import { jsonBody, query } from '../../validated-request.ts'
import { changeScope, pageRequest, pathId } from './request.ts'

const GRANTS = '/organizations/:organizationId/integration-grants'
const GRANT = '/organizations/:organizationId/integration-grants/:grantId'

const present = (row: IntegrationGrantRow) => ({
  id: row.id,
  subject_type: row.subjectType,
  subject_id: row.subjectId,
  integration: row.integration,
  tools: row.tools,
  created_at: row.createdAt,
})

/** Rights to use the tools of integrations. */
export const integrationGrantRoutes = new Hono<AppEnv>()
  .get(GRANTS, query(integrationGrantListQuery), async (context) => {
    const { integration, ...paging } = context.req.valid('query')
    const page = await selectIntegrationGrants(changeScope(context), { integration }, pageRequest(paging))
    return context.json(listBody(page, present))
  })
  .post(GRANTS, query(noQuery), jsonBody(integrationGrantCreation), async (context) => {
    const row = await createIntegrationGrant(changeScope(context), context.req.valid('json'))
    return context.json(present(row), 201)
  })
  .delete(GRANT, query(noQuery), async (context) => {
    const id = pathId(context, 'Grant')
    await removeIntegrationGrant(changeScope(context), id)
    return context.json({ id, deleted: true })
  })
