import { toolName } from '../../integrations/catalogue/tool-name.ts'
import type { OutputItem } from '../../wire/responses.ts'

/** The results of a completed step, for checks and the judge. */
export interface Evidence {
  /** The instructions as the model got them. */
  instructions: string
  output: string
  /** Calls in order; null if they are not stored any more. */
  toolCalls: readonly ToolCall[] | null
}

interface ToolCall {
  /** `shell`, `web_search` and the like, or `{integration}_{tool}` as the MCP gateway names it. */
  name: string
  /** Arguments and results as JSON. */
  content: string
}

/** Members that only identify an item, or are the call's name already. */
const LEFT_OUT = new Set(['id', 'type', 'call_id', 'name', 'server_label', 'environment'])

/** The tool calls of a response. */
export function toolCallsOf(output: readonly OutputItem[]): ToolCall[] {
  return output.flatMap((item) => {
    const name = calledTool(item)
    if (name === null) return []
    const members = Object.entries(item).filter(([member, value]) => !LEFT_OUT.has(member) && value !== null)
    return [{ name, content: JSON.stringify(Object.fromEntries(members)) }]
  })
}

/** Null for an item that is no call of a tool. */
function calledTool(item: OutputItem): string | null {
  // Some types of calls, such as `shell_call`, have no type of their own here.
  const { type, name, server_label: server, action } = item as unknown as Record<string, unknown>
  if (type === 'mcp_call') return toolName(String(server), String(name))
  if (type === 'service_call') return String(name)
  if (type === 'web_search_call') return webTool((action as { type?: unknown } | null)?.type)
  return type === 'shell_call' ? 'shell' : null
}

/** Searches and pages are actions of one type of item. */
const webTool = (action: unknown): string =>
  action === 'open_page' || action === 'find_in_page' ? action : 'web_search'
