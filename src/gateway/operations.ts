import { chatCompletions, completions } from './protocols/chat-completions.ts'
import { countTokens, messages } from './protocols/messages.ts'
import type { Protocol } from './protocols/protocol.ts'
import { responses } from './protocols/responses.ts'
import type { CallerProtocol, UpstreamProtocol } from './translation/translated-call.ts'

/** What a caller asks of a model. */
export type Operation = 'chat_completions' | 'completions' | 'messages' | 'count_tokens' | 'responses'

/** What distinguishes an operation from the others. Code asks for a trait, never for an operation by name. */
export interface OperationTraits {
  protocol: Protocol
  /** What a call can be translated into, best first. */
  translatesTo: readonly UpstreamProtocol[]
  /** The protocol that translations answer it in; null when it is not translated. */
  caller: CallerProtocol | null
  /** Whether a model is used: tokens are charged, credits reserved, and a prompt cache is warmed. */
  generates: boolean
  /** Whether the gateway answers by itself when no route speaks the operation. */
  answeredWithoutUpstream: boolean
  /** A capability that a model needs, besides a provider that has the path; null for none. */
  capability: string | null
  /** Error kind of a model that does not exist (interface: Errors). */
  unknownModel: 'invalid_request' | 'not_found'
  /** Whether errors of an upstream of another protocol are put into the caller's envelope (interface: Errors). */
  ownErrorEnvelope: boolean
  /** The member of the request that bounds the output, as messages to the caller name it. */
  outputLimit: string
  /** Whether a translation bounds the output of a request that gives no limit. */
  translationLimitsOutput: boolean
}

const CHAT: OperationTraits = {
  protocol: chatCompletions,
  translatesTo: ['messages'],
  caller: 'chat_completions',
  generates: true,
  answeredWithoutUpstream: false,
  capability: null,
  unknownModel: 'invalid_request',
  ownErrorEnvelope: false,
  outputLimit: 'max_tokens',
  translationLimitsOutput: false,
}

export const OPERATIONS: Readonly<Record<Operation, OperationTraits>> = {
  chat_completions: CHAT,
  completions: {
    ...CHAT,
    protocol: completions,
    translatesTo: ['chat_completions', 'messages'],
    caller: 'completions',
    // Providers of chat completions have the path as a rule, but serve few models on it.
    capability: 'completions',
    translationLimitsOutput: true,
  },
  messages: {
    ...CHAT,
    protocol: messages,
    translatesTo: ['chat_completions'],
    caller: 'messages',
    unknownModel: 'not_found',
    ownErrorEnvelope: true,
  },
  count_tokens: {
    ...CHAT,
    protocol: countTokens,
    translatesTo: [],
    caller: null,
    generates: false,
    answeredWithoutUpstream: true,
    unknownModel: 'not_found',
  },
  responses: {
    ...CHAT,
    protocol: responses,
    translatesTo: ['messages', 'chat_completions'],
    caller: 'responses',
    outputLimit: 'max_output_tokens',
  },
}
