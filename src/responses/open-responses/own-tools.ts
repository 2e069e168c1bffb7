import type { ResponseSettings } from '../../wire/responses.ts'
import { ownToolType } from './type-names.ts'

type TypedEntry = { type: string; [member: string]: unknown }

/** Settings with tools, and a choice of them, under their own types: callers of Open Responses send those with a prefix. */
export function withOwnTools(settings: ResponseSettings): ResponseSettings {
  const { tools, tool_choice: choice } = settings
  return {
    ...settings,
    ...(tools && { tools: tools.map(ownEntry) }),
    ...(typeof choice === 'object' && choice !== null && { tool_choice: ownChoice(choice) }),
  }
}

function ownChoice(choice: TypedEntry): TypedEntry {
  const own = ownEntry(choice)
  return Array.isArray(own.tools) ? { ...own, tools: own.tools.map(ownEntry) } : own
}

/** Entries of allowed tools are checked later. */
const ownEntry = <Entry extends Partial<TypedEntry>>(entry: Entry): Entry =>
  typeof entry?.type === 'string' ? { ...entry, type: ownToolType(entry.type) } : entry
