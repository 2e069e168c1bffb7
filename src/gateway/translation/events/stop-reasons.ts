import type { StopReason } from '../model-events.ts'

/** https://platform.openai.com/docs/api-reference/chat/object, and reasons of other makers. */
const FROM_CHAT = new Map<string, StopReason>([
  ['stop', 'end'],
  ['length', 'length'],
  ['tool_calls', 'tool_calls'],
  ['function_call', 'tool_calls'],
  ['content_filter', 'refusal'],
  // Together, Fireworks
  ['eos', 'end'],
  // Mistral
  ['model_length', 'context_window'],
  // Mistral and OpenRouter, DeepSeek: what was generated until a failure. It is incomplete, not ended.
  ['error', 'length'],
  ['insufficient_system_resource', 'length'],
])

const TO_CHAT: Record<StopReason, string> = {
  end: 'stop',
  stop_sequence: 'stop',
  length: 'length',
  context_window: 'length',
  tool_calls: 'tool_calls',
  refusal: 'content_filter',
}

/** https://docs.anthropic.com/en/api/handling-stop-reasons */
const FROM_MESSAGES = new Map<string, StopReason>([
  ['end_turn', 'end'],
  ['stop_sequence', 'stop_sequence'],
  ['max_tokens', 'length'],
  ['model_context_window_exceeded', 'context_window'],
  ['tool_use', 'tool_calls'],
  ['refusal', 'refusal'],
  // The provider paused its own tool loop; other protocols have no reason for that, and the caller may continue the
  // turn.
  ['pause_turn', 'length'],
])

const TO_MESSAGES: Record<StopReason, string> = {
  end: 'end_turn',
  stop_sequence: 'stop_sequence',
  length: 'max_tokens',
  context_window: 'model_context_window_exceeded',
  tool_calls: 'tool_use',
  refusal: 'refusal',
}

/** Legacy completions have three reasons, and no tools. */
const TO_COMPLETIONS: Record<StopReason, string> = { ...TO_CHAT, tool_calls: 'stop' }

/** @param reason a `finish_reason`. An unknown reason counts as an ordinary end. */
export const stopReasonOfChat = (reason: string): StopReason => FROM_CHAT.get(reason) ?? 'end'
/** @param reason a `stop_reason`. An unknown reason counts as an ordinary end. */
export const stopReasonOfMessages = (reason: string): StopReason => FROM_MESSAGES.get(reason) ?? 'end'

export const chatFinishReason = (reason: StopReason): string => TO_CHAT[reason]
export const messagesStopReason = (reason: StopReason): string => TO_MESSAGES[reason]
export const completionFinishReason = (reason: StopReason): string => TO_COMPLETIONS[reason]
