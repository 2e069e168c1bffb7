import { objectOf } from '../../gateway/protocols/json.ts'
import { type NamedTool, upstreamTools } from '../../gateway/translation/requests/responses-tools.ts'
import type { ResponseSettings } from '../../wire/responses.ts'
import type { CalledTool } from '../model/tool-result.ts'
import { hostedChoice, shownTools } from './hosted-choice.ts'
import type { ServiceTool } from './hosted-tool.ts'

/**
 * Where a model's call is executed: by the caller (`client`), by a tool of the gateway (`hosted`, `search`), or by a tool of
 * a connected service (`integration`), for which the caller may have to approve the call first (`approval`). A call is
 * `refused` if there is no such tool, or `tool_choice` does not allow it.
 */
export type CallPurpose = 'client' | ServiceTool['purpose'] | 'approval' | 'refused'

/** The tools of a request, by the names under which the model calls them. */
export interface ToolRules {
  purposeOf: (upstreamName: string) => CallPurpose
  nameOf: (upstreamName: string) => CalledTool
  /** Whether there is a tool of this name, allowed or not. */
  has: (upstreamName: string) => boolean
  hosted: ReadonlyMap<string, ServiceTool>
  /** Adds a tool for the turns that follow. One with the name of another is left out. */
  offer: (tool: ServiceTool) => void
  /** The active tools, as a response shows them. */
  shown: ReadonlyArray<Record<string, unknown>>
}

/**
 * The rules for the calls of a request. `allowed_tools`, `none` and the choice of one tool do not change `tools`, which keeps
 * the prompt cache valid. A model can therefore call a tool that is not allowed (interface: Responses, tool_choice).
 * @param hosted server-side tools that the request includes. A tool of the caller hides one of the same name.
 * @throws ApiError invalid_request for an invalid tool, and for two tools of one name.
 */
export function toolRules(settings: ResponseSettings, hosted: readonly ServiceTool[]): ToolRules {
  const tools = upstreamTools(settings.tools)
  const visible = hosted.filter(({ definition }) => !tools.has(definition.name))
  const hostedByName = new Map<string, ServiceTool>(visible.map((tool) => [tool.definition.name, tool]))
  const mayCall = allowedBy(settings.tool_choice)
  const mayRun = hostedChoice(settings.tool_choice)
  return {
    hosted: hostedByName,
    shown: shownTools(settings.tools ?? [], visible),
    offer(tool) {
      const { name } = tool.definition
      if (!tools.has(name) && !hostedByName.has(name)) hostedByName.set(name, tool)
    },
    has: (upstreamName) => tools.has(upstreamName) || hostedByName.has(upstreamName),
    nameOf(upstreamName) {
      const running = hostedByName.get(upstreamName)
      if (!running) return calledTool(tools.get(upstreamName) ?? unknownTool(upstreamName))
      const { itemType, members } = running
      return { itemType: awaitsApproval(running) ? 'mcp_approval_request' : itemType, members }
    },
    purposeOf(upstreamName) {
      const tool = tools.get(upstreamName)
      if (tool) return mayCall(tool) ? 'client' : 'refused'
      const running = hostedByName.get(upstreamName)
      if (!running || !mayRun(running)) return 'refused'
      return awaitsApproval(running) ? 'approval' : running.purpose
    },
  }
}

/** A call that the caller has approved is made without the model: each that the model makes needs an approval of its own. */
const awaitsApproval = (tool: ServiceTool): boolean =>
  tool.purpose === 'integration' && tool.offered.needsApproval

/** Whether a call is executed by this service. */
export const isServerSide = (purpose: CallPurpose): boolean =>
  purpose === 'hosted' || purpose === 'integration' || purpose === 'search'

const unknownTool = (name: string): NamedTool => ({ name, namespace: null, kind: 'function' })

/** A tool of the caller, with the members that identify it in its calls. */
const calledTool = ({ kind, name, namespace }: NamedTool): CalledTool => ({
  itemType: kind === 'custom' ? 'custom_tool_call' : 'function_call',
  members: { name, ...(namespace !== null && { namespace }) },
})

function allowedBy(choice: ResponseSettings['tool_choice']): (tool: NamedTool) => boolean {
  if (choice === 'none') return () => false
  if (typeof choice !== 'object' || choice === null) return () => true
  if (choice.type === 'function' || choice.type === 'custom') return namedBy([choice])
  // A tool of another vendor's service: it is not offered, so that the choice has no effect.
  if (choice.type !== 'allowed_tools') return () => true
  return namedBy(Array.isArray(choice.tools) ? choice.tools : [])
}

/** Entries are read once: a request may have many, and a model may call many tools. One of a namespace allows all of its tools. */
function namedBy(entries: readonly unknown[]): (tool: NamedTool) => boolean {
  const namespaces = new Set<unknown>()
  const names = new Set<unknown>()
  /** Names of allowed tools by namespace. */
  const inside = new Map<unknown, Set<unknown>>()
  for (const { type, name, namespace } of entries.map(objectOf)) {
    if (type === 'namespace') namespaces.add(name)
    else if (namespace === undefined) names.add(name)
    else inside.set(namespace, (inside.get(namespace) ?? new Set()).add(name))
  }
  return ({ name, namespace }) =>
    names.has(name) || namespaces.has(namespace) || (inside.get(namespace)?.has(name) ?? false)
}
