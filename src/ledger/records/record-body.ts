import type { auditRecords } from '../../../schema/governance.ts'
import { membersText } from '../../lib/canonical-json.ts'
import type { Actor, AuditedChange, CallOpening, CallOutcome } from '../audit-record.ts'

/** The body of a call's record. @see RECORD_FORM, which older records do not have. */
type CallContent = Omit<CallOpening, 'callId'> &
  CallOutcome & { kind: 'call'; reserved: number; form?: number }

/** The body of a change's record; `credit` when it moved the balance. */
type ChangeContent = Omit<AuditedChange, 'id'> & { kind: 'change'; credit: CreditMovement | null }

interface CreditMovement {
  /** Left out for a grant. */
  kind?: 'transfer'
  id: string
  amount: number
  reason: string
}

/** The parsed body of a record, with `callId` as `id`. */
export type RecordBody = (CallContent | ChangeContent) & { id: string; sequence: number; shard: number }

/** A row of `audit_records`. */
export type StoredRecord = typeof auditRecords.$inferSelect

/** The columns of a row that are copies of its body. */
type CopiedColumns = Omit<StoredRecord, 'body' | 'previousHash' | 'hash'>

/** Records of this form have a row in `calls`, which may be missing of older ones. */
export const RECORD_FORM = 2

/** Longest text that a caller chooses, such as a model's name: these are copied into indexed columns. */
const TEXT_LIMIT = 500

const cut = (text: string) => (text.length > TEXT_LIMIT ? `${text.slice(0, TEXT_LIMIT)}…` : text)
const cutActor = (actor: Actor): Actor => ({ ...actor, ip: actor.ip === null ? null : cut(actor.ip) })

/** The members of an opening in the record of its call, without the ids of call and organization. */
export function openingText(opening: CallOpening): string {
  const { requestId, at, actor, surface, action, modelId, tool, responseId, runId } = opening
  return membersText({
    requestId: cut(requestId),
    at,
    actor: cutActor(actor),
    surface,
    action: cut(action),
    modelId: modelId === null ? null : cut(modelId),
    tool: tool === undefined ? tool : cut(tool),
    responseId,
    runId,
  })
}

/** The members of an outcome in the record of its call. */
export function outcomeText(outcome: CallOutcome): string {
  const { status, errorCode, provider, attempts, usage, provenance, cost, durationMilliseconds } = outcome
  const { request, response, dlp, connectionId, flags, timing, count } = outcome
  const code = errorCode && cut(errorCode)
  const ended = { status, errorCode: code, provider, attempts, usage, provenance, cost, durationMilliseconds }
  return membersText({
    ...ended,
    request,
    response,
    dlp,
    connectionId,
    flags,
    timing,
    count,
    form: RECORD_FORM,
  })
}

/** Adds a flag to an outcome. */
export function withFlag(outcome: string, flag: string): string {
  const { flags, ...rest } = JSON.parse(`{${outcome}}`) as CallOutcome
  return membersText({ ...rest, flags: [...flags, flag] })
}

/** Content of a call's record. @param reserved micro-credits. */
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

/** The members before the time of a record, as `nextLink` and the functions above write them. */
const UP_TO_TIME =
  /^\{"id":"(?:[^"\\]|\\.)*","organizationId":"[^"]*","shard":\d+,"sequence":\d+,"kind":"(?:call|change)",(?:"reserved":\d+,)?"requestId":"(?:[^"\\]|\\.)*","at":(\d+)[,}]/

/** When the call or change of a body was made, in milliseconds since the epoch. Parsing each body whole would cost more than the rest of a flush. */
export function timeOfBody(body: string): number {
  const time = UP_TO_TIME.exec(body)?.[1]
  return time === undefined ? JSON.parse(body).at : Number(time)
}

/** @returns null for a body that is no record: with write access, one with a fitting hash can be stored. */
export function parseBody(text: string): RecordBody | null {
  try {
    const body: Partial<RecordBody> | null = JSON.parse(text)
    return typeof body?.actor === 'object' && body.actor !== null ? (body as RecordBody) : null
  } catch {
    return null
  }
}

/** The columns that repeat members of a body; `verifyLinks` compares them. `extracted-columns.store.ts` has the same in SQL. */
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
