import { notFound } from '../../lib/api-error.ts'
import { DEFAULT_TOOL_SETTINGS, type ToolSettings } from '../tool-rights.ts'
import { type Administration, changeRights } from './administration.ts'
import { selectToolSettings, updateToolSettings } from './tool-settings.store.ts'

/** The rules of an organization for hosted tools; the defaults where it has none. @throws ApiError `not_found`. */
export async function readToolSettings(administration: Administration): Promise<ToolSettings> {
  const row = await selectToolSettings(administration)
  if (row === null) throw notFound('Organization', administration.organizationId)
  return row.toolSettings ?? DEFAULT_TOOL_SETTINGS
}

/** Replaces the rules. They hold from the next tool call on. @throws ApiError `not_found`. */
export async function replaceToolSettings(
  administration: Administration,
  settings: ToolSettings,
): Promise<ToolSettings> {
  const resource = `organizations/${administration.organizationId}/tools`
  return changeRights(
    administration,
    { action: 'tool_settings.replaced', resource, detail: { ...settings } },
    async () => {
      const epoch = await updateToolSettings(administration, settings)
      if (epoch === null) throw notFound('Organization', administration.organizationId)
      return { result: settings, epoch }
    },
  )
}
