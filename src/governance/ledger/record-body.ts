import { membersText } from '../../lib/canonical-json.ts'
import type { Actor, AuditedChange, CallOpening, CallOutcome } from '../audit-record.ts'
import type { Usage, UsageProvenance } from '../credits.ts'

/** What the body of a record adds to the opening and outcome of a call. */
type CallContent = Omit<CallOpening, 'callId'> & CallOutcome & { kind: 'call'; reserved: number }

/** What the body of a record adds to a change; `credit` when it moved the balance. */
type ChangeContent = Omit<AuditedChange, 'id'> & { kind: 'change'; credit: CreditMovement | null }

interface CreditMovement {
  /** Left out for a grant. */
  kind?: 'transfer'
  id: string
  amount: number
  reason: string
}

/** The parsed body of a record: everything that is known of it, `callId` as `id`. */
export type RecordBody = (CallContent | ChangeContent) & { id: string; sequence: number; shard: number }

/** A row of `audit_records`. */
export interface AuditRow {
  organizationId: string
  shard: number
  sequence: number
  id: string
  kind: 'call' | 'change'
  at: Date
  requestId: string
  userId: string | null
  keyId: string | null
  surface: string
  action: string
  modelId: string | null
  status: number
  creditsSettled: number
  body: string
  previousHash: string
  hash: string
}

/** The columns of a row that are copies of its body. */
export type CopiedColumns = Omit<AuditRow, 'body' | 'previousHash' | 'hash'>

/** Texts that callers choose, such as a model's name, are cut here: they are copied into indexed columns. */
const TEXT_LIMIT = 500

const cut = (text: string) => (text.length > TEXT_LIMIT ? `${text.slice(0, TEXT_LIMIT)}…` : text)
const cutActor = (actor: Actor): Actor => ({ ...actor, ip: actor.ip === null ? null : cut(actor.ip) })

/**
 * The members of an opening as they stand in the record of its call, the call's id and organization apart. Texts that
 * a caller chooses are cut to a length that every store takes.
 */
export function openingText({ requestId, at, actor, surface, action, modelId }: CallOpening): string {
  return membersText({
    requestId: cut(requestId),
    at,
    actor: cutActor(actor),
    surface,
    action: cut(action),
    modelId: modelId === null ? null : cut(modelId),
  })
}

/** The members of an outcome as they stand in the record of its call. */
export function outcomeText(outcome: CallOutcome): string {
  const { status, errorCode, provider, attempts, usage, provenance, cost, durationMilliseconds } = outcome
  const { request, response, dlp, connectionId, flags } = outcome
  const ended = { status, errorCode, provider, attempts, usage, provenance, cost, durationMilliseconds }
  return membersText({ ...ended, request, response, dlp, connectionId, flags })
}

/** An outcome with one flag more. */
export function withFlag(outcome: string, flag: string): string {
  const { flags, ...rest } = JSON.parse(`{${outcome}}`) as CallOutcome
  return membersText({ ...rest, flags: [...flags, flag] })
}

/** Content of a call's record. @param reserved micro-credits that were held for it. */
export const callText = (opening: string, outcome: string, reserved: number) =>
  `"kind":"call","reserved":${reserved},${opening},${outcome}`

/** Content of the record of an administrative change. */
export function changeText(change: AuditedChange, credit: CreditMovement | null): string {
  const { id: _, organizationId: __, ...rest } = change
  return membersText({
    kind: 'change',
    ...rest,
    credit,
    requestId: cut(change.requestId),
    actor: cutActor(change.actor),
  })
}

/** The columns that have to stand beside a body: written with it, and compared with it by `verifyLinks`. */
export function copiedColumns(body: RecordBody): CopiedColumns {
  const call = body.kind === 'call'
  return {
    organizationId: body.organizationId,
    shard: body.shard,
    sequence: body.sequence,
    id: body.id,
    kind: body.kind,
    at: new Date(body.at),
    requestId: body.requestId,
    userId: body.actor.userId,
    keyId: body.actor.keyId,
    surface: call ? body.surface : 'management',
    action: body.action,
    modelId: call ? body.modelId : null,
    status: call ? body.status : 200,
    creditsSettled: call ? body.cost : 0,
  }
}

/** A row of `usage_events`. */
export interface UsageRow {
  callId: string
  organizationId: string
  userId: string | null
  keyId: string | null
  modelId: string
  provider: string | null
  surface: string
  at: Date
  inputTokens: number
  cacheReadTokens: number
  cacheWrite5MinuteTokens: number
  cacheWrite1HourTokens: number
  outputTokens: number
  reasoningTokens: number
  provenance: UsageProvenance
  cost: number
}

/** The usage a record tells of; null when it is no model call, or one that used nothing. */
export function usageOf(body: RecordBody): UsageRow | null {
  if (body.kind !== 'call' || body.modelId === null) return null
  if (body.usage === null && body.cost === 0) return null
  const usage: Partial<Usage> = body.usage ?? {}
  return {
    callId: body.id,
    organizationId: body.organizationId,
    userId: body.actor.userId,
    keyId: body.actor.keyId,
    modelId: body.modelId,
    provider: body.provider,
    surface: body.surface,
    at: new Date(body.at),
    inputTokens: usage.input ?? 0,
    cacheReadTokens: usage.cacheRead ?? 0,
    cacheWrite5MinuteTokens: usage.cacheWrite5Minutes ?? 0,
    cacheWrite1HourTokens: usage.cacheWrite1Hour ?? 0,
    outputTokens: usage.output ?? 0,
    reasoningTokens: usage.reasoning ?? 0,
    provenance: body.provenance ?? 'unknown',
    cost: body.cost,
  }
}

/** A row of `credit_entries`. */
export interface CreditRow {
  id: string
  organizationId: string
  kind: 'grant' | 'settlement' | 'transfer'
  shard: number
  amount: number
  reason: string
  at: Date
}

/** The movement of the balance a record stands for; null when it cost nothing. */
export function creditOf(body: RecordBody): CreditRow | null {
  const { organizationId, shard } = body
  const at = new Date(body.at)
  if (body.kind === 'change')
    return body.credit && { kind: 'grant', ...body.credit, organizationId, shard, at }
  if (body.cost === 0) return null
  return {
    id: body.id,
    organizationId,
    kind: 'settlement',
    shard,
    amount: -body.cost,
    reason: body.modelId ?? body.action,
    at,
  }
}
