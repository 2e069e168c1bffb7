import { invalidRequest } from '../../../lib/api-error.ts'
import { isPresent, type Json, listOf, numberOf, objectOf, present, textOf } from '../../protocols/json.ts'
import { can, type TargetModel } from '../target-model.ts'
import { conversationOfChat } from './chat-conversation.ts'
import { CHAT_MEMBERS } from './chat-members.ts'
import { droppedMembers, refuseLostMembers } from './member-rules.ts'
import { mayCallTools, messagesToolMembers } from './messages-tools.ts'
import type { Conversation, MessagesTurn } from './messages-turns.ts'
import { type ConvertedRequest, messagesOutputFormat } from './output-format.ts'
import { thinkingOfChat } from './reasoning.ts'

/**
 * A chat completion request as a messages request. `CHAT_MEMBERS` has the conversion of each member; members that it
 * does not list are dropped.
 * @throws ApiError invalid_request naming the member whose loss would change the meaning of the answer.
 */
export function chatToMessages(request: Json, target: TargetModel): ConvertedRequest {
  refuseLostMembers(request, CHAT_MEMBERS)
  const given = listOf(request.messages)
  const continuesAnswer = given[given.length - 1]?.role === 'assistant'
  const conversation = conversationOfChat(request.messages)
  const converted = buildMessagesRequest(request, target, conversation, { continuesAnswer })
  return { ...converted, dropped: droppedMembers(request, CHAT_MEMBERS, converted.body) }
}

interface ConversationEnd {
  /** Whether the answer is to continue the assistant's last text, if the model supports it. */
  continuesAnswer: boolean
  /** Place of the schema in the caller's request, for the error; that of chat completions by default. */
  schemaPlace?: string
  /** See `ToolsBeside`. */
  instructsBesideTools?: boolean
}

/**
 * A messages request from a converted conversation and the other members of a chat completion request.
 * @throws ApiError invalid_request
 */
export function buildMessagesRequest(
  request: Json,
  target: TargetModel,
  { system, messages, called }: Conversation,
  { continuesAnswer, schemaPlace, instructsBesideTools = false }: ConversationEnd,
): Omit<ConvertedRequest, 'dropped'> {
  const turns = withAnswerableEnd(messages, continuesAnswer, target)
  const { tools, tool_choice } = messagesToolMembers(request, called)
  const { format, instruction } = messagesOutputFormat(
    objectOf(request.response_format),
    target,
    { mayCallTools: mayCallTools(request), instructs: instructsBesideTools },
    schemaPlace,
  )
  if (instruction !== null) system.push({ type: 'text', text: instruction })
  const maxTokens = maximumOf(request, target)
  const last = turns[turns.length - 1]
  const thinking = thinkingOfChat(request, target, maxTokens, {
    forced: ['any', 'tool'].includes(textOf(tool_choice?.type)) || last?.role === 'assistant',
    withinToolTurn: last?.content[0]?.type === 'tool_result' && !beginsWithThinking(turns[turns.length - 2]),
  })
  const outputConfig = present({ effort: thinking.effort, format })
  const body = present({
    model: target.upstreamModel,
    max_tokens: maxTokens,
    system: system.length === 0 ? undefined : system,
    messages: turns,
    stream: request.stream === true ? true : undefined,
    stop_sequences: stopSequences(request.stop),
    tools,
    tool_choice,
    ...(thinking.samples ? samplingOf(request) : {}),
    thinking: thinking.thinking,
    output_config: Object.keys(outputConfig).length === 0 ? undefined : outputConfig,
    metadata: endUser(request.safety_identifier) ?? endUser(request.user),
  })
  return { body, jsonByInstruction: instruction !== null }
}

const THOUGHTS = new Set(['thinking', 'redacted_thinking'])
const beginsWithThinking = (turn: MessagesTurn | undefined) => THOUGHTS.has(textOf(turn?.content[0]?.type))

/** The protocol demands a maximum; the default of chat completions is that of the model. */
function maximumOf(request: Json, target: TargetModel): number {
  const requested = numberOf(request.max_completion_tokens) ?? numberOf(request.max_tokens)
  return Math.min(requested ?? target.maxOutputTokens, target.maxOutputTokens)
}

/** The vendor's range ends at 1, and it takes one of the two only. */
function samplingOf(request: Json): Json {
  const { top_p } = request
  const temperature = numberOf(request.temperature)
  if (temperature === undefined) return { top_p }
  return { temperature: Math.min(Math.max(temperature, 0), 1) }
}

/**
 * The vendor refuses sequences of white space alone (https://github.com/BerriAI/litellm/issues/3286), and dropping one
 * would change the answer. Empty sequences have no effect.
 */
function stopSequences(stop: unknown): string[] | undefined {
  const texts = (Array.isArray(stop) ? stop : [stop]).map(textOf).filter((text) => text !== '')
  if (texts.some((text) => text.trim() === '')) {
    throw invalidRequest(
      'stop: sequences of white space alone are not supported by this model: cut the answer where you need it.',
    )
  }
  return texts.length === 0 ? undefined : texts
}

const E_MAIL = /@/
const TELEPHONE = /^\+?[\d\s().-]{7,}$/
const LONGEST_USER_ID = 256

/** The vendor refuses identifiers of persons (https://github.com/BerriAI/litellm/issues/10106). */
function endUser(id: unknown): Json | undefined {
  const text = textOf(id)
  const opaque = text !== '' && text.length <= LONGEST_USER_ID && !E_MAIL.test(text) && !TELEPHONE.test(text)
  return opaque ? { user_id: text } : undefined
}

const CONTINUE = '(Continue from where you left off.)'

/**
 * The end of a conversation that ends with the assistant. Models that continue its text refuse white space at its end;
 * the others refuse it altogether, so a turn of the user asks to continue. All models get that turn where the caller's
 * last message is a blank or system message, which has no place here.
 */
function withAnswerableEnd(
  messages: MessagesTurn[],
  continuesAnswer: boolean,
  target: TargetModel,
): MessagesTurn[] {
  const last = messages[messages.length - 1]
  if (last?.role !== 'assistant') return messages
  if (can(target, 'adaptive_thinking') || !continuesAnswer) {
    return [...messages, { role: 'user', content: [{ type: 'text', text: CONTINUE }] }]
  }
  const end = objectOf(last.content[last.content.length - 1])
  if (!isPresent(end.text)) return messages
  const trimmed = { ...end, text: textOf(end.text).trimEnd() }
  return [...messages.slice(0, -1), { ...last, content: [...last.content.slice(0, -1), trimmed] }]
}
