import type { creditEntries, usageEvents } from '../../../schema/governance.ts'
import type { RecordBody, StoredRecord } from './record-body.ts'
import type { StatedRow } from './stated-rows.ts'

export type UsageRow = typeof usageEvents.$inferSelect
export type CreditRow = typeof creditEntries.$inferSelect

/** A record with the rows that Postgres holds of it. */
export interface RecordWithRows {
  record: StoredRecord
  usage: UsageRow | null
  credits: CreditRow[]
  /** The rows that the record states, as Postgres has them. */
  stated: StatedRow[]
}

/**
 * The row of `usage_events` that belongs to a record; null if its call used nothing. `flush.store.ts` has the same rule in SQL.
 */
export function usageRowOf(body: RecordBody): UsageRow | null {
  if (body.kind !== 'call' || body.modelId === null || (!body.usage && body.cost === 0)) return null
  const { usage } = body
  return {
    callId: body.id,
    organizationId: body.organizationId,
    userId: body.actor.userId,
    keyId: body.actor.keyId,
    modelId: body.modelId,
    provider: body.provider,
    surface: body.surface,
    at: new Date(body.at),
    inputTokens: usage?.input ?? 0,
    cacheReadTokens: usage?.cacheRead ?? 0,
    cacheWrite5MinuteTokens: usage?.cacheWrite5Minutes ?? 0,
    cacheWrite1HourTokens: usage?.cacheWrite1Hour ?? 0,
    outputTokens: usage?.output ?? 0,
    reasoningTokens: usage?.reasoning ?? 0,
    provenance: body.provenance ?? 'unknown',
    cost: body.cost,
  }
}

/**
 * The row of `credit_entries` that belongs to a record; null if the balance did not change. `flush.store.ts` has the same rule in
 * SQL.
 */
export function creditRowOf(body: RecordBody): CreditRow | null {
  const { organizationId, shard, at } = body
  const place = { organizationId, shard, at: new Date(at) }
  if (body.kind === 'call') {
    if (body.cost === 0) return null
    const reason = body.modelId ?? body.action
    return { ...place, id: body.id, kind: 'settlement', amount: -body.cost, reason }
  }
  if (!body.credit) return null
  const { kind = 'grant', id, amount, reason } = body.credit
  return { ...place, id, kind, amount, reason }
}
