import type { Operation } from '../providers/provider.ts'
import { chatCompletions, completions } from './chat-completions.ts'
import { countTokens, messages } from './messages.ts'
import type { Protocol } from './protocol.ts'
import { responses } from './responses.ts'

/** The wire format of each operation. */
export const PROTOCOLS: Record<Operation, Protocol> = {
  chat_completions: chatCompletions,
  completions,
  messages,
  count_tokens: countTokens,
  responses,
}
