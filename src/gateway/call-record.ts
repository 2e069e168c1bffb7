import type { Actor, CallOpening, CallOutcome } from '../governance/audit-record.ts'

/**
 * What one API call has become so far. The audit middleware begins it and records it if nobody else has; a model call
 * that was opened in the ledger is closed there instead.
 */
export interface CallRecord {
  callId: string
  requestId: string
  /** Milliseconds since the epoch. */
  startedAt: number
  actor: Actor
  surface: string
  action: string
  modelId: string | null
  /** What policies found before the ledger held the call. */
  dlp?: CallOutcome['dlp']
  /** Conditions worth knowing later, such as `limits_degraded`. */
  flags: string[]
  /** The ledger holds it: its outcome goes there by `close`. */
  opened: boolean
}

export function openingOf(record: CallRecord, organizationId: string): CallOpening {
  return {
    callId: record.callId,
    requestId: record.requestId,
    organizationId,
    at: record.startedAt,
    actor: record.actor,
    surface: record.surface,
    action: record.action,
    modelId: record.modelId,
  }
}

/** The outcome of a call that used nothing. */
export function emptyOutcome(
  record: CallRecord,
  now: number,
  status: number,
  errorCode: string | null,
): CallOutcome {
  return {
    status,
    errorCode,
    provider: null,
    attempts: [],
    usage: null,
    provenance: null,
    cost: 0,
    durationMilliseconds: now - record.startedAt,
    request: null,
    response: null,
    dlp: record.dlp ?? null,
    connectionId: null,
    flags: record.flags,
  }
}
