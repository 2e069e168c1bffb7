import { isPresent, type Json } from '../../protocols/json.ts'
import type { CallerProtocol } from '../../protocols/protocol.ts'
import { can, type TargetModel } from '../target-model.ts'
import { CHAT_TO_CANONICAL, MESSAGES_TO_CANONICAL, RESPONSES_TO_CANONICAL } from './canonical-members.ts'
import { canonicalOfChat } from './canonical-of-chat.ts'
import { canonicalOfMessages } from './canonical-of-messages.ts'
import { canonicalOfResponses } from './canonical-of-responses.ts'
import type { CanonicalRequest, ExpressedFields } from './canonical-request.ts'
import { COMPLETION_MEMBERS } from './completion-members.ts'
import { completionToChat, defaultCompletionTokens } from './completions-to-chat.ts'
import { droppedMembers } from './member-rules.ts'
import type { ConvertedRequest } from './output-format.ts'
import type { OwnDefinitions } from './responses-tools.ts'

/** A request in the protocol of an upstream. */
export interface WrittenRequest extends Omit<ConvertedRequest, 'dropped'> {
  expressed: ExpressedFields
}

/**
 * Writes a canonical request in the protocol of an upstream.
 * @param instructsBesideTools see `ToolsBeside`. @throws ApiError invalid_request for what it cannot express.
 */
type RequestWriter = (
  request: CanonicalRequest,
  target: TargetModel,
  instructsBesideTools: boolean,
) => WrittenRequest

type CanonicalConverter = (request: Json, target: TargetModel, own: OwnDefinitions | null) => ConvertedRequest

/** Converters of the requests of all callers to the protocol of one writer. */
export const canonicalConverters = (write: RequestWriter): Record<CallerProtocol, CanonicalConverter> => ({
  chat_completions(request, target) {
    const { expressed, ...converted } = write(canonicalOfChat(request, target), target, false)
    return { ...converted, dropped: droppedMembers(request, CHAT_TO_CANONICAL, expressed) }
  },
  /** A completion is plain text, so the model reasons as little as it can. */
  completions(request, target) {
    const chat = completionMembers(request, target)
    const { expressed, ...converted } = write(canonicalOfChat(chat, target), target, false)
    const dropped = [
      ...droppedMembers(request, COMPLETION_MEMBERS, chat),
      ...droppedMembers(chat, CHAT_TO_CANONICAL, expressed),
    ].filter((name) => isPresent(request[name]))
    return { ...converted, dropped: [...new Set(dropped)] }
  },
  messages(request, target) {
    const { expressed, ...converted } = write(canonicalOfMessages(request, target), target, false)
    return { ...converted, dropped: droppedMembers(request, MESSAGES_TO_CANONICAL, expressed) }
  },
  responses(request, target, own) {
    const { expressed, ...converted } = write(canonicalOfResponses(request, target, own), target, true)
    return { ...converted, dropped: droppedMembers(request, RESPONSES_TO_CANONICAL, expressed) }
  },
})

function completionMembers(request: Json, target: TargetModel): Json {
  const chat = completionToChat(request)
  if (!can(target, 'reasoning')) return chat
  const maxTokens = request.max_tokens ?? defaultCompletionTokens(target.capabilities)
  return { ...chat, max_tokens: maxTokens, reasoning_effort: 'none' }
}
