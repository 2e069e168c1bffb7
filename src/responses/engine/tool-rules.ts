import { type NamedTool, upstreamTools } from '../../gateway/translation/requests/responses-tools.ts'
import type { ResponseSettings } from '../../wire/responses.ts'
import type { CalledTool } from '../emitter/call-item.ts'
import type { HostedTool } from '../tools/hosted-tool.ts'
import { allowsHosted, shownTools } from './hosted-choice.ts'

/**
 * Where a model's call is executed: by the caller (`client`), by a tool of the gateway (`hosted`), or by a tool of a
 * connected service (`integration`). A call is `refused` if there is no such tool, or `tool_choice` does not allow it.
 */
export type CallPurpose = 'client' | 'hosted' | 'integration' | 'refused'

/** The tools of a request, by the names under which the model calls them. */
export interface ToolRules {
  purposeOf: (upstreamName: string) => CallPurpose
  nameOf: (upstreamName: string) => CalledTool
  /** Whether there is a tool of this name, allowed or not. */
  has: (upstreamName: string) => boolean
  hosted: ReadonlyMap<string, HostedTool>
  /** The active tools, as a response shows them. */
  shown: ReadonlyArray<Record<string, unknown>>
}

/**
 * The rules for the calls of a request. `allowed_tools`, `none` and the choice of one tool do not change `tools`, which keeps
 * the prompt cache valid. A model can therefore call a tool that is not allowed (interface: Responses, tool_choice).
 * @param hosted server-side tools that the request includes. A tool of the caller hides one of the same name.
 * @throws ApiError invalid_request for an invalid tool, and for two tools of one name.
 */
export function toolRules(settings: ResponseSettings, hosted: readonly HostedTool[]): ToolRules {
  const tools = upstreamTools(settings.tools)
  const visible = hosted.filter(({ definition }) => !tools.has(definition.name))
  const hostedByName = new Map(visible.map((tool) => [tool.definition.name, tool]))
  const mayCall = allowedBy(settings.tool_choice)
  return {
    hosted: hostedByName,
    shown: shownTools(settings.tools ?? [], visible),
    has: (upstreamName) => tools.has(upstreamName) || hostedByName.has(upstreamName),
    nameOf: (upstreamName) =>
      hostedByName.get(upstreamName) ?? calledTool(tools.get(upstreamName) ?? unknownTool(upstreamName)),
    purposeOf(upstreamName) {
      const tool = tools.get(upstreamName)
      if (tool) return mayCall(tool) ? 'client' : 'refused'
      const running = hostedByName.get(upstreamName)
      return running && allowsHosted(settings.tool_choice, running) ? running.purpose : 'refused'
    },
  }
}

/** Whether a call is executed by this service. */
export const isServerSide = (purpose: CallPurpose): boolean =>
  purpose === 'hosted' || purpose === 'integration'

const unknownTool = (name: string): NamedTool => ({ name, namespace: null, kind: 'function' })

/** A tool of the caller, with the members that identify it in its calls. */
const calledTool = ({ kind, name, namespace }: NamedTool): CalledTool => ({
  itemType: kind === 'custom' ? 'custom_tool_call' : 'function_call',
  members: { name, ...(namespace !== null && { namespace }) },
})

function allowedBy(choice: ResponseSettings['tool_choice']): (tool: NamedTool) => boolean {
  if (choice === 'none') return () => false
  if (typeof choice !== 'object' || choice === null) return () => true
  if (choice.type === 'function' || choice.type === 'custom') return (tool) => names(choice, tool)
  // A tool of another vendor's service: it is not offered, so that the choice has no effect.
  if (choice.type !== 'allowed_tools') return () => true
  const allowed = (Array.isArray(choice.tools) ? choice.tools : []) as Array<Record<string, unknown>>
  return (tool) => allowed.some((entry) => names(entry, tool))
}

/** An entry for a namespace allows all of its tools. */
function names(entry: Record<string, unknown>, { name, namespace }: NamedTool): boolean {
  if (entry.type === 'namespace') return entry.name === namespace
  return entry.name === name && (entry.namespace === undefined || entry.namespace === namespace)
}
