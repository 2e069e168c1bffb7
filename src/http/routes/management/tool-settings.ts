import { readToolSettings, replaceToolSettings } from '../../../admin/tool-settings.ts'
import type { ToolSettings } from '../../../identity/tool-rights.ts'
import type { HandlersOf } from './mount-endpoints.ts'

const present = ({ off, web, shell, approvals = [] }: ToolSettings) => ({ off, web, shell, approvals })

export const toolSettingsHandlers: HandlersOf<'tools'> = {
  'tools.show': async ({ scope }) => present(await readToolSettings(scope)),
  'tools.replace': async ({ scope, body }) => present(await replaceToolSettings(scope, body)),
}
