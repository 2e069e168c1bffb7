import { DEFAULT_TOOL_SETTINGS, type ToolRights } from '../../src/identity/tool-rights.ts'

/** The rights of a caller whose organization has no rules. */
export const DEFAULT_TOOL_RIGHTS: ToolRights = { ...DEFAULT_TOOL_SETTINGS, off: [] }
