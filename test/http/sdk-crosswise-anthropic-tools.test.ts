import type Anthropic from '@anthropic-ai/sdk'
import { betaZodTool } from '@anthropic-ai/sdk/helpers/beta/zod'
import { beforeAll, describe, expect, it } from 'vitest'
import * as z from 'zod'
import { gateway } from '../harness/gateway.ts'
import { callEntries } from '../harness/records.ts'
import {
  anthropicClients,
  CHAT_MODEL,
  messageRequest,
  newestAnthropic,
  textOf,
} from '../harness/sdk-clients.ts'
import { createTenant, type Tenant } from '../harness/tenant.ts'
import { marker } from '../harness/upstream.ts'
import { translatedRequests } from './support/translated-request.ts'

// The Anthropic SDKs on models of chat completions: what holds of tools in sdk-anthropic.test.ts has to hold here.

let tenant: Tenant
beforeAll(async () => {
  tenant = await createTenant(gateway())
})

const weather: Anthropic.Tool = {
  name: 'get_weather',
  input_schema: { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] },
}
const clock: Anthropic.Tool = { name: 'get_time', input_schema: { type: 'object' } }

const requestOf = (content: Anthropic.MessageParam['content'], model = CHAT_MODEL) => ({
  ...messageRequest(content),
  model,
})

describe.each(anthropicClients)('tools of %s on a chat model', (name, Client) => {
  const connect = (): Anthropic =>
    new Client({ apiKey: tenant.key, baseURL: gateway().baseUrl, maxRetries: 0 })

  it('calls parallel tools and answers their results in one turn', async () => {
    const text = `call every tool, ${marker()}`
    const request = { ...requestOf(text), tools: [weather, clock] }
    const called = await connect().messages.stream(request).finalMessage()
    expect(called.stop_reason).toBe('tool_use')
    expect(called.content).toMatchObject([
      { type: 'tool_use', name: 'get_weather', input: { city: 'example' } },
      { type: 'tool_use', name: 'get_time', input: {} },
    ])
    const results = called.content.flatMap((block): Anthropic.ToolResultBlockParam[] =>
      block.type === 'tool_use'
        ? [{ type: 'tool_result', tool_use_id: block.id, content: `result of ${block.name}` }]
        : [],
    )
    const answered = await connect().messages.create({
      ...request,
      messages: [
        ...request.messages,
        { role: 'assistant', content: called.content },
        { role: 'user', content: results },
      ],
    })
    expect(textOf(answered)).toContain('"result of get_time"')
    const [, second] = await translatedRequests(gateway(), 'chat', text)
    const ids = results.map((result) => result.tool_use_id)
    expect(second?.body.messages).toMatchObject([
      { role: 'user' },
      { role: 'assistant', tool_calls: ids.map((id) => ({ id, type: 'function' })) },
      { role: 'tool', tool_call_id: ids[0], content: 'result of get_weather' },
      { role: 'tool', tool_call_id: ids[1], content: 'result of get_time' },
    ])
  })

  // Its fragments alternate between the calls, which blocks of the messages protocol never do.
  // What follows is the gateway's doing and not the client's, so one version stands for both.
  if (Client !== newestAnthropic) return

  it.each(['parallel-tools', 'indexless-tools', 'whole-arguments', 'text-before-tools'])(
    'gets two calls whole out of %s',
    async (script) => {
      const request = { ...requestOf(`script:${script}`), tools: [weather, clock] }
      const whole = await connect().messages.create(request)
      const streamed = await connect().messages.stream(request).finalMessage()
      const inputs = (message: Anthropic.Message) =>
        message.content.flatMap((block) => (block.type === 'tool_use' ? [[block.name, block.input]] : []))
      expect(inputs(whole)).toHaveLength(2)
      expect(inputs(streamed)).toEqual(inputs(whole))
      expect(textOf(streamed)).toBe(textOf(whole))
      expect([whole.stop_reason, streamed.stop_reason]).toEqual(['tool_use', 'tool_use'])
    },
  )

  it.each([true, false])(
    'runs parallel tools to the end without message threads (stream: %s)',
    async (stream) => {
      const text = `call every tool, ${marker()}`
      const ran: unknown[] = []
      const alone = await createTenant(gateway())
      const client: Anthropic = new Client({ apiKey: alone.key, baseURL: gateway().baseUrl, maxRetries: 0 })
      const runner = client.beta.messages.toolRunner({
        ...requestOf(text),
        stream,
        tools: [
          betaZodTool({
            name: 'get_weather',
            description: 'Weather of a city',
            inputSchema: z.object({ city: z.string(), days: z.int().min(3) }),
            run: (input) => {
              ran.push(input)
              return 'sunny and mild'
            },
          }),
          betaZodTool({
            name: 'get_time',
            description: 'Time of day',
            inputSchema: z.object({}),
            run: () => {
              ran.push('time')
              return 'noon sharp'
            },
          }),
        ],
      })
      const message = await runner.runUntilDone()
      expect(message.content).toMatchObject([{ text: expect.stringContaining('"noon sharp"') }])
      expect(ran).toHaveLength(2)
      expect(ran).toEqual(expect.arrayContaining([{ city: 'example', days: 3 }, 'time']))
      const bodies = (await translatedRequests(gateway(), 'chat', text)).map(({ body }) => body)
      const roles = bodies.map(({ messages }) => (messages as { role: string }[]).map(({ role }) => role))
      expect(roles).toEqual([['user'], ['user', 'assistant', 'tool', 'tool']])
      // 1.x asks for a thread first and goes on without one after the refusal; 0.x knows no threads.
      const refused = name.includes('1.11') ? [400] : []
      const calls = await callEntries(gateway(), alone, 2 + refused.length)
      expect(calls.map(({ status }) => status).sort()).toEqual([200, 200, ...refused])
    },
  )

  it('gets reasoning as thinking without a signature, and can send it back', async () => {
    const text = `${marker()} script:thinking-tools`
    const thinking = { type: 'enabled' as const, budget_tokens: 1024 }
    const request = { ...requestOf(text, 'scripted-chat-reasoning'), tools: [weather, clock], thinking }
    const first = await connect().messages.stream(request).finalMessage()
    expect(first.content).toMatchObject([
      { type: 'thinking', thinking: 'First I need the facts.', signature: '' },
      { type: 'text' },
      { type: 'tool_use', name: 'get_weather' },
    ])
    expect((await connect().messages.create(request)).content.map(({ type }) => type)).toEqual([
      'thinking',
      'text',
      'tool_use',
    ])
    const call = first.content.find((block) => block.type === 'tool_use')
    await connect().messages.create({
      ...request,
      messages: [
        ...request.messages,
        { role: 'assistant', content: first.content },
        {
          role: 'user',
          content: [
            { type: 'tool_result', tool_use_id: call?.id ?? '', is_error: true, content: 'no such city' },
          ],
        },
      ],
    })
    const bodies = (await translatedRequests(gateway(), 'chat', text)).map(({ body }) => body)
    expect(bodies.map((body) => body.reasoning_effort)).toEqual(['low', 'low', 'low'])
    expect(bodies[2]?.messages).toMatchObject([
      { role: 'user' },
      { role: 'assistant', tool_calls: [{ id: call?.id }] },
      { role: 'tool', tool_call_id: call?.id, content: expect.stringContaining('no such city') },
    ])
    expect(JSON.stringify(bodies[2])).not.toContain('First I need the facts.')
  })
})
