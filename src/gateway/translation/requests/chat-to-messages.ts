import { invalidRequest } from '../../../lib/api-error.ts'
import { isPresent, type Json, listOf, objectOf, present, textOf } from '../json.ts'
import type { TargetModel } from '../target-model.ts'
import { mediaBlock } from './media.ts'
import { messagesOutputFormat } from './output-format.ts'
import { thinkingOfChat } from './reasoning.ts'
import { messagesToolChoice, messagesTools } from './tools.ts'

/**
 * A chat completion request as a messages request. Members that the target does not know are dropped, those whose loss
 * would change the meaning of the answer are refused; `docs/fidelity.md` lists both.
 * @throws ApiError invalid_request naming the member that cannot be said.
 */
export function chatToMessages(request: Json, target: TargetModel): Json {
  refuseUnsayable(request)
  const { system, messages } = turnsOf(listOf(request.messages))
  const maximum = (request.max_completion_tokens ?? request.max_tokens ?? target.maxOutputTokens) as number
  const maxTokens = Math.min(maximum, target.maxOutputTokens)
  const reasoning = thinkingOfChat(request, target, maxTokens)
  return present({
    model: target.upstreamModel,
    max_tokens: maxTokens,
    system: system.length === 0 ? undefined : system,
    messages,
    stream: request.stream === true ? true : undefined,
    stop_sequences: stopSequences(request.stop),
    tools: messagesTools(request),
    tool_choice: messagesToolChoice(request),
    // Thinking fixes sampling at the provider: sampling members beside it are refused there.
    temperature: reasoning.thinks ? undefined : temperatureOf(request.temperature),
    top_p: reasoning.thinks ? undefined : request.top_p,
    thinking: reasoning.thinking,
    output_config: present({ effort: reasoning.effort, format: messagesOutputFormat(request) }),
  })
}

const UNSAYABLE: Array<[member: string, wanted: (value: unknown) => boolean]> = [
  ['n', (value) => typeof value === 'number' && value > 1],
  ['logprobs', (value) => value !== false && isPresent(value)],
  ['audio', isPresent],
  ['web_search_options', isPresent],
]

function refuseUnsayable(request: Json): void {
  const found = UNSAYABLE.find(([member, wanted]) => wanted(request[member]))
  if (found) throw invalidRequest(`${found[0]} is not supported by this model.`)
}

/** The range is 0 to 2 in chat completions and 0 to 1 in the messages protocol. */
const temperatureOf = (value: unknown) => (typeof value === 'number' ? Math.min(value, 1) : undefined)

function stopSequences(stop: unknown): string[] | undefined {
  const list = (Array.isArray(stop) ? stop : [stop]).filter(
    (text): text is string => typeof text === 'string',
  )
  // A sequence of white space alone is refused by the provider.
  const usable = list.filter((text) => text.trim() !== '')
  return usable.length === 0 ? undefined : usable
}

interface Turn {
  role: 'user' | 'assistant'
  content: Json[]
}

/** Hoists system messages, merges turns of one role, and puts the results of one tool turn first into one message. */
function turnsOf(messages: Json[]): { system: Json[]; messages: Turn[] } {
  const system: Json[] = []
  const turns: Turn[] = []
  for (const [index, message] of messages.entries()) {
    const role = textOf(message.role)
    if (role === 'system' || role === 'developer') system.push(...textBlocks(message.content, index))
    else if (role === 'assistant') add(turns, 'assistant', assistantBlocks(message, index))
    else if (role === 'tool') add(turns, 'user', [toolResult(message, index)])
    else add(turns, 'user', userBlocks(message.content, index))
  }
  for (const turn of turns) {
    const isResult = (block: Json) => block.type === 'tool_result'
    turn.content = [...turn.content.filter(isResult), ...turn.content.filter((block) => !isResult(block))]
  }
  if (turns[0]?.role !== 'user') {
    throw invalidRequest('messages: the first message after the system messages must have the role user.')
  }
  return { system, messages: turns }
}

function add(turns: Turn[], role: Turn['role'], content: Json[]): void {
  const last = turns[turns.length - 1]
  if (content.length === 0) return
  if (last?.role === role) last.content.push(...content)
  else turns.push({ role, content })
}

/** Empty text blocks are refused by the provider. */
const textBlock = (text: string, source: Json = {}): Json[] =>
  text === '' ? [] : [present({ type: 'text', text, cache_control: source.cache_control })]

function textBlocks(content: unknown, index: number): Json[] {
  if (typeof content === 'string') return textBlock(content)
  return listOf(content).flatMap((part) => {
    if (part.type !== 'text') throw invalidRequest(`messages.${index}.content: only text is supported here.`)
    return textBlock(textOf(part.text), part)
  })
}

function userBlocks(content: unknown, index: number): Json[] {
  if (typeof content === 'string') return textBlock(content)
  return listOf(content).flatMap((part) =>
    part.type === 'text'
      ? textBlock(textOf(part.text), part)
      : [mediaBlock(part, `messages.${index}.content`)],
  )
}

function assistantBlocks(message: Json, index: number): Json[] {
  const content =
    typeof message.content === 'string' ? textBlock(message.content) : spokenParts(message.content)
  const refusal = textOf(message.refusal)
  const calls = listOf(message.tool_calls).map((call, position) => {
    const made = objectOf(call.function)
    const place = `messages.${index}.tool_calls.${position}.function.arguments`
    return {
      type: 'tool_use',
      id: textOf(call.id),
      name: textOf(made.name),
      input: inputOf(made.arguments, place),
    }
  })
  return [...content, ...textBlock(refusal), ...calls]
}

const spokenParts = (content: unknown): Json[] =>
  listOf(content).flatMap((part) => textBlock(textOf(part.text) || textOf(part.refusal), part))

/** @throws ApiError for arguments that are not a JSON object: the provider takes nothing else. */
function inputOf(text: unknown, place: string): Json {
  if (text === '' || !isPresent(text)) return {}
  try {
    const input = JSON.parse(String(text)) as unknown
    if (typeof input === 'object' && input !== null && !Array.isArray(input)) return input as Json
  } catch {}
  throw invalidRequest(`${place}: Input should be a JSON object, as text.`)
}

function toolResult(message: Json, index: number): Json {
  const content = typeof message.content === 'string' ? message.content : userBlocks(message.content, index)
  return present({
    type: 'tool_result',
    tool_use_id: textOf(message.tool_call_id),
    content: content.length === 0 ? undefined : content,
  })
}
