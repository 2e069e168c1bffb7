import { type GrantRow, selectGrants } from '../../../admin/grants.store.ts'
import { createGrant, removeGrant } from '../../../admin/grants.ts'
import { listBody } from '../../../wire/page-cursor.ts'
import { pageRequest } from './change-scope.ts'
import type { HandlersOf } from './mount-endpoints.ts'
import { sessionOf } from './require-permission.ts'

const present = (row: GrantRow) => ({
  id: row.id,
  subject_type: row.subjectType,
  subject_id: row.subjectId,
  model_id: row.modelId,
  created_at: row.createdAt,
})

export const grantHandlers: HandlersOf<'grants'> = {
  'grants.list': async ({ context, scope, own, query: { model_id: modelId, ...paging } }) => {
    const session = sessionOf(context)
    const filter = { modelId, ...(own !== null && session && { member: session.principal }) }
    return listBody(await selectGrants(scope, filter, pageRequest(paging)), present)
  },
  'grants.create': async ({ scope, body }) => present(await createGrant(scope, body)),
  'grants.remove': async ({ scope, path }) => {
    await removeGrant(scope, path.grantId)
    return { id: path.grantId, deleted: true }
  },
}
