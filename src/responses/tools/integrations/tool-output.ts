import type { IntegrationAnswer } from '../../../integrations/call-integration-tool.ts'
import type { UpstreamToolResult } from '../../../integrations/types.ts'
import type { ToolResult } from '../../model/tool-result.ts'

/** Characters of an output. Models read the beginning; a tool has ways to ask for less. */
const LONGEST_OUTPUT = 256 * 1024

/** The result of a call as an `mcp_call` item has it: a text, or an error that the model can act on. */
export function toolResultOf(answer: IntegrationAnswer): ToolResult {
  if (answer.kind === 'completed') return resultOf(answer.result)
  return { status: 'failed', members: { error: errorOf(answer) } }
}

function resultOf(result: UpstreamToolResult): ToolResult {
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

function errorOf(answer: Exclude<IntegrationAnswer, { kind: 'completed' }>): string {
  switch (answer.kind) {
    case 'connection_ambiguous': {
      const candidates = answer.candidates.map(({ id, displayName }) => `${displayName} (${id})`)
      return `${answer.message} The user has to choose one of: ${candidates.join(', ')}.`
    }
    case 'credentials_unavailable':
      return `${answer.message} ${answer.hint}`
    case 'tool_disabled':
      return 'The tool is switched off.'
    case 'tool_unknown':
      return 'The tool is not available any more.'
    case 'refused':
      return answer.error.message
    default:
      return answer.message
  }
}
