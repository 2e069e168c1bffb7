import * as z from 'zod'
import { uuid } from '../../management-fields.ts'
import { ATTENTION_KINDS, FOUND_KINDS } from '../../records.ts'
import { count, credits, list, time } from './parts.ts'

/** Schemas of the endpoints for credits, usage and the audit trail. Amounts are micro-credits. */

const balance = { balance: credits, reserved: credits, available: credits }

const creditEntry = z
  .strictObject({
    id: z.string(),
    /** Transfers between the ledger's shards leave the sum as it is, and are not listed. */
    kind: z.enum(['grant', 'settlement', 'transfer']),
    amount: credits,
    reason: z.string(),
    at: time,
  })
  .meta({ id: 'CreditEntry' })

const tokens = {
  input_tokens: count,
  cache_read_tokens: count,
  cache_write_5_minute_tokens: count,
  cache_write_1_hour_tokens: count,
  output_tokens: count,
  reasoning_tokens: count,
}

/** Null for calls without a user or key. */
const dimension = z.string().nullable().optional()

/** One of the first four members is there: the dimension of the query. */
const usageTotals = z
  .strictObject({
    model: dimension,
    key: dimension,
    user: dimension,
    day: dimension,
    calls: count,
    ...tokens,
    cost: credits,
  })
  .meta({ id: 'UsageTotals' })

const usageEvent = z
  .strictObject({
    call_id: z.string(),
    at: time,
    user_id: z.string().nullable(),
    key_id: z.string().nullable(),
    model: z.string(),
    /** Null for a call that no provider has answered. */
    provider: z.string().nullable(),
    surface: z.string(),
    ...tokens,
    provenance: z.string(),
    cost: credits,
  })
  .meta({ id: 'UsageEvent' })

/** A record of the audit trail. */
export const auditRecord = z
  .strictObject({
    id: z.string(),
    shard: z.int(),
    sequence: z.int(),
    kind: z.enum(['call', 'change']),
    at: time,
    request_id: z.string(),
    user_id: z.string().nullable(),
    key_id: z.string().nullable(),
    surface: z.string(),
    action: z.string(),
    model: z.string().nullable(),
    status: z.int(),
    credits_settled: credits,
    previous_hash: z.string(),
    hash: z.string(),
    /** The hashed body, parsed; its text where it was tampered with and is not JSON. */
    record: z.unknown(),
  })
  .meta({ id: 'AuditRecord' })

const chainHead = { shard: z.int(), sequence: z.int(), hash: z.string() }
const chain = z.strictObject({ organization_id: uuid, ...chainHead }).meta({ id: 'Chain' })

const fault = z.strictObject({ sequence: z.int(), reason: z.string(), detail: z.string() })

const verifiedPage = z
  .strictObject({
    organization_id: uuid,
    shard: z.int(),
    after_sequence: count,
    to_sequence: count,
    /** The last record that retention may have removed, by its signed statement; 0 without one. */
    pruned_to: count,
    /** Records before the first fault. */
    verified: count,
    ok: z.boolean(),
    first_broken: fault.nullable(),
    faults: z.array(fault),
    has_more: z.boolean(),
  })
  .meta({ id: 'VerifiedPage' })

const checkedHeads = z
  .strictObject({
    organization_id: uuid,
    ok: z.boolean(),
    faults: z.array(fault.extend({ shard: z.int() })),
  })
  .meta({ id: 'CheckedHeads' })

const tableName = z.enum(['usage_events', 'credit_entries'])
const unrecordedRow = z
  .strictObject({ table: tableName, organization_id: z.string(), name: z.string() })
  .meta({ id: 'UnrecordedRow' })

const checkpointFault = z.strictObject({ checkpoint_id: uuid, reason: z.string(), detail: z.string() })

const checkedCheckpoints = z
  .strictObject({
    ok: z.boolean(),
    checkpoints: count,
    first_broken: checkpointFault.nullable(),
    faults: z.array(checkpointFault),
    has_more: z.boolean(),
    next_cursor: z.string().nullable(),
  })
  .meta({ id: 'CheckedCheckpoints' })

/** A statement under a MAC. Its members are those that were hashed (docs/administration.md). */
const attested = z
  .strictObject({
    statement: z.record(z.string(), z.unknown()),
    pepper_id: z.string(),
    mac: z.string(),
  })
  .meta({ id: 'Attested' })

