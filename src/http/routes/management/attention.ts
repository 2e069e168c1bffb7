import { readAttention } from '../../../admin/attention.ts'
import type { HandlersOf } from './mount-endpoints.ts'
import { sessionOf } from './require-permission.ts'

export const attentionHandlers: HandlersOf<'attention'> = {
  'attention.list': async ({ context, scope }) => ({
    data: await readAttention(scope, sessionOf(context)?.principal ?? null),
    has_more: false,
    next_cursor: null,
  }),
}
