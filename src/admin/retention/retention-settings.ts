import { audited, type ChangeScope } from '../../ledger/changes/audited-change.ts'
import { ApiError, notFound } from '../../lib/api-error.ts'
import { type RetentionSettings, retentionSettings } from '../../wire/retention.ts'
import { sealRetention, verifyRetention } from './retention-seal.ts'
import { selectRetentions, updateRetention } from './retention-settings.store.ts'

/**
 * How long an organization keeps its rows.
 * @throws ApiError `not_found`; `internal` when the settings are not what was last set, by which nothing is removed.
 */
export async function readRetention({
  database,
  organizationId,
  pepperRing,
}: ChangeScope): Promise<RetentionSettings> {
  const [row] = await selectRetentions(database, [organizationId])
  if (row === undefined) throw notFound('Organization', organizationId)
  const verified = verifyRetention(pepperRing, row)
  if ('fault' in verified) {
    throw new ApiError('internal', `Nothing is removed until retention is set again: ${verified.fault}.`)
  }
  return verified.settings ?? retentionSettings.parse({})
}

/** Replaces how long an organization keeps its rows. The next sweep applies it. @throws ApiError `not_found`. */
export async function replaceRetention(
  scope: ChangeScope,
  settings: RetentionSettings,
): Promise<RetentionSettings> {
  const { organizationId, pepperRing, clock } = scope
  const resource = `organizations/${organizationId}/retention`
  await audited(scope, { action: 'retention.replaced', resource, detail: { ...settings } }, async () => {
    // The time is after that of the record: the sweep takes settings that are older than their last record for replaced ones.
    const seal = sealRetention(pepperRing, organizationId, settings, new Date(clock()))
    if (!(await updateRetention(scope, settings, seal))) throw notFound('Organization', organizationId)
  })
  return settings
}
