import { chatCompletions, completions } from './chat-completions.ts'
import { converse } from './converse.ts'
import { generateContent } from './generate-content.ts'
import { countTokens, messages } from './messages.ts'
import type { CallerProtocol, Protocol, UpstreamProtocol } from './protocol.ts'
import { responses } from './responses.ts'

/** The operation that a caller requests of a model, or that it becomes at an upstream: the last two are no caller's. */
export type Operation =
  | 'chat_completions'
  | 'completions'
  | 'messages'
  | 'count_tokens'
  | 'responses'
  | 'generate_content'
  | 'converse'

/** The differences between operations. Code tests a trait, never an operation by name. */
interface OperationTraits {
  protocol: Protocol
  /** The protocols that a call can be translated to, best first. */
  translatesTo: readonly UpstreamProtocol[]
  /** The protocol of translated answers; null when the operation is not translated. */
  caller: CallerProtocol | null
  /** Whether a model is used: tokens are charged, credits reserved, and a prompt cache is warmed. */
  generates: boolean
  /** Whether the gateway answers by itself when no route speaks the operation. */
  answeredWithoutUpstream: boolean
  /** A capability that the model needs, besides a provider with the path; null for none. */
  capability: string | null
  /** Error kind of a model that does not exist (interface: Errors). */
  unknownModel: 'invalid_request' | 'not_found'
  /**
   * Whether every error has the envelope of the surface. Otherwise errors of upstreams are forwarded unchanged (interface:
   * Errors, Chat completions).
   */
  ownErrorEnvelope: boolean
  /** The member of the request that bounds the output, for error messages. */
  outputLimit: string
  /** Whether a translation sets a limit on the output of a request that gives none. */
  translationLimitsOutput: boolean
}

const CHAT: OperationTraits = {
  protocol: chatCompletions,
  translatesTo: ['messages', 'generate_content', 'converse'],
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
    translatesTo: ['chat_completions', 'messages', 'generate_content', 'converse'],
    caller: 'completions',
    // Most providers of chat completions have the path, but serve few models on it.
    capability: 'completions',
    translationLimitsOutput: true,
  },
  messages: {
    ...CHAT,
    protocol: messages,
    translatesTo: ['chat_completions', 'generate_content', 'converse'],
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
    ownErrorEnvelope: true,
  },
  responses: {
    ...CHAT,
    protocol: responses,
    translatesTo: ['messages', 'chat_completions', 'generate_content', 'converse'],
    caller: 'responses',
    ownErrorEnvelope: true,
    outputLimit: 'max_output_tokens',
  },
  generate_content: {
    ...CHAT,
    protocol: generateContent,
    translatesTo: [],
    caller: null,
    ownErrorEnvelope: true,
  },
  converse: {
    ...CHAT,
    protocol: converse,
    translatesTo: [],
    caller: null,
    ownErrorEnvelope: true,
  },
}
