import { callHistogram, listCalls, viewCall } from '../../../admin/calls.ts'
import type { CallFilter } from '../../../wire/calls.ts'
import { listBody } from '../../../wire/page-cursor.ts'
import { presentRecord } from './audit.ts'
import { tailAnswer } from './calls-tail.ts'
import { pageRequest } from './change-scope.ts'
import type { HandlersOf } from './mount-endpoints.ts'
import { presentCall } from './present-call.ts'

/** The filter within reach; null where it asks for another user's calls only. @param own the user whose calls are in reach; null for all. */
const reachedFilter = (filter: CallFilter, own: string | null): CallFilter | null => {
  if (own === null) return filter
  return filter.user_id === undefined || filter.user_id === own ? { ...filter, user_id: own } : null
}

export const callHandlers: HandlersOf<'calls'> = {
  'calls.list': async ({ scope, own, query: { limit, cursor, ...filter } }) => {
    const reached = reachedFilter(filter, own)
    const page = reached && (await listCalls(scope, reached, pageRequest({ limit, cursor })))
    return listBody(page ?? { rows: [], next: null }, presentCall)
  },
  'calls.histogram': async ({ scope, own, query: { buckets, ...filter } }) => {
    // No user has this id, so that the counts are of nothing.
    const reached = reachedFilter(filter, own) ?? { ...filter, user_id: '' }
    const histogram = await callHistogram(scope, reached, buckets)
    const { from, to, bucketMilliseconds, parts, firstEvent, completeFrom } = histogram
    return {
      from,
      to,
      bucket_ms: bucketMilliseconds,
      data: parts.map((counts, index) => ({
        at: new Date(from.getTime() + index * bucketMilliseconds),
        ...counts,
      })),
      first_event_ms: firstEvent,
      complete_from: completeFrom,
    }
  },
  'calls.tail': ({ context, scope, own, query }) => tailAnswer(context, scope, own, query),
  'calls.show': async ({ scope, own, path }) => {
    const { call, record } = await viewCall(scope, path.callId, own)
    return { ...presentCall(call), record: presentRecord(record) }
  },
}
