import type { CallerProtocol } from '../protocols/protocol.ts'
import { ChatEncoder, type ChatEncoderOptions } from './events/chat-encoder.ts'
import { CompletionEncoder } from './events/completion-encoder.ts'
import { MessagesEncoder } from './events/messages-encoder.ts'
import type { EventEncoder } from './model-events.ts'

interface CallerEncoderOptions extends ChatEncoderOptions {
  /** Responses consume the events directly. */
  caller: Exclude<CallerProtocol, 'responses'>
}

/** @returns the encoder of one call's events, streamed or whole, for its caller's protocol. */
export function callerEncoder({ caller, ...options }: CallerEncoderOptions): EventEncoder {
  if (caller === 'messages') return new MessagesEncoder(options.modelId)
  return caller === 'completions' ? new CompletionEncoder(options) : new ChatEncoder(options)
}
