import { describe, expect, it } from 'vitest'
import { post, useUpstream } from './model-upstream-harness.ts'
import { asking, fn, heard, type Json, refusalOf, text } from './model-upstream-requests.ts'

useUpstream()

describe('the token counter of the responses protocol', () => {
  const count = (body: Json) =>
    post('/v1/responses/input_tokens', '', { messages: undefined, max_tokens: undefined, ...body })
  const input = [
    { role: 'user', content: [{ type: 'input_text', text: 'how many?' }] },
    { type: 'function_call', call_id: 'a', name: 'f', arguments: '{}' },
    { type: 'function_call_output', call_id: 'a', output: '1' },
    { role: 'assistant', content: [{ type: 'output_text', text: 'so many' }] },
  ]
  const tools = [{ type: 'function', name: 'f', parameters: { type: 'object' }, strict: false }]

  it('counts input, instructions and tools', async () => {
    const counted = async (body: Json) => {
      const answer = (await (await count({ model: 'scripted-chat', ...body })).json()) as Json
      expect(answer.object).toBe('response.input_tokens')
      return Number(answer.input_tokens)
    }
    const bare = await counted({ input })
    expect(bare).toBeGreaterThan(10)
    expect(await counted({ input, tools, instructions: 'be brief' })).toBeGreaterThan(bare)
    expect(await counted({ input: 'x'.repeat(400) })).toBe(100)
  })

  it.each<[string, Json]>([
    ["Unknown parameter: 'messages'", { messages: [asking] }],
    ["Invalid value: 'text'", { input: [heard(text('x'))] }],
    ["Missing required parameter: 'tools[0].name'", { input, tools: [fn()] }],
    [
      "Missing required parameter: 'input[0].call_id'",
      { input: [{ type: 'function_call', id: 'a', name: 'f', arguments: '' }] },
    ],
    ["Invalid value: 'tool'", { input: [{ role: 'tool', content: 'x' }] }],
    ["Missing required parameter: 'model'", { model: undefined }],
  ])('refuses with "%s"', async (reason, body) => {
    expect((await refusalOf(await count({ model: 'scripted-chat', ...body }))).message).toContain(reason)
  })

  it('is missing where a server has none, and fails as told', async () => {
    expect((await count({ model: 'scripted-chat-plain', input: 'x' })).status).toBe(404)
    expect((await count({ model: 'scripted-chat-large', input: 'x' })).status).toBe(200)
    expect((await count({ model: 'scripted-chat', input: 'script:error-429' })).status).toBe(429)
    expect((await count({ model: 'scripted-chat', input: 'script:thinking' })).status).toBe(200)
  })
})
