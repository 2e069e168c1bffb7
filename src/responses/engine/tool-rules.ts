import { type NamedTool, upstreamTools } from '../../gateway/translation/requests/responses-tools.ts'
import type { ResponseSettings } from '../../wire/responses.ts'
import type { CalledTool } from '../emitter/call-item.ts'
import type { HostedTool } from './hosted-tool.ts'

/**
 * What answers a call that a model makes: the caller, a tool of the gateway, or a tool of a connected service. A call is
 * `refused` where there is no such tool, or it may not be called now.
 */
export type CallPurpose = 'client' | 'hosted' | 'integration' | 'refused'

/** What a request says about tools, for calls that a model makes. By the names that the model calls them. */
export interface ToolRules {
  purposeOf: (upstreamName: string) => CallPurpose
  nameOf: (upstreamName: string) => CalledTool
  /** Whether there is a tool of this name, allowed or not. */
  knows: (upstreamName: string) => boolean
  hosted: ReadonlyMap<string, HostedTool>
}

/**
 * `allowed_tools`, `none` and the choice of one tool are kept whatever the model does: they leave `tools` as they are,
 * for the prompt cache, so that it may call what it must not (interface: Responses, tool_choice).
 * @param hosted tools of this side that the request asks for. A tool of the caller hides one of the same name.
 * @throws ApiError invalid_request for what is no tool, and for two tools of one name.
 */
export function toolRules(settings: ResponseSettings, hosted: readonly HostedTool[]): ToolRules {
  const tools = upstreamTools(settings.tools)
  const visible = hosted.filter(({ definition }) => !tools.has(definition.name))
  const hostedByName = new Map(visible.map((tool) => [tool.definition.name, tool]))
  const mayCall = allowedBy(settings.tool_choice)
  return {
    hosted: hostedByName,
    knows: (upstreamName) => tools.has(upstreamName) || hostedByName.has(upstreamName),
    nameOf: (upstreamName) =>
      hostedByName.get(upstreamName) ?? calledTool(tools.get(upstreamName) ?? unknownTool(upstreamName)),
    purposeOf(upstreamName) {
      const tool = tools.get(upstreamName)
      if (tool) return mayCall(tool) ? 'client' : 'refused'
      const running = hostedByName.get(upstreamName)
      return running && settings.tool_choice !== 'none' ? running.purpose : 'refused'
    },
  }
}

/** Whether a call is answered on this side. */
export const runsHere = (purpose: CallPurpose): boolean => purpose === 'hosted' || purpose === 'integration'

const unknownTool = (name: string): NamedTool => ({ name, namespace: null, kind: 'function' })

/** A tool of the caller, as its calls are told. */
const calledTool = ({ kind, name, namespace }: NamedTool): CalledTool => ({
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
