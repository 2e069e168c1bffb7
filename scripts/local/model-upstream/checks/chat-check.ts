import { isRecord, type JsonRecord, toList, toRecord, toText } from '../json-value.ts'
import type { ModelTraits } from '../model-traits.ts'
import { findChatMessagesFault, missingFault, typeFault } from './chat-messages.ts'
import { findChatOptionsFault } from './chat-options.ts'
import { findChatToolsFault } from './chat-tools.ts'
import type { CheckedRequest, Fault } from './fault.ts'

/** https://platform.openai.com/docs/api-reference/chat/create */
const topMembers = words(`messages model audio frequency_penalty function_call functions logit_bias logprobs
  max_completion_tokens max_tokens metadata modalities moderation n parallel_tool_calls prediction presence_penalty
  prompt_cache_key prompt_cache_options prompt_cache_retention reasoning_effort response_format safety_identifier seed
  service_tier stop store stream stream_options temperature tool_choice tools top_logprobs top_p user verbosity
  web_search_options`)

const completionMembers = words(`model prompt best_of echo frequency_penalty logit_bias logprobs max_tokens n
  presence_penalty seed stop stream stream_options suffix temperature top_p user`)

const messageMembers = words(
  'role content name audio function_call refusal tool_calls tool_call_id annotations',
)
const partMembers = words('type text image_url input_audio file refusal prompt_cache_breakpoint')
const callMembers = words('id type function custom')
const toolMembers = words('type function custom')
const functionMembers = words('name description parameters strict arguments')

function words(text: string): Set<string> {
  return new Set(text.split(/\s+/))
}

/**
 * Checks a chat completion request as OpenAI does. Members that OpenAI does not document are listed and not refused:
 * many servers of the protocol take more than its owner.
 */
export function checkChat(body: JsonRecord, traits: ModelTraits): CheckedRequest {
  return { fault: requiredFault(body) ?? findFault(body, traits), unknownMembers: unknownIn(body) }
}

/** Checks what legacy completions have in common with chat completions. */
export function checkCompletion(body: JsonRecord, traits: ModelTraits): CheckedRequest {
  const { logprobs: _, ...rest } = body
  const fault =
    typeof body.model === 'string'
      ? findChatOptionsFault({ ...rest, response_format: undefined }, { ...traits, reasoning: false })
      : missingModel
  return { fault, unknownMembers: Object.keys(body).filter((name) => !completionMembers.has(name)) }
}

const missingModel: Fault = { message: 'you must provide a model parameter' }

function requiredFault(body: JsonRecord): Fault | undefined {
  if (typeof body.model !== 'string') return missingModel
  if (body.messages === undefined) return missingFault('messages')
  return Array.isArray(body.messages)
    ? undefined
    : typeFault('messages', 'an array of objects', body.messages)
}

function findFault(body: JsonRecord, traits: ModelTraits): Fault | undefined {
  return (
    findChatMessagesFault(toList(body.messages), traits) ??
    findChatToolsFault(body) ??
    findChatOptionsFault(body, traits)
  )
}

function unknownIn(body: JsonRecord): string[] {
  const found = extras(body, topMembers, '')
  for (const [index, message] of toList(body.messages).entries()) {
    const place = `messages[${index}]`
    const { content, tool_calls: calls } = toRecord(message)
    found.push(...extras(message, messageMembers, `${place}.`))
    found.push(...listExtras(content, partMembers, `${place}.content`))
    found.push(...listExtras(calls, callMembers, `${place}.tool_calls`))
  }
  found.push(...listExtras(body.tools, toolMembers, 'tools'))
  for (const [index, tool] of toList(body.tools).entries()) {
    found.push(...extras(toRecord(tool).function, functionMembers, `tools[${index}].function.`))
  }
  return found
}

function listExtras(list: unknown, known: Set<string>, place: string): string[] {
  return toList(list).flatMap((item, index) => extras(item, known, `${place}[${index}].`))
}

function extras(value: unknown, known: Set<string>, place: string): string[] {
  if (!isRecord(value)) return []
  return Object.keys(value)
    .filter((name) => !known.has(name))
    .map((name) => place + toText(name))
}
