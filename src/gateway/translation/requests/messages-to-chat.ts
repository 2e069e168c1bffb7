import { invalidRequest } from '../../../lib/api-error.ts'
import { type Json, numberOf, present } from '../../protocols/json.ts'
import { can, type TargetModel } from '../target-model.ts'
import { droppedMembers, refuseLostMembers } from './member-rules.ts'
import { conversationOfMessages, systemMessage } from './messages-conversation.ts'
import { MESSAGES_MEMBERS } from './messages-members.ts'
import {
  chatParallelCalls,
  chatToolChoice,
  chatTools,
  mayCallTools,
  reasonsBeside,
} from './messages-tools.ts'
import { type ConvertedRequest, chatOutputFormat, responseFormatOfMessages } from './output-format.ts'
import { effortOfMessages, samplingFor } from './reasoning.ts'

/**
 * A messages request as a chat completion request. `MESSAGES_MEMBERS` has the conversion of each member,
 * `MESSAGES_BLOCKS` that of each block; members that they do not list are dropped.
 * @throws ApiError invalid_request naming the member, block or tool whose loss would change the meaning of the answer.
 */
export function messagesToChat(request: Json, target: TargetModel): ConvertedRequest {
  refuseLostMembers(request, MESSAGES_MEMBERS)
  const tools = chatTools(request)
  const reasons = can(target, 'reasoning')
  const toolChoice = tools && chatToolChoice(request)
  const { format, instruction } = chatOutputFormat(responseFormatOfMessages(request), target, {
    mayCallTools: mayCallTools({ tools, tool_choice: toolChoice }),
    instructs: false,
  })
  const maxTokens = Math.min(numberOf(request.max_tokens) ?? target.maxOutputTokens, target.maxOutputTokens)
  const { temperature, top_p } = request
  const body = present({
    model: target.upstreamModel,
    messages: [
      ...systemMessage(request.system, instruction),
      ...answerableConversation(request.messages, target),
    ],
    // Models that reason refuse the older name; some other servers take only that one.
    [reasons ? 'max_completion_tokens' : 'max_tokens']: maxTokens,
    stream: request.stream === true ? true : undefined,
    stream_options: request.stream === true ? { include_usage: true } : undefined,
    stop: stopTexts(request.stop_sequences),
    ...samplingFor({ temperature, top_p }, target),
    tools,
    tool_choice: toolChoice,
    parallel_tool_calls: tools && chatParallelCalls(request),
    reasoning_effort: effort(request, target, tools),
    response_format: format,
  })
  const dropped = droppedMembers(request, MESSAGES_MEMBERS, body)
  return { body, jsonByInstruction: instruction !== null, dropped }
}

/** Vendors of both protocols refuse a conversation that is empty or ends with the assistant. */
function answerableConversation(turns: unknown, target: TargetModel): Json[] {
  const messages = conversationOfMessages(turns, target)
  const last = messages[messages.length - 1]
  if (last && last.role !== 'assistant') return messages
  throw invalidRequest('messages: the last message must have content.')
}

function effort(request: Json, target: TargetModel, tools: Json[] | undefined): string | undefined {
  if (!can(target, 'reasoning')) return undefined
  return reasonsBeside(tools, target) ? effortOfMessages(request) : 'none'
}

/** An empty list is refused by some servers. */
const stopTexts = (stop: unknown) => (Array.isArray(stop) && stop.length > 0 ? stop : undefined)
