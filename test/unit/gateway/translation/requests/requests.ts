import type { Json } from '../../../../../src/gateway/protocols/json.ts'
import { chatToMessages } from '../../../../../src/gateway/translation/requests/chat-to-messages.ts'
import { messagesToChat } from '../../../../../src/gateway/translation/requests/messages-to-chat.ts'
import type { Capability, TargetModel } from '../../../../../src/gateway/translation/target-model.ts'

export const target = (...capabilities: Capability[]): TargetModel => ({
  upstreamModel: 'upstream-model',
  maxOutputTokens: 10_000,
  capabilities,
})

const HELLO = [{ role: 'user', content: 'Hello' }]

/** A chat completion request with these members, as a messages request. */
export const fromChat = (members: Json, model = target('json_schema', 'vision')): Json =>
  chatToMessages({ model: 'm', messages: HELLO, ...members }, model).body

/** A messages request with these members, as a chat completion request. */
export const fromMessages = (members: Json, model = target('json_schema', 'vision')): Json =>
  messagesToChat({ model: 'm', max_tokens: 100, messages: HELLO, ...members }, model).body

/** Whether a chat completion request with these members asks a model of the messages protocol for JSON in words. */
export const chatInstructsJson = (members: Json, model: TargetModel): boolean =>
  chatToMessages({ model: 'm', messages: HELLO, ...members }, model).jsonByInstruction
/** Translates a messages request for a chat model. */
export const messagesInstructsJson = (members: Json, model: TargetModel): boolean =>
  messagesToChat({ model: 'm', max_tokens: 100, messages: HELLO, ...members }, model).jsonByInstruction

/** The message of the error with which a request is refused. */
export function refusal(translate: () => unknown): string {
  try {
    translate()
  } catch (error) {
    const { kind, message } = error as { kind?: string; message: string }
    return kind === 'invalid_request' ? message : `not an invalid request: ${message}`
  }
  return 'not refused'
}

export const text = (content: string, more: Json = {}): Json => ({ type: 'text', text: content, ...more })
export const user = (content: unknown): Json => ({ role: 'user', content })
export const assistant = (content: unknown, more: Json = {}): Json => ({
  role: 'assistant',
  content,
  ...more,
})
export const system = (content: unknown): Json => ({ role: 'system', content })
export const toolMessage = (id: string, content: unknown): Json => ({
  role: 'tool',
  tool_call_id: id,
  content,
})
export const call = (id: string, name = 'look', args = '{"a":1}'): Json => ({
  id,
  type: 'function',
  function: { name, arguments: args },
})
export const functionTool = (name: string, more: Json = {}): Json => ({
  type: 'function',
  function: { name, description: `Does ${name}.`, parameters: { type: 'object', properties: {} }, ...more },
})
