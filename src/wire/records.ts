import * as z from 'zod'
import type { ACTIONS, DIRECTIONS } from './dlp.ts'
import { LARGEST_INTEGER, pageParameters, period, text, uuid } from './management-fields.ts'
import { jsonCursor, viewCursorParameter } from './page-cursor.ts'

/** Queries for audit records, their verification and export, and for usage. */

export const auditQuery = z.strictObject({
  ...pageParameters,
  cursor: viewCursorParameter.optional(),
  ...period,
  user_id: text(100).optional(),
  key_id: text(100).optional(),
  model: text(200).optional(),
  status: z.coerce.number('must be a number').int().min(0).max(999).optional(),
  surface: text(50).optional(),
})

export const auditVerificationQuery = z.strictObject({
  after_sequence: z.coerce.number('must be a number').int().min(0).max(Number.MAX_SAFE_INTEGER).default(0),
  shard: z.coerce.number('must be a number').int().min(0).max(LARGEST_INTEGER).default(0),
  limit: z.coerce.number('must be a number').int().min(1).max(1_000).default(500),
})

/** An organization, known or not: chains of one that was deleted must verify, too. */
const ofOrganization = { organization_id: uuid.optional() }

/** The deployment's own chain where no organization is named. */
export const deploymentVerificationQuery = auditVerificationQuery.extend(ofOrganization)
export const headsQuery = z.strictObject(ofOrganization)

/** What the ledger writes to the database again: of the installation's own where no organization is named. */
export const reflushRequest = z.strictObject({
  organization_id: uuid.optional(),
  shard: z.int().min(0).max(LARGEST_INTEGER).optional(),
  from_sequence: z.int().min(1).max(Number.MAX_SAFE_INTEGER).optional(),
})

/** A name or time in a row that was tampered with: any text that Postgres has. */
const storedName = z.string().refine((name) => !name.includes('\0'))

const unrecordedCursor = z.discriminatedUnion('table', [
  z.strictObject({
    table: z.literal('usage_events'),
    after: z.strictObject({ organizationId: uuid, at: storedName, callId: storedName }).nullable(),
  }),
  z.strictObject({
    table: z.literal('credit_entries'),
    after: z.strictObject({ organizationId: uuid, kind: storedName, id: storedName }).nullable(),
  }),
])

/** Rows of usage and credits without a record. */
export const unrecordedPageQuery = z.strictObject({
  limit: z.coerce.number('must be a number').int().min(1).max(1_000).default(500),
  cursor: jsonCursor(unrecordedCursor).default({ table: 'usage_events', after: null }),
})

/** Query of unrecorded calls: of all organizations when none is named. */
export const unrecordedQuery = unrecordedPageQuery.extend(ofOrganization)

/** Few at a time: each checkpoint holds the heads of all organizations. */
export const checkpointPageQuery = z.strictObject({
  limit: z.coerce.number('must be a number').int().min(1).max(100).default(20),
  cursor: uuid.optional(),
})

export const checkpointQuery = checkpointPageQuery.extend(ofOrganization)

export const exportQuery = z.strictObject({
  shard: z.coerce.number('must be a number').int().min(-LARGEST_INTEGER).max(LARGEST_INTEGER).default(0),
  after_sequence: z.coerce.number('must be a number').int().min(0).max(Number.MAX_SAFE_INTEGER).default(0),
  to_sequence: z.coerce.number('must be a number').int().min(0).max(Number.MAX_SAFE_INTEGER).optional(),
  limit: z.coerce.number('must be a number').int().min(1).max(1_000).default(500),
})

const USAGE_DIMENSIONS = ['model', 'key', 'user', 'day'] as const

export const usageQuery = z.strictObject({
  ...pageParameters,
  ...period,
  group_by: z.enum(USAGE_DIMENSIONS).default('model'),
})

export const usageEventQuery = z.strictObject({ ...pageParameters, ...period })

export const FOUND_KINDS = [
  'call',
  'response',
  'run',
  'key',
  'user',
  'group',
  'model',
  'policy',
  'agent',
  'integration',
  'connection',
] as const
export type FoundKind = (typeof FOUND_KINDS)[number]

/** A text of at least two characters: one would be in every name. */
export const findQuery = z.strictObject({ q: text(200).min(2, 'must have at least 2 characters') })

export const ATTENTION_KINDS = [
  'credits_used_up',
  'failed_runs',
  'connection_refused',
  'key_expires',
  'tools_pending',
] as const

export type AuditQuery = z.infer<typeof auditQuery>
export type UnrecordedPosition = z.infer<typeof unrecordedCursor>
export type UsageQuery = z.infer<typeof usageQuery>

/** Bytes of one direction, counted at the engine's input and again at the sink: inspected + uninspected = released + withheld. */
export interface InspectionCounts {
  inspected: number
  uninspected: number
  released: number
  withheld: number
}

/** Findings with one action in texts of one direction. */
export interface FindingGroup {
  direction: (typeof DIRECTIONS)[number]
  action: (typeof ACTIONS)[number]
  /** Version of the policies that hold in this direction. */
  policy: string
  /** Number of findings by detector. */
  findings: Record<string, number>
}

/** What policies did in a call, never a value that was found. */
export interface PolicyRecord {
  /** Version of the policies of all directions. */
  policyVersion: string
  /** Number of findings by detector. */
  findings: Record<string, number>
  /** The same findings by direction and action; absent without findings, and in older records. */
  breakdown?: FindingGroup[]
}
