import { isNotNull, sql } from 'drizzle-orm'
import {
  type AnyPgColumn,
  bigint,
  index,
  integer,
  jsonb,
  pgTable,
  primaryKey,
  text,
  uuid,
} from 'drizzle-orm/pg-core'
import { instant } from './columns.ts'

const microCredits = (name: string) => bigint(name, { mode: 'number' })

/**
 * One row per call and per administrative change, chained by hash within (organization, shard).
 * `body` is the canonical JSON that was hashed. The other columns repeat its members for queries; `audit verify` compares
 * them with it. Partitioned by month (migration 0024): the primary key is that of each partition.
 */
export const auditRecords = pgTable(
  'audit_records',
  {
    organizationId: uuid('organization_id').notNull(),
    shard: integer('shard').notNull(),
    sequence: bigint('sequence', { mode: 'number' }).notNull(),
    id: text('id').notNull(),
    kind: text('kind', { enum: ['call', 'change'] }).notNull(),
    at: instant('at').notNull(),
    requestId: text('request_id').notNull(),
    userId: text('user_id'),
    keyId: text('key_id'),
    surface: text('surface').notNull(),
    action: text('action').notNull(),
    modelId: text('model_id'),
    status: integer('status').notNull(),
    creditsSettled: microCredits('credits_settled').notNull(),
    body: text('body').notNull(),
    previousHash: text('previous_hash').notNull(),
    hash: text('hash').notNull(),
  },
  (table) => [
    primaryKey({ columns: [table.organizationId, table.shard, table.sequence] }),
    index('audit_records_id').on(table.id),
    index('audit_records_at').on(table.organizationId, table.at),
    // The last change of the settings of retention, which its sweep compares with those that are stored.
    index('audit_records_retention')
      .on(table.organizationId, table.at)
      .where(sql`action = 'retention.replaced'`),
  ],
)

/** Heads of all chains at one time, with a MAC, so that a rewritten chain is detected. */
export const auditCheckpoints = pgTable('audit_checkpoints', {
  id: uuid('id').primaryKey().defaultRandom(),
  at: instant('at').notNull(),
  heads: jsonb('heads')
    .$type<Array<{ organizationId: string; shard: number; sequence: number; hash: string }>>()
    .notNull(),
  pepperId: text('pepper_id').notNull(),
  mac: text('mac').notNull(),
})

/**
 * Append-only. The balance of an organization, or of a shard of its ledger, is the sum of its amounts. Corrections are new
 * entries. A transfer between shards is two entries.
 */
export const creditEntries = pgTable(
  'credit_entries',
  {
    /** The granting caller's id, the call id of a settlement, or the name of a transfer. */
    id: text('id').notNull(),
    organizationId: uuid('organization_id').notNull(),
    kind: text('kind', { enum: ['grant', 'settlement', 'transfer'] }).notNull(),
    /** Shard of the ledger that has the amount. */
    shard: integer('shard').notNull().default(0),
    /** Micro-credits; negative for spending. */
    amount: microCredits('amount').notNull(),
    reason: text('reason').notNull(),
    at: instant('at').notNull(),
  },
  (table) => [
    primaryKey({ columns: [table.organizationId, table.kind, table.id] }),
    index('credit_entries_at').on(table.organizationId, table.at),
    // The last transfer of a shard in one direction, by the parts of its name: shard, number, direction.
    index('credit_entries_transfers')
      .on(
        table.organizationId,
        sql`(split_part(${table.id}, ':', 1)::int)`,
        sql`split_part(${table.id}, ':', 3)`,
        sql`(split_part(${table.id}, ':', 2)::int)`,
      )
      .where(sql`${table.kind} = 'transfer'`),
  ],
)

/** Token counts of one model call by class, with their source. Partitioned by month, as `auditRecords`. */
export const usageEvents = pgTable(
  'usage_events',
  {
    callId: text('call_id').primaryKey(),
    organizationId: uuid('organization_id').notNull(),
    userId: text('user_id'),
    keyId: text('key_id'),
    modelId: text('model_id').notNull(),
    provider: text('provider'),
    surface: text('surface').notNull(),
    at: instant('at').notNull(),
    inputTokens: bigint('input_tokens', { mode: 'number' }).notNull(),
    cacheReadTokens: bigint('cache_read_tokens', { mode: 'number' }).notNull(),
    cacheWrite5MinuteTokens: bigint('cache_write_5_minute_tokens', { mode: 'number' }).notNull(),
    cacheWrite1HourTokens: bigint('cache_write_1_hour_tokens', { mode: 'number' }).notNull(),
    outputTokens: bigint('output_tokens', { mode: 'number' }).notNull(),
    reasoningTokens: bigint('reasoning_tokens', { mode: 'number' }).notNull(),
    provenance: text('provenance', { enum: ['reported', 'estimated', 'unknown'] }).notNull(),
    cost: microCredits('cost').notNull(),
  },
  (table) => [index('usage_events_at').on(table.organizationId, table.at, table.callId)],
)

