import type OpenAI from 'openai'
import { beforeAll, describe, expect, it } from 'vitest'
import { gateway } from '../harness/gateway.ts'
import { CHAT_MODEL, MESSAGES_MODEL, newestOpenAi, openAiClients, openAiUrl } from '../harness/sdk-clients.ts'
import { createTenant, type Tenant } from '../harness/tenant.ts'

const ANSWER = 'Hello! You said: "hello". This answer comes from the local model, so no provider was called.'
let tenant: Tenant

beforeAll(async () => {
  tenant = await createTenant(gateway())
})

const WEATHER: OpenAI.Responses.FunctionTool = {
  type: 'function',
  name: 'get_weather',
  description: 'The weather in a city.',
  parameters: {
    type: 'object',
    properties: { city: { type: 'string' } },
    required: ['city'],
    additionalProperties: false,
  },
  strict: true,
}

const MODELS = [CHAT_MODEL, MESSAGES_MODEL]

describe.each(openAiClients)('%s', (_name, Client) => {
  const client = () => new Client({ apiKey: tenant.key, baseURL: openAiUrl(), maxRetries: 0 })

  // What a client reads depends on its version and on the model, but not on both.
  describe.each(Client === newestOpenAi ? MODELS : MODELS.slice(0, 1))('on %s', (model) => {
    it('creates a response', async () => {
      const response = await client().responses.create({ model, input: 'hello' })
      expect(response).toMatchObject({ object: 'response', status: 'completed', model, error: null })
      expect(response.output_text).toBe(ANSWER)
      expect(response.usage?.output_tokens).toBeGreaterThan(0)
    })

    it('streams one', async () => {
      const stream = client().responses.stream({ model, input: 'hello' })
      let text = ''
      for await (const event of stream) if (event.type === 'response.output_text.delta') text += event.delta
      expect(text).toBe(ANSWER)
      expect(await stream.finalResponse()).toMatchObject({ status: 'completed', output_text: ANSWER })
    })

    it('continues a conversation after a function call', async () => {
      const first = await client().responses.create({
        model,
        input: 'What is the weather in Paris? Call get_weather.',
        tools: [WEATHER],
        tool_choice: 'required',
      })
      expect(first).toMatchObject({ status: 'incomplete', incomplete_details: { reason: 'tool_use' } })
      const call = first.output.find((item) => item.type === 'function_call')
      if (!call) throw new Error('no call')
      expect(call.name).toBe('get_weather')
      const second = await client().responses.create({
        model,
        conversation: first.conversation?.id ?? '',
        input: [{ type: 'function_call_output', call_id: call.call_id, output: '{"degrees":21}' }],
        tools: [WEATHER],
      })
      expect(second.status).toBe('completed')
      expect(second.conversation?.id).toBe(first.conversation?.id)
      const items = await client().conversations.items.list(first.conversation?.id ?? '', { order: 'asc' })
      expect(items.data.map(({ type }) => type)).toEqual([
        'message',
        'function_call',
        'function_call_output',
        'message',
      ])
    })

    it('resumes one that has ended', async () => {
      const created = await client().responses.create({ model, input: 'hello' })
      const events: OpenAI.Responses.ResponseStreamEvent[] = []
      const stream = await client().responses.retrieve(created.id, { stream: true, starting_after: 3 })
      for await (const event of stream) events.push(event)
      expect(events[0]?.sequence_number).toBe(4)
      expect(events.at(-1)?.type).toBe('response.completed')
    })
  })
})
