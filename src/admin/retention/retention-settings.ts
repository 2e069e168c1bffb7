import { audited, type ChangeScope } from '../../ledger/changes/audited-change.ts'
import { notFound } from '../../lib/api-error.ts'
import { type RetentionSettings, retentionSettings } from '../../wire/retention.ts'
import { selectRetention, updateRetention } from './retention-settings.store.ts'

/** How long an organization keeps its rows. @throws ApiError `not_found`. */
export async function readRetention(scope: ChangeScope): Promise<RetentionSettings> {
  const row = await selectRetention(scope)
  if (row === null) throw notFound('Organization', scope.organizationId)
  return retentionSettings.parse(row.retention ?? {})
}

/** Replaces how long an organization keeps its rows. The next sweep applies it. @throws ApiError `not_found`. */
export async function replaceRetention(
  scope: ChangeScope,
  settings: RetentionSettings,
): Promise<RetentionSettings> {
  const resource = `organizations/${scope.organizationId}/retention`
  await audited(scope, { action: 'retention.replaced', resource, detail: { ...settings } }, async () => {
    if (!(await updateRetention(scope, settings))) throw notFound('Organization', scope.organizationId)
  })
  return settings
}
