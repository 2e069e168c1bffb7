import { type Json, present } from '../../protocols/json.ts'
import type { TargetModel } from '../target-model.ts'
import { buildMessagesRequest } from './chat-to-messages.ts'
import { droppedMembers } from './member-rules.ts'
import type { ConvertedRequest } from './output-format.ts'
import { conversationOfResponses } from './responses-conversation.ts'
import { RESPONSES_MEMBERS } from './responses-members.ts'
import { settingsOfResponses } from './responses-settings.ts'
import { type OwnDefinitions, ResponsesTools } from './responses-tools.ts'
import { turnsOfSteps } from './responses-turns.ts'

/**
 * A turn of the responses protocol as a messages request. Its conversation becomes turns directly, so that thinking and
 * images of tool outputs keep their places; all other members are converted by way of chat completions
 * (`CHAT_MEMBERS`).
 * @param own tools of this service that are left out of the request.
 * @throws ApiError invalid_request naming the member or item that is invalid or has no equivalent.
 */
export function responsesToMessages(
  request: Json,
  target: TargetModel,
  own: OwnDefinitions | null = null,
): ConvertedRequest {
  const settings = settingsOfResponses(request)
  const offered = new ResponsesTools(request.tools, own)
  const chat = present({
    max_completion_tokens: settings.maxTokens,
    stream: settings.stream,
    ...settings.sampling,
    tools: offered.asFunctions('messages'),
    tool_choice: offered.choice(request.tool_choice),
    parallel_tool_calls: offered.parallel(request.parallel_tool_calls),
    reasoning_effort: settings.effort,
    // Newer models return no thinking unless it is requested. This does not make them think.
    thinking: settings.summary === undefined ? undefined : { display: 'summarized' },
    response_format: settings.format,
    user: settings.user,
    safety_identifier: settings.safetyIdentifier,
  })
  const conversation = turnsOfSteps(conversationOfResponses(request, offered), target)
  // An answer is an item of its own, so it never continues the text before it.
  const converted = buildMessagesRequest(chat, target, conversation, {
    continuesAnswer: false,
    schemaPlace: 'text.format.schema',
    instructsBesideTools: true,
  })
  return { ...converted, dropped: droppedMembers(request, RESPONSES_MEMBERS, converted.body) }
}
