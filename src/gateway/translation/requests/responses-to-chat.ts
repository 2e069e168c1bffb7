import { type Json, present } from '../../protocols/json.ts'
import { can, type TargetModel } from '../target-model.ts'
import { droppedMembers } from './member-rules.ts'
import { mayCallTools, reasonsBeside } from './messages-tools.ts'
import { type ConvertedRequest, chatOutputFormat } from './output-format.ts'
import { samplingFor } from './reasoning.ts'
import { chatMessagesOfSteps } from './responses-chat-messages.ts'
import { conversationOfResponses } from './responses-conversation.ts'
import { RESPONSES_MEMBERS } from './responses-members.ts'
import { type ResponsesSettings, settingsOfResponses } from './responses-settings.ts'
import { type OwnDefinitions, ResponsesTools } from './responses-tools.ts'

/**
 * A turn of the responses protocol as a chat completion request. `RESPONSES_ITEMS` has the treatment of each item,
 * `RESPONSES_MEMBERS` that of each member.
 * @param own tools of this service that are left out of the request.
 * @throws ApiError invalid_request naming the member or item that is invalid or has no equivalent.
 */
export function responsesToChat(
  request: Json,
  target: TargetModel,
  own: OwnDefinitions | null = null,
): ConvertedRequest {
  const settings = settingsOfResponses(request)
  const offered = new ResponsesTools(request.tools, own)
  const tools = offered.asFunctions()
  const tool_choice = offered.choice(request.tool_choice)
  const { format, instruction } = chatOutputFormat(settings.format, target, {
    mayCallTools: mayCallTools({ tools, tool_choice }),
    instructs: true,
  })
  const { maxTokens, stream } = settings
  const body = present({
    ...unknownMembers(request),
    model: target.upstreamModel,
    messages: chatMessagesOfSteps(conversationOfResponses(request, offered), instruction, target),
    // Models that reason refuse the older name; some other servers take only that one.
    [can(target, 'reasoning') ? 'max_completion_tokens' : 'max_tokens']:
      maxTokens === undefined ? undefined : Math.min(maxTokens, target.maxOutputTokens),
    stream: stream ? true : undefined,
    stream_options: stream ? { include_usage: true } : undefined,
    ...samplingFor(settings.sampling, target),
    tools,
    tool_choice,
    parallel_tool_calls: offered.parallel(request.parallel_tool_calls),
    reasoning_effort: effort(settings, target, tools),
    response_format: format,
    user: settings.user,
    ...(isOpenAi(target) ? settings.ofOpenAi : {}),
  })
  const dropped = droppedMembers(request, RESPONSES_MEMBERS, body)
  return { body, jsonByInstruction: instruction !== null, dropped }
}

/** Members that the gateway does not know reach chat completions, as in calls of one protocol (interface: Versioning, 4). */
const unknownMembers = (request: Json): Json =>
  Object.fromEntries(Object.entries(request).filter(([name]) => !Object.hasOwn(RESPONSES_MEMBERS, name)))

function effort(settings: ResponsesSettings, target: TargetModel, tools: Json[] | undefined) {
  if (!can(target, 'reasoning')) return undefined
  return reasonsBeside(tools, target) ? settings.effort : 'none'
}

/** Decided by the model's name, because many vendors have this protocol. OpenAI's open models are served by others. */
const isOpenAi = ({ upstreamModel }: TargetModel): boolean =>
  /^(openai\/)?(gpt-(?!oss)|chatgpt-|codex-|o\d)/.test(upstreamModel)
