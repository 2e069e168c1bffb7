import type { InspectionCounts, PolicyRecord } from '../wire/records.ts'

/** A request to an upstream. */
export interface Attempt {
  provider: string
  upstreamModel: string
  /** The upstream's HTTP status, or null when it sent none. */
  status: number | null
  /** Why there was no usable answer, such as `connect_timeout`; null when there was one. */
  failure: string | null
  durationMilliseconds: number
}

/** The caller and its address. Never contains a key or a credential. */
export interface Actor {
  userId: string | null
  keyId: string | null
  /** `admin_token` for a change through the management API; null for a user. */
  administrator: string | null
  /** The session of the web terminal; absent for any other caller. */
  session?: string
  ip: string | null
}

/** The actor of a record that the gateway creates by itself. */
export const NO_ACTOR: Actor = { userId: null, keyId: null, administrator: null, ip: null }

/** Facts about a call at its admission. */
export interface CallOpening {
  callId: string
  requestId: string
  organizationId: string
  /** Shard of the organization's ledger that has the call; the home shard when left out. */
  shard?: number
  /** Milliseconds since the epoch. */
  at: number
  actor: Actor
  surface: string
  /** `METHOD /path` as routed, without a query. */
  action: string
  modelId: string | null
  /** Name of the tool that is called; absent for a call of a model. */
  tool?: string
  /** The response that the call is a turn or a tool of, or would have begun; absent for other calls. */
  responseId?: string
  /** The run of an agent that the call belongs to; absent for other calls. */
  runId?: string
}

/** When what happened in a call, in milliseconds since its opening. */
export interface CallTiming {
  /** The ledger had admitted the call, and its request could be sent. */
  admitted: number
  /** First event of a streamed answer, as it arrived from the upstream; null for another answer. */
  firstEvent: number | null
  lastEvent: number | null
  /** Events of the upstream; null where none were counted. */
  events: number | null
}

/** Facts about a call at its end. */
export interface CallOutcome {
  /** HTTP status sent to the caller; 499 when the caller left first. */
  status: number
  /** The interface's error code, or a code of ours; null on success. */
  errorCode: string | null
  /** Name of the provider that answered. */
  provider: string | null
  attempts: Attempt[]
  usage: Usage | null
  provenance: UsageProvenance | null
  /** Micro-credits to take from the balance. */
  cost: number
  durationMilliseconds: number
  request: InspectionCounts | null
  response: InspectionCounts | null
  dlp: PolicyRecord | null
  /** Connection used for a tool call. */
  connectionId: string | null
  /** Special conditions of the call, such as `client_left` or `settled_by_alarm`. */
  flags: string[]
  /** Absent for a call that was not sent, and in older records. */
  timing?: CallTiming
  /** Number of refused calls that the record stands for; absent for one. Its opening is that of the first. */
  count?: number
}

/** An administrative change, with the values that are not secret. */
export interface AuditedChange {
  id: string
  requestId: string
  organizationId: string
  at: number
  actor: Actor
  /** Dotted, such as `api_key.created`. */
  action: string
  resource: string
  detail: Record<string, unknown>
}

/**
 * An outcome whose members are empty unless they are given: nothing was used, no upstream was reached.
 * @param now milliseconds since the epoch.
 */
export function callOutcome(
  { at }: Pick<CallOpening, 'at'>,
  now: number,
  known: Partial<CallOutcome> & { status: number },
): CallOutcome {
  return {
    errorCode: null,
    provider: null,
    attempts: [],
    usage: null,
    provenance: null,
    cost: 0,
    durationMilliseconds: now - at,
    request: null,
    response: null,
    dlp: null,
    connectionId: null,
    flags: [],
    ...known,
  }
}

/** Tokens by the class they are charged in; classes never overlap (cached input is not in `input`). */
export interface Usage {
  input: number
  cacheRead: number
  cacheWrite5Minutes: number
  cacheWrite1Hour: number
  output: number
  /** Part of `output`, for the record only. */
  reasoning: number
  /** Units that are billed apart, by the name of their price; tokens among them are in no other class. */
  units?: Record<string, number>
}

/** `reported` by the upstream, `estimated` from request and answer, `unknown` for a call that was never closed. */
export type UsageProvenance = 'reported' | 'estimated' | 'unknown'

/** The organization id under which changes to the deployment itself (providers, models) are audited. */
export const DEPLOYMENT_ORGANIZATION_ID = '00000000-0000-0000-0000-000000000000'
