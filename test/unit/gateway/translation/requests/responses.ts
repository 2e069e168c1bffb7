import type { Json } from '../../../../../src/gateway/protocols/json.ts'
import { responsesToChat } from '../../../../../src/gateway/translation/requests/responses-to-chat.ts'
import { responsesToMessages } from '../../../../../src/gateway/translation/requests/responses-to-messages.ts'
import type { Capability, TargetModel } from '../../../../../src/gateway/translation/target-model.ts'
import { target } from './requests.ts'

export const FAMILY = 'family-a'
/** A model of a family whose reasoning comes back with a proof of its origin. */
export const ofFamily = (...capabilities: Capability[]): TargetModel => ({
  ...target(...capabilities),
  origin: FAMILY,
})
const BASIC = target('json_schema', 'json_object', 'vision')

const HELLO = [{ type: 'message', role: 'user', content: 'Hello' }]

/** A turn of the responses protocol with these members, as a chat completion request. */
export const toChat = (members: Json, model = BASIC): Json =>
  responsesToChat({ model: 'm', input: HELLO, ...members }, model).body
/** Translates it to a messages request. */
export const toMessages = (members: Json, model = BASIC): Json =>
  responsesToMessages({ model: 'm', input: HELLO, ...members }, model).body

/** Whether the answer is JSON by instruction alone. */
export const instructsJson = (members: Json, model: TargetModel) => ({
  onChat: responsesToChat({ model: 'm', input: HELLO, ...members }, model).jsonByInstruction,
  onMessages: responsesToMessages({ model: 'm', input: HELLO, ...members }, model).jsonByInstruction,
})

export const item = (role: string, content: unknown, more: Json = {}): Json => ({
  type: 'message',
  role,
  content,
  ...more,
})
export const input = (text: string): Json => ({ type: 'input_text', text })
export const output = (text: string): Json => ({ type: 'output_text', text, annotations: [], logprobs: [] })
export const calls = (id: string, name = 'look', args = '{"a":1}', more: Json = {}): Json => ({
  type: 'function_call',
  id: `fc_${id}`,
  call_id: id,
  name,
  arguments: args,
  ...more,
})
export const answers = (id: string, content: unknown = 'found'): Json => ({
  type: 'function_call_output',
  call_id: id,
  output: content,
})
export const reasoning = (text: string, more: Json = { signature: 'sig' }): Json => ({
  type: 'reasoning',
  id: 'rs_1',
  summary: [],
  content: [{ type: 'reasoning_text', text }],
  origin: FAMILY,
  ...more,
})
export const tool = (name: string, more: Json = {}): Json => ({
  type: 'function',
  name,
  description: `Does ${name}.`,
  parameters: { type: 'object', properties: {} },
  ...more,
})
export const IMAGE = { type: 'input_image', image_url: 'https://a.example/b.png', detail: 'auto' }
export const INLINE_IMAGE = { type: 'input_image', image_url: 'data:image/png;base64,AAAA', detail: 'high' }
export const PDF = { type: 'input_file', filename: 'a.pdf', file_data: 'data:application/pdf;base64,AAAA' }
