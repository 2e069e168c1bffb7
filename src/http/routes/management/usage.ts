import { Hono } from 'hono'
import {
  selectUsageEvents,
  selectUsageTotals,
  type UsageEventRow,
  type UsageTotals,
} from '../../../ledger/records/read-records.store.ts'
import { listBody } from '../../../wire/page-cursor.ts'
import { usageEventQuery, usageQuery } from '../../../wire/records.ts'
import type { AppEnv } from '../../context.ts'
import { query } from '../../validated-request.ts'
import { changeScope, pageRequest } from './request.ts'

const USAGE = '/organizations/:organizationId/usage'
const EVENTS = '/organizations/:organizationId/usage/events'

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

export const usageRoutes = new Hono<AppEnv>()
  .get(USAGE, query(usageQuery), async (context) => {
    const { group_by: groupBy, from, to, ...paging } = context.req.valid('query')
    const filter = { groupBy, from, to }
    const page = await selectUsageTotals(changeScope(context), filter, pageRequest(paging))
    // Calls without a user or key have an empty group.
    const present = (row: UsageTotals) => ({
      [groupBy]: row.group === '' ? null : row.group,
      calls: row.calls,
      ...presentTokens(row),
      cost: row.cost,
    })
    return context.json(listBody(page, present))
  })
  .get(EVENTS, query(usageEventQuery), async (context) => {
    const { from, to, ...paging } = context.req.valid('query')
    const page = await selectUsageEvents(changeScope(context), { from, to }, pageRequest(paging))
    return context.json(listBody(page, presentEvent))
  })
