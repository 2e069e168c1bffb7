import { RETAINED, type Retained, type RetentionSettings } from '../../wire/retention.ts'

const DAY_MS = 86_400_000

/** The variables that have the deployment's defaults, in days; 0 keeps for ever. */
export interface RetentionVariables {
  AUDIT_RETENTION_DAYS: number
  USAGE_RETENTION_DAYS: number
  RESPONSE_RETENTION_DAYS: number
  RUN_RETENTION_DAYS: number
  CONNECT_SESSION_RETENTION_DAYS: number
}

export const defaultRetention = (variables: RetentionVariables): Record<Retained, number> => ({
  audit_records: variables.AUDIT_RETENTION_DAYS,
  usage_events: variables.USAGE_RETENTION_DAYS,
  responses: variables.RESPONSE_RETENTION_DAYS,
  runs: variables.RUN_RETENTION_DAYS,
  connect_sessions: variables.CONNECT_SESSION_RETENTION_DAYS,
})

/** Times before which rows go; null where they are kept for ever. */
export type Cutoffs = Record<Retained, Date | null>

/**
 * The times before which an organization's rows go. Records and usage go by whole months in UTC, so that a month goes when all of it
 * is old enough: it can be dropped at once, and a chain is shortened once a month.
 * @param settings null for the defaults alone. @param now milliseconds since the epoch.
 */
export function cutoffsOf(
  settings: Partial<RetentionSettings> | null,
  defaults: Record<Retained, number>,
  now: number,
): Cutoffs {
  const cutoff = (kind: Retained) => {
    const days = settings?.[kind] ?? defaults[kind]
    if (days === 0) return null
    const date = new Date(now - days * DAY_MS)
    return kind === 'audit_records' || kind === 'usage_events' ? monthOf(date) : date
  }
  return Object.fromEntries(RETAINED.map((kind) => [kind, cutoff(kind)])) as Cutoffs
}

/** The first instant of the month of a date, in UTC. */
export const monthOf = (date: Date): Date => new Date(Date.UTC(date.getUTCFullYear(), date.getUTCMonth()))

/** The earlier of the cutoffs: what is older is old enough for all. Null where one keeps for ever. */
export const earliest = (cutoffs: ReadonlyArray<Date | null>): Date | null =>
  cutoffs.reduce<Date | null>(
    (least, each, index) =>
      each === null || (index > 0 && least === null) ? null : least === null || each < least ? each : least,
    null,
  )
