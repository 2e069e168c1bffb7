import { missingFault, typeFault, valueFault } from './checks/chat-messages.ts'
import { type Fault, firstFault } from './checks/fault.ts'
import {
  countCharacters,
  type JsonRecord,
  tokensOfCharacters,
  toList,
  toRecord,
  toText,
} from './json-value.ts'
import type { ModelTraits } from './model-traits.ts'
import { jsonReply, type Reply } from './reply.ts'
import { openAiError } from './vendor-errors.ts'

/** Members whose text costs input tokens. */
const countedMembers = ['input', 'instructions', 'tools', 'text'] as const

/** https://platform.openai.com/docs/api-reference/responses/input-tokens */
const knownMembers = new Set([
  ...countedMembers,
  'model',
  'conversation',
  'previous_response_id',
  'parallel_tool_calls',
  'personality',
  'reasoning',
  'tool_choice',
  'truncation',
])

const itemTypes = [
  'message',
  'function_call',
  'function_call_output',
  'reasoning',
  'item_reference',
  'custom_tool_call',
  'custom_tool_call_output',
]
const inputParts = ['input_text', 'input_image', 'input_file']
const outputParts = ['output_text', 'refusal']
const roles = ['assistant', 'system', 'developer', 'user']

/**
 * Answers a parsed `POST /v1/responses/input_tokens`. Its items and tools have the form of the responses API, not of
 * chat completions, and what has the other form is refused. A model without the counter gets 404, as from the servers
 * that have none.
 */
export function answerInputTokens(body: JsonRecord, traits: ModelTraits): Reply {
  if (!traits.inputTokens) {
    return openAiError(404, { message: 'Invalid URL (POST /v1/responses/input_tokens)' })
  }
  const fault = findFault(body)
  if (fault !== undefined) return openAiError(400, fault)
  const characters = countedMembers.reduce((sum, name) => sum + countCharacters(body[name]), 0)
  const answer = { object: 'response.input_tokens', input_tokens: tokensOfCharacters(characters) }
  return jsonReply('chat', 200, JSON.stringify(answer))
}

function findFault(body: JsonRecord): Fault | undefined {
  const unknown = Object.keys(body).find((name) => !knownMembers.has(name))
  if (unknown !== undefined) {
    return { message: `Unknown parameter: '${unknown}'.`, param: unknown, code: 'unknown_parameter' }
  }
  if (typeof body.model !== 'string') return missingFault('model')
  const { input } = body
  if (input !== undefined && input !== null && typeof input !== 'string' && !Array.isArray(input)) {
    return typeFault('input', 'one of a string or array of input items', input)
  }
  return (
    firstFault(toList(input).map(toRecord), (item, index) => itemFault(item, `input[${index}]`)) ??
    firstFault(toList(body.tools).map(toRecord), (tool, index) => toolFault(tool, `tools[${index}]`))
  )
}

function itemFault(item: JsonRecord, param: string): Fault | undefined {
  const type = toText(item.type, item.role === undefined ? '' : 'message')
  if (!itemTypes.includes(type)) return valueFault(item.type, itemTypes, `${param}.type`)
  if (type === 'function_call') {
    const missing = ['call_id', 'name', 'arguments'].find((name) => typeof item[name] !== 'string')
    return missing === undefined ? undefined : missingFault(`${param}.${missing}`)
  }
  if (type === 'function_call_output') {
    const missing = ['call_id', 'output'].find((name) => item[name] === undefined)
    return missing === undefined ? undefined : missingFault(`${param}.${missing}`)
  }
  return type === 'message' ? messageFault(item, param) : undefined
}

function messageFault({ role, content }: JsonRecord, param: string): Fault | undefined {
  if (!roles.includes(toText(role))) return valueFault(role, roles, `${param}.role`)
  if (typeof content === 'string') return undefined
  if (!Array.isArray(content))
    return typeFault(`${param}.content`, 'one of a string or array of objects', content)
  const parts = role === 'assistant' ? outputParts : inputParts
  return firstFault(content.map(toRecord), (part, index) =>
    parts.includes(toText(part.type))
      ? undefined
      : valueFault(part.type, parts, `${param}.content[${index}]`),
  )
}

/** Tools are flat here: a nested `function` is that of chat completions. */
function toolFault(tool: JsonRecord, param: string): Fault | undefined {
  if (tool.type === undefined) return missingFault(`${param}.type`)
  if (tool.type !== 'function') return undefined
  return typeof tool.name === 'string' ? undefined : missingFault(`${param}.name`)
}
