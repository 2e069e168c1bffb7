import {
  selectUsageEvents,
  selectUsageTotals,
  type UsageEventRow,
  type UsageTotals,
} from '../../../ledger/records/read-records.store.ts'
import { listBody } from '../../../wire/page-cursor.ts'
import { pageRequest } from './change-scope.ts'
import type { HandlersOf } from './mount-endpoints.ts'

type Tokens = Omit<UsageTotals, 'group' | 'calls' | 'cost'>

const presentTokens = (row: Tokens) => ({
  input_tokens: row.inputTokens,
  cache_read_tokens: row.cacheReadTokens,
  cache_write_5_minute_tokens: row.cacheWrite5MinuteTokens,
  cache_write_1_hour_tokens: row.cacheWrite1HourTokens,
  output_tokens: row.outputTokens,
  reasoning_tokens: row.reasoningTokens,
})

const presentEvent = (row: UsageEventRow) => ({
  call_id: row.callId,
  at: row.at,
  user_id: row.userId,
  key_id: row.keyId,
  model: row.modelId,
  provider: row.provider,
  surface: row.surface,
  ...presentTokens(row),
  provenance: row.provenance,
  cost: row.cost,
})

export const usageHandlers: HandlersOf<'usage'> = {
  'usage.totals': async ({ scope, own, query: { group_by: groupBy, from, to, ...paging } }) => {
    const filter = { groupBy, from, to, ...(own !== null && { userId: own }) }
    const page = await selectUsageTotals(scope, filter, pageRequest(paging))
    return listBody(page, (row) => ({
      // Calls without a user or key have an empty group.
      ...({ [groupBy]: row.group === '' ? null : row.group } as Partial<
        Record<typeof groupBy, string | null>
      >),
      calls: row.calls,
      ...presentTokens(row),
      cost: row.cost,
    }))
  },
  'usage.events': async ({ scope, own, query: { from, to, ...paging } }) => {
    const filter = { from, to, ...(own !== null && { userId: own }) }
    return listBody(await selectUsageEvents(scope, filter, pageRequest(paging)), presentEvent)
  },
}
