import type { StopReason } from '../model-events.ts'

const FROM_CHAT: Record<string, StopReason> = {
  stop: 'end',
  length: 'length',
  tool_calls: 'tool_calls',
  function_call: 'tool_calls',
  content_filter: 'refusal',
}

const TO_CHAT: Record<StopReason, string> = {
  end: 'stop',
  stop_sequence: 'stop',
  length: 'length',
  context_window: 'length',
  tool_calls: 'tool_calls',
  refusal: 'content_filter',
  pause: 'stop',
}

const FROM_MESSAGES: Record<string, StopReason> = {
  end_turn: 'end',
  stop_sequence: 'stop_sequence',
  max_tokens: 'length',
  model_context_window_exceeded: 'context_window',
  tool_use: 'tool_calls',
  refusal: 'refusal',
  pause_turn: 'pause',
}

const TO_MESSAGES: Record<StopReason, string> = {
  end: 'end_turn',
  stop_sequence: 'stop_sequence',
  length: 'max_tokens',
  context_window: 'model_context_window_exceeded',
  tool_calls: 'tool_use',
  refusal: 'refusal',
  pause: 'pause_turn',
}

/** Reasons that a vendor adds later read as an ordinary end. */
export const stopReasonOfChat = (reason: string): StopReason => FROM_CHAT[reason] ?? 'end'
export const chatFinishReason = (reason: StopReason): string => TO_CHAT[reason]
export const stopReasonOfMessages = (reason: string): StopReason => FROM_MESSAGES[reason] ?? 'end'
export const messagesStopReason = (reason: StopReason): string => TO_MESSAGES[reason]
