import { DEFAULT_TOOL_SETTINGS, type ToolSettings } from '../identity/tool-rights.ts'
import { type ChangeScope, changeRights } from '../ledger/changes/audited-change.ts'
import { notFound } from '../lib/api-error.ts'
import { type NamedAt, requireKnown } from './known-names.ts'
import { selectToolSettings, updateToolSettings } from './tool-settings.store.ts'

/** The rules of an organization for hosted tools; the defaults where it has none. @throws ApiError `not_found`. */
export async function readToolSettings(scope: ChangeScope): Promise<ToolSettings> {
  const row = await selectToolSettings(scope)
  if (row === null) throw notFound('Organization', scope.organizationId)
  return row.toolSettings ?? DEFAULT_TOOL_SETTINGS
}

/**
 * Replaces the rules. They apply from the next tool call on.
 * @throws ApiError `unprocessable` for a subject or an integration that the organization does not have; `not_found`.
 */
export async function replaceToolSettings(scope: ChangeScope, settings: ToolSettings): Promise<ToolSettings> {
  await requireKnown(scope, namesOf(settings))
  const resource = `organizations/${scope.organizationId}/tools`
  return changeRights(
    scope,
    { action: 'tool_settings.replaced', resource, detail: { ...settings } },
    async () => {
      const epoch = await updateToolSettings(scope, settings)
      if (epoch === null) throw notFound('Organization', scope.organizationId)
      return { result: settings, epoch }
    },
  )
}

/** The names in the rules, beside the organization and every integration. */
function namesOf({ off, approvals = [] }: ToolSettings): NamedAt[] {
  const subjects = off.flatMap((rule, index): NamedAt[] =>
    rule.subject_type === 'organization'
      ? []
      : [{ kind: rule.subject_type, name: rule.subject_id, path: `off.${index}.subject_id` }],
  )
  const integrations = approvals.flatMap(({ integration }, index): NamedAt[] =>
    integration === '*'
      ? []
      : [{ kind: 'integration', name: integration, path: `approvals.${index}.integration` }],
  )
  return [...subjects, ...integrations]
}
