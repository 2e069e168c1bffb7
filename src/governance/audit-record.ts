import type { Usage, UsageProvenance } from './credits.ts'

/** Bytes of one direction, counted apart at the engine's input and at the sink: inspected + uninspected = released + withheld. */
export interface InspectionCounts {
  inspected: number
  uninspected: number
  released: number
  withheld: number
}

/** One try at an upstream. */
export interface Attempt {
  provider: string
  upstreamModel: string
  /** The upstream's HTTP status, or null when it gave none. */
  status: number | null
  /** Why there was no usable answer, such as `connect_timeout`; null when there was. */
  failure: string | null
  durationMilliseconds: number
}

/** Who called, from where. Never a key, never a credential. */
export interface Actor {
  userId: string | null
  keyId: string | null
  /** `admin_token` for administration; null when a key speaks for a user. */
  administrator: string | null
  ip: string | null
}

/** What is known of a call when it is admitted. */
export interface CallOpening {
  callId: string
  requestId: string
  organizationId: string
  /** Of the organization's ledger, that has the call; the home shard when left out. */
  shard?: number
  /** Milliseconds since the epoch. */
  at: number
  actor: Actor
  surface: string
  /** `METHOD /path` as routed, without a query. */
  action: string
  modelId: string | null
}

/** What is known of a call when it has ended. */
export interface CallOutcome {
  /** HTTP status the caller got; 499 when the caller left first. */
  status: number
  /** The interface's error code or a word of ours; null on success. */
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
  /** Findings by type and count, never a value; the policy's version. */
  dlp: { policyVersion: string; findings: Record<string, number> } | null
  /** Connection used for a tool call. */
  connectionId: string | null
  /** Conditions worth knowing later, such as `limits_degraded` or `client_left`. */
  flags: string[]
}

/** An administrative change: what was done to what, with the values that are not secret. */
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
