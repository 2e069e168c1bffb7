import { Hono } from 'hono'
import { type GrantRow, selectGrants } from '../../../admin/grants.store.ts'
import { createGrant, removeGrant } from '../../../admin/grants.ts'
import { grantCreation, grantListQuery } from '../../../wire/management.ts'
import { noQuery } from '../../../wire/management-fields.ts'
import { listBody } from '../../../wire/page-cursor.ts'
import type { AppEnv } from '../../context.ts'
import { jsonBody, query } from '../../validated-request.ts'
import { changeScope, pageRequest, pathId } from './request.ts'

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
    const { model_id: modelId, ...paging } = context.req.valid('query')
    const page = await selectGrants(changeScope(context), { modelId }, pageRequest(paging))
    return context.json(listBody(page, present))
  })
  .post(GRANTS, query(noQuery), jsonBody(grantCreation), async (context) => {
    const row = await createGrant(changeScope(context), context.req.valid('json'))
    return context.json(present(row), 201)
  })
  .delete(GRANT, query(noQuery), async (context) => {
    const id = pathId(context, 'Grant')
    await removeGrant(changeScope(context), id)
    return context.json({ id, deleted: true })
  })
