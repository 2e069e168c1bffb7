// Pieces of requests to the scripted model upstream.
import { expect } from 'vitest'

export type Json = Record<string, unknown>

export const asking = { role: 'user', content: 'hi' }
export const inUser = (block: Json) => ({ messages: [{ role: 'user', content: [block] }] })

export const use = (id = 'toolu_1', more: Json = {}) => ({
  type: 'tool_use',
  id,
  name: 'f',
  input: {},
  ...more,
})
export const result = (id = 'toolu_1') => ({ type: 'tool_result', tool_use_id: id, content: '1' })
export const said = (...content: Json[]) => ({ role: 'assistant', content })
export const heard = (...content: Json[]) => ({ role: 'user', content })
export const text = (words: string, more: Json = {}) => ({ type: 'text', text: words, ...more })
export const marked = (ttl?: string) =>
  text('x', { cache_control: { type: 'ephemeral', ...(ttl && { ttl }) } })

export const tool = { name: 'f', input_schema: { type: 'object' } }
export const budget = { thinking: { type: 'enabled', budget_tokens: 1024 }, max_tokens: 4000 }
export const format = (schema: Json) => ({ output_config: { format: { type: 'json_schema', schema } } })
export const object = (more: Json = {}) => ({
  type: 'object',
  properties: {},
  additionalProperties: false,
  ...more,
})

export const adaptive = 'scripted-messages-adaptive'
export const budgeted = 'scripted-messages-thinking'

export async function refusalOf(
  response: Response,
): Promise<{ message: string; param?: unknown; code?: unknown }> {
  expect(response.status, await response.clone().text()).toBe(400)
  const { error } = (await response.json()) as { error: { type: string; message: string } }
  expect(error.type).toBe('invalid_request_error')
  return error
}

export const call = (id = 'call_1', more: Json = {}) => ({
  id,
  type: 'function',
  function: { name: 'f', arguments: '{}' },
  ...more,
})
export const calling = (...calls: Json[]) => ({ role: 'assistant', content: null, tool_calls: calls })
export const answered = (id = 'call_1') => ({ role: 'tool', tool_call_id: id, content: '1' })
export const fn = (more: Json = {}) => ({
  type: 'function',
  function: { name: 'f', parameters: { type: 'object', properties: {} }, ...more },
})
export const strict = (schema: Json) => ({
  response_format: { type: 'json_schema', json_schema: { name: 'n', strict: true, schema } },
})
export const reasoning = (more: Json) => ({
  model: 'scripted-chat-reasoning',
  max_tokens: undefined,
  ...more,
})
