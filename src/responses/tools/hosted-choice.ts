import type { ToolFamily } from '../../identity/tool-rights.ts'
import type { ResponseSettings } from '../../wire/responses.ts'
import type { ServerTool } from './hosted-tool.ts'

type ToolChoice = ResponseSettings['tool_choice']
type ToolEntry = { type: string; name?: unknown; [member: string]: unknown }

/**
 * The families of tools that a type names, in `tools` and in `tool_choice`, with versions such as `web_search_2025_08_26`
 * (https://platform.openai.com/docs/api-reference/responses/create#responses-create-tools).
 */
const FAMILIES_OF_TYPE: ReadonlyArray<[RegExp, readonly ToolFamily[]]> = [
  [/^(local_)?shell$/, ['shell', 'files']],
  [/^(file_operations|files?)$/, ['files']],
  [/^(web_search(_preview)?|web_fetch)([_-]\d[\d_-]*)?$/, ['web_search']],
  [/^(computer(_use)?(_preview)?|browser)$/, ['browser']],
]

/**
 * The types under which `tools` shows families, in this order (interface: Response object, tools). The first family of a type
 * has to be on; the others are shown with it.
 */
const SHOWN_TYPES = ['shell', 'file_operations', 'web_search', 'computer']

const familiesOf = (type: unknown): readonly ToolFamily[] =>
  FAMILIES_OF_TYPE.find(([pattern]) => typeof type === 'string' && pattern.test(type))?.[1] ?? []

/**
 * The active tools: the entries of the caller without those for tools of this service that are off, and one for each further
 * tool of this service.
 */
export function shownTools(listed: readonly ToolEntry[], hosted: Iterable<ServerTool>): ToolEntry[] {
  const active = new Set([...hosted].map(({ family }) => family))
  const shown = listed.filter(({ type }) => {
    const [family] = familiesOf(type)
    return family === undefined || active.has(family)
  })
  for (const type of SHOWN_TYPES) {
    const [family] = familiesOf(type)
    const isShown = shown.some((entry) => familiesOf(entry.type).includes(family as ToolFamily))
    if (active.has(family as ToolFamily) && !isShown) shown.push({ type })
  }
  return shown
}

/** Whether an entry of `tool_choice` names a tool of this service: by its type, or as a function by its name. */
function isNamed({ type, name, server_label: label }: ToolEntry, tool: ServerTool): boolean {
  const { definition } = tool
  if (type === 'function') return name === definition.name
  if (type !== 'mcp') return tool.family !== null && familiesOf(type).includes(tool.family)
  if (tool.purpose === 'search') return tool.scope.entries.some((entry) => entry.label === label)
  if (tool.purpose !== 'integration' || tool.members.server_label !== label) return false
  return name === undefined || name === null || name === tool.members.name || name === definition.name
}

/** Whether a choice allows a tool of this service. */
export function allowsHosted(choice: ToolChoice, tool: ServerTool): boolean {
  if (choice === 'none') return false
  if (typeof choice !== 'object' || choice === null) return true
  return entriesOf(choice).some((entry) => isNamed(entry, tool))
}

const entriesOf = (choice: ToolEntry): ToolEntry[] => {
  if (choice.type !== 'allowed_tools') return [choice]
  return Array.isArray(choice.tools) ? choice.tools : []
}

/** The choice with the functions under which a model gets the tools of this service. */
export function modelChoice(choice: ToolChoice, hosted: readonly ServerTool[]): ToolChoice {
  if (typeof choice !== 'object' || choice === null || hosted.length === 0) return choice
  const functionsOf = (entry: ToolEntry): ToolEntry[] => {
    if (entry.type === 'function') return [entry]
    const tools = hosted.filter((tool) => isNamed(entry, tool))
    if (tools.length === 0) return [entry]
    return tools.map(({ definition: { name } }) => ({ type: 'function', name }))
  }
  const tools = entriesOf(choice).flatMap(functionsOf)
  if (choice.type === 'allowed_tools') return { ...choice, tools }
  const [only] = tools
  if (tools.length === 1 && only) return only as ToolChoice
  return { type: 'allowed_tools', mode: 'required', tools } as ToolChoice
}
