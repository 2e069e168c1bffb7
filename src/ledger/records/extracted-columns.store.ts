import type { PgTable } from 'drizzle-orm/pg-core'
import type { auditRecords, calls, creditEntries, usageEvents } from '../../../schema/governance.ts'

// The columns that are taken from the body of a record, as SQL: a flush writes them, and the sweep of retention compares them with what is
// stored. They have to agree with `copiedColumns` and `extracted-rows`, by which verification compares them.

/** For each column of a table, the SQL of its value from `record`, the parsed body. */
export type ColumnTexts<Table extends PgTable> = Record<keyof Table['$inferInsert'], string>

export const IS_CALL = `record->>'kind' = 'call'`
const AT = `timestamptz 'epoch' + (record->>'at')::bigint * interval '1 millisecond'`
export const COST = `(record->>'cost')::bigint`
const tokens = (name: string) => `coalesce((record->'usage'->>'${name}')::bigint, 0)`

export const RECORD: ColumnTexts<typeof auditRecords> = {
  organizationId: `(record->>'organizationId')::uuid`,
  shard: `(record->>'shard')::integer`,
  sequence: `(record->>'sequence')::bigint`,
  id: `record->>'id'`,
  kind: `record->>'kind'`,
  at: AT,
  requestId: `record->>'requestId'`,
  userId: `record->'actor'->>'userId'`,
  keyId: `record->'actor'->>'keyId'`,
  surface: `CASE WHEN ${IS_CALL} THEN record->>'surface' ELSE 'management' END`,
  action: `record->>'action'`,
  modelId: `CASE WHEN ${IS_CALL} THEN record->>'modelId' END`,
  status: `CASE WHEN ${IS_CALL} THEN (record->>'status')::integer ELSE 200 END`,
  creditsSettled: `CASE WHEN ${IS_CALL} THEN ${COST} ELSE 0 END`,
  body: 'body',
  previousHash: 'previous_hash',
  hash: 'hash',
}

const TOKENS_OF_INPUT = ['input', 'cacheRead', 'cacheWrite5Minutes', 'cacheWrite1Hour']
  .map(tokens)
  .join(' + ')

export const CALL: ColumnTexts<typeof calls> = {
  organizationId: `(record->>'organizationId')::uuid`,
  id: `record->>'id'`,
  at: AT,
  requestId: `record->>'requestId'`,
  userId: `record->'actor'->>'userId'`,
  keyId: `record->'actor'->>'keyId'`,
  surface: `record->>'surface'`,
  action: `record->>'action'`,
  modelId: `record->>'modelId'`,
  tool: `record->>'tool'`,
  connectionId: `record->>'connectionId'`,
  provider: `record->>'provider'`,
  responseId: `record->>'responseId'`,
  runId: `record->>'runId'`,
  status: `(record->>'status')::integer`,
  errorCode: `record->>'errorCode'`,
  // The same as `outcomeOf` in `wire/calls`.
  outcome: `CASE WHEN record->>'errorCode' LIKE 'dlp\\_%' THEN 'blocked' WHEN record->>'status' = '499' THEN 'cancelled'
    WHEN (record->>'status')::integer BETWEEN 400 AND 499 THEN 'refused'
    WHEN (record->>'status')::integer BETWEEN 1 AND 399 AND record->>'errorCode' IS NULL THEN 'ok' ELSE 'failed' END`,
  flags: `(SELECT array_agg(name ORDER BY place) FROM jsonb_array_elements_text(record->'flags') WITH ORDINALITY AS flag(name, place))`,
  detectors: `(SELECT array_agg(name ORDER BY name COLLATE "C") FROM jsonb_object_keys(record->'dlp'->'findings') AS name)`,
  durationMilliseconds: `(record->>'durationMilliseconds')::bigint`,
  firstEventMilliseconds: `(record->'timing'->>'firstEvent')::bigint`,
  inputTokens: TOKENS_OF_INPUT,
  outputTokens: tokens('output'),
  cost: COST,
  count: `coalesce((record->>'count')::bigint, 1)`,
}

/** Columns of model calls that used something (HAS_USAGE). */
export const USAGE: ColumnTexts<typeof usageEvents> = {
  callId: `record->>'id'`,
  organizationId: `(record->>'organizationId')::uuid`,
  userId: `record->'actor'->>'userId'`,
  keyId: `record->'actor'->>'keyId'`,
  modelId: `record->>'modelId'`,
  provider: `record->>'provider'`,
  surface: `record->>'surface'`,
  at: AT,
  inputTokens: tokens('input'),
  cacheReadTokens: tokens('cacheRead'),
  cacheWrite5MinuteTokens: tokens('cacheWrite5Minutes'),
  cacheWrite1HourTokens: tokens('cacheWrite1Hour'),
  outputTokens: tokens('output'),
  reasoningTokens: tokens('reasoning'),
  provenance: `coalesce(record->>'provenance', 'unknown')`,
  cost: COST,
}
export const HAS_USAGE = `${IS_CALL} AND record->>'modelId' IS NOT NULL AND (record->>'usage' IS NOT NULL OR ${COST} <> 0)`

/** The movement of the balance by a settled call. */
export const SETTLEMENT: ColumnTexts<typeof creditEntries> = {
  id: `record->>'id'`,
  organizationId: `(record->>'organizationId')::uuid`,
  kind: `'settlement'`,
  shard: `(record->>'shard')::integer`,
  amount: `-${COST}`,
  reason: `coalesce(record->>'modelId', record->>'action')`,
  at: AT,
}
export const GRANT_OR_TRANSFER: ColumnTexts<typeof creditEntries> = {
  ...SETTLEMENT,
  id: `record->'credit'->>'id'`,
  kind: `coalesce(record->'credit'->>'kind', 'grant')`,
  amount: `(record->'credit'->>'amount')::bigint`,
  reason: `record->'credit'->>'reason'`,
}
