import {
  advanceErasure,
  beginErasure,
  listErasures,
  readErasure,
} from '../../../admin/erasure/erase-person.ts'
import type { ErasureRow } from '../../../admin/erasure/erasures.store.ts'
import { listBody } from '../../../wire/page-cursor.ts'
import { pageRequest } from './change-scope.ts'
import type { HandlersOf } from './mount-endpoints.ts'
import { authorOf } from './require-permission.ts'

const present = (row: ErasureRow) => ({
  id: row.id,
  user_id: row.userId,
  requested_by: row.requestedBy,
  status: row.finishedAt === null ? ('in_progress' as const) : ('done' as const),
  step: row.step,
  counts: row.counts,
  failure: row.failure,
  created_at: row.createdAt,
  finished_at: row.finishedAt,
})

export const erasureHandlers: HandlersOf<'erasures'> = {
  'erasures.create': async ({ context, scope, path }) => {
    const { deps } = context.var
    const row = await beginErasure(scope, path.userId, authorOf(context, 'users.erase'))
    // The job of every five minutes goes on where this ends.
    deps.waitUntil(advanceErasure(deps, row.id).catch(() => {}))
    return present(row)
  },
  'erasures.list': async ({ scope, path, query }) =>
    listBody(await listErasures(scope, path.userId, pageRequest(query)), present),
  'erasures.show': async ({ scope, path }) => present(await readErasure(scope, path.userId, path.erasureId)),
}
