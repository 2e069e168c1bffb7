import type { ToolFamily } from '../../governance/tool-rights.ts'
import type { ResponseSettings } from '../../wire/responses.ts'
import type { ServerTool } from '../tools/hosted-tool.ts'

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

/** The types under which `tools` shows the families, in this order (interface: Response object, tools). */
const SHOWN_TYPES: ReadonlyArray<[type: string, families: readonly ToolFamily[]]> = [
  ['shell', ['shell', 'files']],
  ['web_search', ['web_search']],
  ['computer', ['browser']],
]

const familiesOf = (type: unknown): readonly ToolFamily[] =>
  FAMILIES_OF_TYPE.find(([pattern]) => typeof type === 'string' && pattern.test(type))?.[1] ?? []

/** The entries of `tools` for the tools of this service: those of their types that the caller has not listed itself. */
export function shownTools(
  hosted: Iterable<ServerTool>,
  listed: readonly ToolEntry[],
): Array<{ type: string }> {
  const families = new Set([...hosted].map(({ family }) => family))
  const own = new Set(listed.flatMap(({ type }) => familiesOf(type)))
  return SHOWN_TYPES.filter(
    ([, shown]) => shown.some((family) => families.has(family)) && !shown.some((family) => own.has(family)),
  ).map(([type]) => ({ type }))
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

/** The choice with the functions under which a model knows the tools of this service. */
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
