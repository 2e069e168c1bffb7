import { invalidRequest } from '../../../lib/api-error.ts'
import { entryOf, isPresent, type Json, listOf, numberOf, objectOf, textOf } from '../../protocols/json.ts'
import type {
  CanonicalFormat,
  CanonicalReasoning,
  CanonicalRequest,
  CanonicalTool,
  CanonicalToolChoice,
} from './canonical-request.ts'
import { refuseKind } from './member-rules.ts'
import { effortOfChat } from './reasoning.ts'
import { usableToolName } from './tool-names.ts'

/**
 * Everything but the conversation of a canonical request.
 * @param chat members of a chat completion request, and `thinking` and `top_k` as the messages protocol has them: the
 * readers of the other protocols rename theirs. @param schemaPlace of the schema in the caller's request, for errors.
 * @throws ApiError invalid_request for custom tools, and for choices that name no tool.
 */
export function canonicalSettings(
  chat: Json,
  schemaPlace = 'response_format.json_schema.schema',
): Omit<CanonicalRequest, 'system' | 'turns'> {
  const tools = listOf(chat.tools).map(toolOf)
  return {
    tools,
    toolChoice: choiceOf(chat.tool_choice, tools),
    parallelCalls: chat.parallel_tool_calls !== false,
    format: formatOf(objectOf(chat.response_format), schemaPlace),
    sampling: {
      temperature: numberOf(chat.temperature),
      topP: numberOf(chat.top_p),
      topK: numberOf(chat.top_k),
      seed: numberOf(chat.seed),
      presencePenalty: numberOf(chat.presence_penalty),
      frequencyPenalty: numberOf(chat.frequency_penalty),
    },
    stop: (Array.isArray(chat.stop) ? chat.stop : [chat.stop]).map(textOf).filter((text) => text !== ''),
    maxTokens: numberOf(chat.max_completion_tokens) ?? numberOf(chat.max_tokens),
    reasoning: reasoningOf(chat),
    choices: numberOf(chat.n) ?? 1,
    stream: chat.stream === true,
  }
}

function toolOf(tool: Json, index: number): CanonicalTool {
  if (tool.type !== 'function') refuseKind(textOf(tool.type), `tools.${index}`, 'tools')
  const made = objectOf(tool.function)
  const parameters = objectOf(made.parameters)
  return {
    name: usableToolName(textOf(made.name)),
    description: textOf(made.description) || undefined,
    parameters: isPresent(parameters.type) ? parameters : { type: 'object', properties: {}, ...parameters },
    strict: made.strict === true,
  }
}

const MODES: Readonly<Record<string, CanonicalToolChoice['mode']>> = {
  auto: 'auto',
  none: 'none',
  required: 'required',
}

function choiceOf(choice: unknown, tools: readonly CanonicalTool[]): CanonicalToolChoice {
  if (!isPresent(choice)) return { mode: 'auto', names: null }
  if (typeof choice === 'string') {
    const mode = entryOf(MODES, choice)
    if (mode) return { mode, names: null }
    throw invalidRequest("tool_choice: Input should be 'auto', 'none', 'required' or an object.")
  }
  const given = objectOf(choice)
  if (given.type === 'function') {
    return { mode: 'required', names: [usableToolName(textOf(objectOf(given.function).name))] }
  }
  if (given.type !== 'allowed_tools') return refuseKind(textOf(given.type), 'tool_choice', 'choices')
  const allowed = objectOf(given.allowed_tools)
  const names = listOf(allowed.tools).map((tool) => usableToolName(textOf(objectOf(tool.function).name)))
  const offered = new Set(tools.map(({ name }) => name))
  const unknown = names.find((name) => !offered.has(name))
  if (unknown !== undefined) {
    throw invalidRequest(`tool_choice.allowed_tools: no function tool is named ${JSON.stringify(unknown)}.`)
  }
  if (names.length === 0) return { mode: 'none', names: null }
  return { mode: allowed.mode === 'required' ? 'required' : 'auto', names }
}

function formatOf(format: Json, place: string): CanonicalFormat | null {
  if (format.type === 'json_object') return { kind: 'json_object' }
  if (format.type !== 'json_schema') return null
  const { schema, name } = objectOf(format.json_schema)
  if (!isPresent(schema)) throw invalidRequest(`${place}: Field required.`)
  return { kind: 'json_schema', name: textOf(name) || 'answer', schema: objectOf(schema), place }
}

function reasoningOf(chat: Json): CanonicalReasoning {
  const thinking = objectOf(chat.thinking)
  const given = effortOfChat(chat)
  const effort = given || (thinking.type === 'adaptive' ? 'medium' : undefined)
  const budget = thinking.type === 'enabled' ? numberOf(thinking.budget_tokens) : undefined
  const isRequested = effort !== undefined || budget !== undefined
  return {
    effort,
    budget,
    shows: isRequested && effort !== 'none' && thinking.display !== 'omitted',
  }
}
