import type { ToolAnswer } from '../../../calls/call-tool.ts'
import type { UpstreamToolResult } from '../../../integrations/types.ts'
import type { ToolResult } from '../../model/tool-result.ts'

/** Characters of an output. Models read the beginning; a tool has ways to ask for less. */
const LONGEST_OUTPUT = 256 * 1024

/** The result of a call as an `mcp_call` item has it: a text, or an error that the model can act on. */
export function toolResultOf({ members }: Pick<ToolAnswer, 'members'>): ToolResult {
  const result = members as unknown as UpstreamToolResult
  const text = cut(outputOf(result))
  if (result.isError === true) return { status: 'failed', members: { error: text || 'The tool failed.' } }
  return { status: 'completed', members: { output: text } }
}

/** Texts of the content. The structured form of a result stands in for a content without text (MCP, Tool Result). */
function outputOf({ content, structuredContent }: UpstreamToolResult): string {
  const blocks = Array.isArray(content) ? content : []
  const texts = blocks.map(textOfBlock)
  const hasText = blocks.some(({ type }) => type === 'text' || type === 'resource')
  if (!hasText && structuredContent !== undefined) texts.push(JSON.stringify(structuredContent))
  return texts.filter((text) => text !== '').join('\n')
}

function textOfBlock(block: Record<string, unknown>): string {
  const { type, text, resource, uri, name, mimeType } = block as Record<string, unknown>
  if (type === 'text') return typeof text === 'string' ? text : ''
  if (type === 'resource_link') return `[${String(name ?? 'resource')}](${String(uri)})`
  const { text: inner, mimeType: innerType } = (resource ?? {}) as Record<string, unknown>
  if (typeof inner === 'string') return inner
  // Models of both protocols take no other content in the result of a function.
  return `[${String(type)} ${String(mimeType ?? innerType ?? '')} is not shown]`
}

const cut = (text: string): string =>
  text.length <= LONGEST_OUTPUT
    ? text
    : `${text.slice(0, LONGEST_OUTPUT).toWellFormed()}\n[cut after ${LONGEST_OUTPUT} characters of ${text.length}]`
