import type { calls, creditEntries, usageEvents } from '../../../schema/governance.ts'
import { outcomeOf } from '../../wire/calls.ts'
import type { RecordBody, StoredRecord } from './record-body.ts'
import type { StatedRow } from './stated-rows.ts'

export type UsageRow = typeof usageEvents.$inferSelect
export type CallRow = typeof calls.$inferSelect
export type CreditRow = typeof creditEntries.$inferSelect

/** A record with the rows that Postgres holds of it. */
export interface RecordWithRows {
  record: StoredRecord
  call: CallRow | null
  usage: UsageRow | null
  credits: CreditRow[]
  /** The rows that the record states, as Postgres has them. */
  stated: StatedRow[]
}

/** The row of `calls` that belongs to a record; null for a change. `extracted-columns.store.ts` has the same rule in SQL. */
export function callRowOf(body: RecordBody): CallRow | null {
  if (body.kind !== 'call') return null
  const { usage, actor, flags } = body
  const detectors = Object.keys(body.dlp?.findings ?? {}).sort()
  return {
    organizationId: body.organizationId,
    id: body.id,
    at: new Date(body.at),
    requestId: body.requestId,
    userId: actor.userId,
    keyId: actor.keyId,
    surface: body.surface,
    action: body.action,
    modelId: body.modelId,
    tool: body.tool ?? null,
    connectionId: body.connectionId,
    provider: body.provider,
    responseId: body.responseId ?? null,
    runId: body.runId ?? null,
    status: body.status,
    errorCode: body.errorCode,
    outcome: outcomeOf(body),
    flags: flags.length === 0 ? null : flags,
    detectors: detectors.length === 0 ? null : detectors,
    durationMilliseconds: body.durationMilliseconds,
    firstEventMilliseconds: body.timing?.firstEvent ?? null,
    inputTokens: usage ? usage.input + usage.cacheRead + usage.cacheWrite5Minutes + usage.cacheWrite1Hour : 0,
    outputTokens: usage?.output ?? 0,
    cost: body.cost,
    count: body.count ?? 1,
  }
}

/**
 * The row of `usage_events` that belongs to a record; null if its call used nothing. `extracted-columns.store.ts` has the same rule in SQL.
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
 * The row of `credit_entries` that belongs to a record; null if the balance did not change. `extracted-columns.store.ts` has the same rule in
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
