import * as z from 'zod'

/** How long an organization keeps its rows (`docs/data.md`). */

/** What has a retention of its own. */
export const RETAINED = ['audit_records', 'usage_events', 'responses', 'runs', 'connect_sessions'] as const
export type Retained = (typeof RETAINED)[number]

/** Days; 0 keeps for ever, null takes the deployment's default. */
const days = z.int().min(0).max(36_500).nullable().default(null)

/** The whole document; a member that is left out takes the deployment's default. */
export const retentionSettings = z.strictObject({
  audit_records: days,
  usage_events: days,
  responses: days,
  runs: days,
  connect_sessions: days,
})
export type RetentionSettings = z.output<typeof retentionSettings>
