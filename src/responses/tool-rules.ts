import type { NamedTool } from '../gateway/translation/requests/responses-tools.ts'
import type { ResponseSettings } from '../wire/responses.ts'
import type { CalledTool } from './call-item.ts'

/** What a request says about tools, for calls that a model makes. */
export interface ToolRules {
  nameOf: (upstreamName: string) => CalledTool
  /** Whether the request gives a tool of this name. */
  knows: (upstreamName: string) => boolean
  /** Whether the caller answers a call of it. */
  shows: (upstreamName: string) => boolean
}

/**
 * `allowed_tools`, `none` and the choice of one tool are kept whatever the model does: they leave `tools` as they are,
 * for the prompt cache, so that it may call what it must not (interface: Responses, tool_choice).
 * @param tools of the request, by the name that the model knows.
 */
export function toolRules(settings: ResponseSettings, tools: ReadonlyMap<string, NamedTool>): ToolRules {
  const mayCall = allowedBy(settings.tool_choice)
  return {
    nameOf: (upstreamName) => calledTool(tools.get(upstreamName) ?? unknownTool(upstreamName)),
    knows: (upstreamName) => tools.has(upstreamName),
    shows: (upstreamName) => {
      const tool = tools.get(upstreamName)
      return tool !== undefined && mayCall(tool)
    },
  }
}

const unknownTool = (name: string): NamedTool => ({ name, namespace: null, kind: 'function' })

/** A tool of the caller, as its calls are told. */
export const calledTool = ({ kind, name, namespace }: NamedTool): CalledTool => ({
  itemType: kind === 'custom' ? 'custom_tool_call' : 'function_call',
  members: { name, ...(namespace !== null && { namespace }) },
})

function allowedBy(choice: ResponseSettings['tool_choice']): (tool: NamedTool) => boolean {
  if (choice === 'none') return () => false
  if (typeof choice !== 'object' || choice === null) return () => true
  if (choice.type === 'function' || choice.type === 'custom') return (tool) => names(choice, tool)
  // Tools that the provider of another service would run: they are not offered, so nothing is chosen.
  if (choice.type !== 'allowed_tools') return () => true
  const allowed = (Array.isArray(choice.tools) ? choice.tools : []) as Array<Record<string, unknown>>
  return (tool) => allowed.some((entry) => names(entry, tool))
}

/** A namespace that is named allows all of its tools. */
function names(entry: Record<string, unknown>, { name, namespace }: NamedTool): boolean {
  if (entry.type === 'namespace') return entry.name === namespace
  return entry.name === name && (entry.namespace === undefined || entry.namespace === namespace)
}
