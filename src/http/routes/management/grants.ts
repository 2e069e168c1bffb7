import { Hono } from 'hono'
import {
  createGrant,
  type GrantRow,
  listGrants,
  removeGrant,
} from '../../../governance/administration/grants.ts'
import { grantCreation, grantListQuery, noQuery } from '../../../wire/management.ts'
import { listBody } from '../../../wire/page-cursor.ts'
import type { AppEnv } from '../../context.ts'
import { jsonBody, query } from '../../validated-request.ts'
import { administrationOf, idParameter, pageRequest } from './request.ts'

const GRANTS = '/organizations/:organizationId/grants'
const GRANT = '/organizations/:organizationId/grants/:grantId'

const present = (row: GrantRow) => ({
  id: row.id,
  subject_type: row.subjectType,
  subject_id: row.subjectId,
  model_id: row.modelId,
  created_at: row.createdAt,
})

export const grantRoutes = new Hono<AppEnv>()
  .get(GRANTS, query(grantListQuery), async (context) => {
    const { organizationId } = context.req.param()
    const parameters = context.req.valid('query')
    const page = await listGrants(
      administrationOf(context),
      organizationId,
      { modelId: parameters.model_id },
      pageRequest(parameters),
    )
    return context.json(listBody(page, present))
  })
  .post(GRANTS, query(noQuery), jsonBody(grantCreation), async (context) => {
    const { organizationId } = context.req.param()
    const row = await createGrant(administrationOf(context), organizationId, context.req.valid('json'))
    return context.json(present(row), 201)
  })
  .delete(GRANT, query(noQuery), async (context) => {
    const { organizationId, grantId } = context.req.param()
    const id = idParameter('Grant', grantId)
    await removeGrant(administrationOf(context), organizationId, id)
    return context.json({ id, deleted: true })
  })