/**
 * What lists and charts of calls read of their records: one narrow row per call, so that many are read at once. Records have more, and
 * are what is verified; `audit verify` compares these rows with them.
 */
export const calls = pgTable(
  'calls',
  {
    organizationId: uuid('organization_id').notNull(),
    id: text('id').notNull(),
    at: instant('at').notNull(),
    requestId: text('request_id').notNull(),
    userId: text('user_id'),
    keyId: text('key_id'),
    surface: text('surface').notNull(),
    action: text('action').notNull(),
    modelId: text('model_id'),
    tool: text('tool'),
    connectionId: text('connection_id'),
    provider: text('provider'),
    responseId: text('response_id'),
    runId: text('run_id'),
    status: integer('status').notNull(),
    errorCode: text('error_code'),
    outcome: text('outcome', { enum: ['ok', 'cancelled', 'refused', 'blocked', 'failed'] }).notNull(),
    /** Null without any. */
    flags: text('flags').array(),
    /** Detectors with findings, in order of their names; null without any. */
    detectors: text('detectors').array(),
    durationMilliseconds: bigint('duration_milliseconds', { mode: 'number' }).notNull(),
    firstEventMilliseconds: bigint('first_event_milliseconds', { mode: 'number' }),
    /** Of all classes of input. */
    inputTokens: bigint('input_tokens', { mode: 'number' }).notNull(),
    outputTokens: bigint('output_tokens', { mode: 'number' }).notNull(),
    cost: microCredits('cost').notNull(),
    /** Refused calls that the row stands for. */
    count: bigint('count', { mode: 'number' }).notNull(),
  },
  (table) => {
    // A filter reads by its own index, newest first.
    const by = (name: string, column: AnyPgColumn) =>
      index(`calls_${name}`).on(table.organizationId, column, table.at, table.id)
    const having = (name: string, column: AnyPgColumn) => by(name, column).where(isNotNull(column))
    return [
      primaryKey({ columns: [table.organizationId, table.id] }),
      index('calls_at').on(table.organizationId, table.at, table.id),
      by('request', table.requestId),
      by('user', table.userId),
      by('key', table.keyId),
      by('model', table.modelId),
      having('provider', table.provider),
      having('tool', table.tool),
      having('error', table.errorCode),
      having('response', table.responseId),
      having('run', table.runId),
      by('outcome', table.outcome).where(sql`outcome <> 'ok'`),
      index('calls_flagged').on(table.organizationId, table.at, table.id).where(isNotNull(table.flags)),
      index('calls_found').on(table.organizationId, table.at, table.id).where(isNotNull(table.detectors)),
    ]
  },
)

/** Calls refused before their organization was known, counted by address and minute, so that a flood makes few rows. */
export const rejectedCalls = pgTable(
  'rejected_calls',
  {
    ip: text('ip').notNull(),
    minute: instant('minute').notNull(),
    surface: text('surface').notNull(),
    count: integer('count').notNull(),
  },
  (table) => [
    primaryKey({ columns: [table.ip, table.minute, table.surface] }),
    // For retention.
    index('rejected_calls_minute').on(table.minute),
  ],
)

/**
 * What retention has removed, under a MAC, so that verification begins where rows are left: for each chain its last record that was
 * removed (`records`); for usage and rejected calls the time before which they were.
 */
export const prunings = pgTable(
  'prunings',
  {
    /** The deployment's own for rejected calls. */
    organizationId: uuid('organization_id').notNull(),
    kind: text('kind', { enum: ['records', 'usage', 'rejected_calls'] }).notNull(),
    /** 0 where there is none. */
    shard: integer('shard').notNull(),
    /** `Pruning` of `ledger/retention/pruning`. Text, because jsonb does not keep the bytes. */
    statement: text('statement').notNull(),
    pepperId: text('pepper_id').notNull(),
    mac: text('mac').notNull(),
  },
  (table) => [primaryKey({ columns: [table.organizationId, table.kind, table.shard] })],
)