/** A row under the names of its columns, with any value: what was tampered with is exported as it is. */
const exportedRow = z.record(z.string(), z.unknown())

const exportedRecords = z
  .strictObject({
    data: z.array(
      z.strictObject({
        record: exportedRow,
        /** The row of lists of calls. */
        call: exportedRow.nullish(),
        usage: exportedRow.nullable(),
        credits: z.array(exportedRow),
        stated: z.array(z.strictObject({ table: z.string(), name: z.string(), value: z.string() })),
      }),
    ),
    has_more: z.boolean(),
  })
  .meta({ id: 'ExportedRecords' })

const exportedUnrecorded = list(z.strictObject({ table: tableName, name: z.string(), row: exportedRow }))

const flushed = z.strictObject({ pending: count, since: z.string().optional() }).meta({ id: 'Flushed' })

/** The oldest record that a ledger can write again, and when it was stored. */
const keptFrom = z.strictObject({ sequence: z.int(), at: time }).nullable()

const checkedLedger = z
  .strictObject({
    organization_id: uuid,
    /** Whether no shard has lost records in the database or another balance. */
    ok: z.boolean(),
    shards: z.array(
      z.strictObject({
        shard: z.int(),
        /** Last records: of the ledger, that the database has confirmed, and that it has. */
        head: z.int(),
        confirmed: z.int(),
        stored: z.int(),
        /** Confirmed records that the database lacks. */
        behind: count,
        pending: count,
        kept_from: keptFrom,
        balance: z.strictObject({
          /** With the last confirmed record; null where that is not known. */
          ledger: credits.nullable(),
          stored: credits,
          agrees: z.boolean().nullable(),
        }),
      }),
    ),
  })
  .meta({ id: 'CheckedLedger' })

const reflushed = z
  .strictObject({
    organization_id: uuid,
    shards: z.array(
      z.strictObject({
        shard: z.int(),
        head: z.int(),
        confirmed: z.int(),
        stored: z.int(),
        /** Records that are written again. */
        again: count,
        /** Of them and others, those that wait to be written. */
        pending: count,
        /** Records that neither the ledger nor the database has. */
        lost: z.strictObject({ from: z.int(), to: z.int() }).nullable(),
        /** Why nothing is written again. */
        conflict: z.string().nullable(),
        kept_from: keptFrom,
      }),
    ),
  })
  .meta({ id: 'Reflushed' })

const found = z
  .strictObject({ kind: z.enum(FOUND_KINDS), id: z.string(), label: z.string() })
  .meta({ id: 'Found' })

const attentionItem = z
  .strictObject({
    kind: z.enum(ATTENTION_KINDS),
    /** Of the agent, connection, key, integration or organization. */
    id: z.string(),
    name: z.string(),
    /** Failed runs of a day, at most 100; tools that wait; else 1. */
    count,
    /** When it began, or the latest failed run; for a key, when it expires. */
    at: time.nullable(),
  })
  .meta({ id: 'AttentionItem' })

export const recordAnswers = {
  'find.list': list(found),
  'attention.list': list(attentionItem),
  'credits.show': list(creditEntry).extend(balance),
  'credits.grant': z.strictObject({ id: z.string(), amount: credits, reason: z.string(), ...balance }),
  'usage.totals': list(usageTotals),
  'usage.events': list(usageEvent),
  'audit.list': list(auditRecord),
  'audit.chains': list(chain),
  'audit-verification.chain': verifiedPage,
  'audit-export.heads': attested,
  'audit-export.checkpoints': list(attested),
  'audit-export.records': exportedRecords,
  'audit-export.unrecorded': exportedUnrecorded,
  'ledger.flush': flushed,
  'installation-audit.list': list(auditRecord),
  'installation-audit.chains': list(chain),
  'installation-audit-verification.chain': verifiedPage,
  'installation-audit-verification.heads': checkedHeads,
  'installation-audit-verification.unrecorded': list(unrecordedRow),
  'installation-audit.checkpoint': z.strictObject({ id: uuid, at: time, chains: count }),
  'installation-audit-verification.checkpoints': checkedCheckpoints,
  'installation-audit-export.heads': attested,
  'installation-audit-export.checkpoints': list(attested),
  'installation-audit-export.records': exportedRecords,
  'installation-audit-export.unrecorded': exportedUnrecorded,
  'installation-ledger.flush': flushed,
  'installation-ledger.check': checkedLedger,
  'installation-ledger.reflush': reflushed,
}
