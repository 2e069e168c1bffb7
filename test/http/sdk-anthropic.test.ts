import type Anthropic from '@anthropic-ai/sdk'
import { betaZodTool } from '@anthropic-ai/sdk/helpers/beta/zod'
import { zodOutputFormat } from '@anthropic-ai/sdk/helpers/zod'
import { beforeAll, describe, expect, it } from 'vitest'
import * as z from 'zod'
import { gateway } from '../harness/gateway.ts'
import { auditEntryOf, callEntries } from '../harness/records.ts'
import {
  anthropicClients,
  collect,
  MESSAGES_MODEL,
  messageRequest,
  newestAnthropic,
  SCRIPTED_TEXT,
  textOf,
} from '../harness/sdk-clients.ts'
import { createTenant, type Tenant } from '../harness/tenant.ts'
import { marker, seenRequest, seenRequests } from '../harness/upstream.ts'

let tenant: Tenant
beforeAll(async () => {
  tenant = await createTenant(gateway())
})

const weather: Anthropic.Tool = {
  name: 'get_weather',
  input_schema: { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] },
}
const clock: Anthropic.Tool = { name: 'get_time', input_schema: { type: 'object' } }

describe.each(anthropicClients)('%s', (name, Client) => {
  const connect = (): Anthropic =>
    new Client({ apiKey: tenant.key, baseURL: gateway().baseUrl, maxRetries: 0 })
  const connectByToken = (): Anthropic =>
    new Client({ apiKey: null, authToken: tenant.key, baseURL: gateway().baseUrl, maxRetries: 0 })

  it.each([
    ['x-api-key', connect],
    ['a bearer token', connectByToken],
  ])('creates and streams with %s', async (_way, open) => {
    const whole = await open().messages.create(messageRequest('good morning'))
    expect(textOf(whole)).toContain('"good morning"')
    expect(whole).toMatchObject({ type: 'message', role: 'assistant', model: MESSAGES_MODEL })
    expect(whole).toMatchObject({ stop_reason: 'end_turn', stop_sequence: null })
    const events = await collect(
      await open().messages.create({ ...messageRequest('good morning'), stream: true }),
    )
    const text = events.map((event) =>
      event.type === 'content_block_delta' && event.delta.type === 'text_delta' ? event.delta.text : '',
    )
    expect(text.join('')).toBe(textOf(whole))
    expect(events.at(-1)?.type).toBe('message_stop')
  })

  it('satisfies the stream helper: events in order and the final message', async () => {
    const whole = await connect().messages.create(messageRequest('stream please'))
    const stream = connect().messages.stream(messageRequest('stream please'))
    const deltas: string[] = []
    const blocks: string[] = []
    stream.on('text', (delta) => deltas.push(delta)).on('contentBlock', ({ type }) => blocks.push(type))
    const types = (await collect(stream)).map(({ type }) => type)
    const message = await stream.finalMessage()
    expect(message).toMatchObject({ content: whole.content, usage: whole.usage, stop_reason: 'end_turn' })
    expect(deltas.join('')).toBe(textOf(whole))
    expect(blocks).toEqual(['text'])
    expect(types.slice(0, 2)).toEqual(['message_start', 'content_block_start'])
    expect(types.slice(-3)).toEqual(['content_block_stop', 'message_delta', 'message_stop'])
  })

  const scripts = ['canned', 'no-done', 'split-frames', 'crlf', 'unknown-fields', 'usage-on-last-chunk']
  it.each(Client === newestAnthropic ? scripts : ['no-done'])(
    'streams %s to its end through the helper',
    async (script) => {
      const message = await connect()
        .messages.stream(messageRequest(`script:${script}`))
        .finalMessage()
      expect(textOf(message)).toBe(SCRIPTED_TEXT)
      expect(message.usage).toMatchObject({ input_tokens: 12, output_tokens: expect.any(Number) })
    },
  )

  it('calls parallel tools and answers their results in one turn', async () => {
    const request = { ...messageRequest('call every tool'), tools: [weather, clock] }
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
  })

  it.each([true, false])(
    'runs parallel tools to the end without message threads (stream: %s)',
    async (stream) => {
      const text = `call every tool, ${marker()}`
      const ran: unknown[] = []
      const alone = await createTenant(gateway())
      const client: Anthropic = new Client({ apiKey: alone.key, baseURL: gateway().baseUrl, maxRetries: 0 })
      const runner = client.beta.messages.toolRunner({
        ...messageRequest(text),
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
      const bodies = (await seenRequests(gateway(), text)).map(({ body }) => JSON.parse(body))
      expect(bodies.map(({ messages }) => messages.length)).toEqual([1, 3])
      expect(bodies.some((body) => 'thread' in body)).toBe(false)
      // 1.x asks for a thread first and goes on without one after the refusal; 0.x knows no threads.
      const refused = name.includes('1.11') ? [400] : []
      const calls = await callEntries(gateway(), alone, 2 + refused.length)
      expect(calls.map(({ status }) => status).sort()).toEqual([200, 200, ...refused])
    },
  )

  it('parses structured output', async () => {
    const schema = z.object({ city: z.string(), degrees: z.number(), tags: z.array(z.string()) })
    const request = { ...messageRequest('as JSON'), output_config: { format: zodOutputFormat(schema) } }
    const parsed = await connect().messages.parse(request)
    expect(schema.safeParse(parsed.parsed_output).success).toBe(true)
    const streamed = await connect().messages.stream(request).finalMessage()
    expect(textOf(streamed)).toBe(textOf(parsed))
  })

  it('keeps a signed thought byte for byte over two turns', async () => {
    const text = marker()
    const request = {
      ...messageRequest(`think about ${text}`),
      thinking: { type: 'enabled' as const, budget_tokens: 1024 },
    }
    const first = await connect().messages.stream(request).finalMessage()
    const whole = await connect().messages.create(request)
    expect(first.content.map(({ type }) => type)).toEqual(['thinking', 'text'])
    expect(first.content).toEqual(whole.content)
    expect(first.usage.output_tokens_details?.thinking_tokens).toBeGreaterThan(0)
    const second = marker()
    await connect().messages.create({
      ...request,
      messages: [
        ...request.messages,
        { role: 'assistant', content: first.content },
        { role: 'user', content: second },
      ],
    })
    const { body } = await seenRequest(gateway(), second)
    expect(body).toContain(JSON.stringify(first.content[0]))
  })

  it('keeps a thought that is only a signature', async () => {
    const thinking = { type: 'adaptive' as const, display: 'omitted' as const }
    const message = await connect()
      .messages.stream({ ...messageRequest('think'), thinking })
      .finalMessage()
    expect(message.content[0]).toMatchObject({ type: 'thinking', thinking: '' })
    expect(message.content[0]?.type === 'thinking' && message.content[0].signature.length > 20).toBe(true)
  })

  // What follows is the gateway's doing and not the client's, so one version stands for both.
  if (Client !== newestAnthropic) return

  it('counts the tokens that the message then reports, and is not charged for it', async () => {
    const { max_tokens: _, ...counted } = {
      ...messageRequest('count these words'),
      system: 'be brief',
      tools: [weather],
    }
    const { data, request_id: requestId } = await connect().messages.countTokens(counted).withResponse()
    const message = await connect().messages.create({ ...counted, max_tokens: 100 })
    expect(data.input_tokens).toBe(message.usage.input_tokens)
    expect(await auditEntryOf(gateway(), tenant, requestId)).toMatchObject({
      status: 200,
      credits_settled: 0,
    })
  })

  it('lists the models it may use', async () => {
    // Other tests add models to the shared catalogue.
    const models = await collect(connect().models.list())
    expect(models.map(({ id }) => id)).toEqual(expect.arrayContaining(gateway().models))
    const [model] = models
    expect(model).toMatchObject({ type: 'model', display_name: model?.id })
    expect(Date.parse(model?.created_at ?? '')).toBeGreaterThan(0)
    expect(await connect().models.retrieve(model?.id ?? '')).toEqual(model)
  })

  it('tells the request id that stands in the audit, on whole answers and on streams', async () => {
    const {
      data,
      response,
      request_id: requestId,
    } = await connect().messages.create(messageRequest('who are you')).withResponse()
    expect(requestId).toMatch(/^req_/)
    expect(data).toHaveProperty('_request_id', requestId)
    expect(response.headers.get('x-request-id')).toBe(requestId)
    const stream = connect().messages.stream(messageRequest('and streamed'))
    await stream.finalMessage()
    expect(stream.request_id).toMatch(/^req_/)
    for (const id of [requestId, stream.request_id]) {
      expect(await auditEntryOf(gateway(), tenant, id)).toMatchObject({ model: MESSAGES_MODEL, status: 200 })
    }
  })
})
