import { find } from '../../../admin/find.ts'
import type { HandlersOf } from './mount-endpoints.ts'
import { sessionOf } from './require-permission.ts'

export const findHandlers: HandlersOf<'find'> = {
  'find.list': async ({ context, scope, query: { q } }) => ({
    data: await find(scope, q, sessionOf(context)?.principal ?? null),
    has_more: false,
    next_cursor: null,
  }),
}
