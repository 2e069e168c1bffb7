import type Anthropic from '@anthropic-ai/sdk'
import { betaZodTool } from '@anthropic-ai/sdk/helpers/beta/zod'
import { zodOutputFormat } from '@anthropic-ai/sdk/helpers/zod'
import { beforeAll, describe, expect, it } from 'vitest'
import * as z from 'zod'
import { gateway } from '../harness/gateway.ts'
import { auditEntryOf, callEntries } from '../harness/records.ts'
import {
  anthropicClients,
  CHAT_MODEL,
  collect,
  failureOf,
  messageRequest,
  newestAnthropic,
  SCRIPTED_TEXT,
  textOf,
} from '../harness/sdk-clients.ts'
import { createTenant, type Tenant } from '../harness/tenant.ts'
import { marker, seenRequest, seenRequests } from '../harness/upstream.ts'
import { MODEL_OF } from './support/sdk-calls.ts'
import { PICTURE, translatedRequest, translatedRequests } from './support/translated-request.ts'

// The Anthropic SDKs on models of both protocols.

let tenant: Tenant
beforeAll(async () => {
  tenant = await createTenant(gateway())
})

const weather: Anthropic.Tool = {
  name: 'get_weather',
  input_schema: { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] },
}
const clock: Anthropic.Tool = { name: 'get_time', input_schema: { type: 'object' } }

const requestTo = (model: string, content: Anthropic.MessageParam['content']) => ({
  ...messageRequest(content),
  model,
})

const SDKS = anthropicClients.flatMap(([version, Client]) =>
  (['messages', 'chat'] as const).map((dialect) => ({
    name: `${version} on a ${dialect} model`,
    Client,
    dialect,
    newest: Client === newestAnthropic,
  })),
)

describe.each(SDKS)('$name', ({ name, Client, dialect, newest }) => {
  const connect = (apiKey = tenant.key): Anthropic =>
    new Client({ apiKey, baseURL: gateway().baseUrl, maxRetries: 0 })
  const connectByToken = (): Anthropic =>
    new Client({ apiKey: null, authToken: tenant.key, baseURL: gateway().baseUrl, maxRetries: 0 })
  const model = MODEL_OF[dialect]
  const request = (content: Anthropic.MessageParam['content']) => requestTo(model, content)

  const ways: Array<[string, () => Anthropic]> = [
    ['x-api-key', () => connect()],
    ['a bearer token', connectByToken],
  ]
  it.each(dialect === 'messages' ? ways : ways.slice(0, 1))(
    'creates and streams with %s',
    async (_way, open) => {
      const whole = await open().messages.create(request('good morning'))
      expect(textOf(whole)).toContain('"good morning"')
      expect(whole).toMatchObject({ type: 'message', role: 'assistant', model })
      expect(whole).toMatchObject({ stop_reason: 'end_turn', stop_sequence: null })
      expect(whole.id).toMatch(/^msg_/)
      const events = await collect(await open().messages.create({ ...request('good morning'), stream: true }))
      const text = events.map((event) =>
        event.type === 'content_block_delta' && event.delta.type === 'text_delta' ? event.delta.text : '',
      )
      expect(text.join('')).toBe(textOf(whole))
      expect(text.filter((delta) => delta !== '').length).toBeGreaterThan(10)
      expect(events.at(-1)?.type).toBe('message_stop')
    },
  )

  it('satisfies the stream helper: events in order and the final message', async () => {
    const whole = await connect().messages.create(request('stream please'))
    const stream = connect().messages.stream(request('stream please'))
    const deltas: string[] = []
    const blocks: string[] = []
    stream.on('text', (delta) => deltas.push(delta)).on('contentBlock', ({ type }) => blocks.push(type))
    const types = (await collect(stream)).map(({ type }) => type)
    const message = await stream.finalMessage()
    expect(message).toMatchObject({ content: whole.content, stop_reason: 'end_turn' })
    const { input_tokens: input, output_tokens: output } = whole.usage
    expect(message.usage).toMatchObject({ input_tokens: input, output_tokens: output })
    if (dialect === 'messages') expect(message.usage).toEqual(whole.usage)
    expect(Math.min(input, output)).toBeGreaterThan(0)
    expect(deltas.join('')).toBe(textOf(whole))
    expect(blocks).toEqual(['text'])
    expect(types.slice(0, 2)).toEqual(['message_start', 'content_block_start'])
    expect(types.slice(-3)).toEqual(['content_block_stop', 'message_delta', 'message_stop'])
  })

  const scripts = ['canned', 'no-done', 'split-frames', 'crlf', 'unknown-fields', 'usage-on-last-chunk']
  it.each(newest ? scripts : ['no-done'])('streams %s to its end through the helper', async (script) => {
    const message = await connect()
      .messages.stream(request(`script:${script}`))
      .finalMessage()
    expect(textOf(message)).toBe(SCRIPTED_TEXT)
    expect(message.usage).toMatchObject({ input_tokens: 12, output_tokens: expect.any(Number) })
  })

  it('calls parallel tools and answers their results in one turn', async () => {
    const text = `call every tool, ${marker()}`
    const withTools = { ...request(text), tools: [weather, clock] }
    const called = await connect().messages.stream(withTools).finalMessage()
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
      ...withTools,
      messages: [
        ...withTools.messages,
        { role: 'assistant', content: called.content },
        { role: 'user', content: results },
      ],
    })
    expect(textOf(answered)).toContain('"result of get_time"')
    if (dialect === 'messages') return
    const [, second] = await translatedRequests(gateway(), 'chat', text)
    const ids = results.map((result) => result.tool_use_id)
    expect(second?.body.messages).toMatchObject([
      { role: 'user' },
      { role: 'assistant', tool_calls: ids.map((id) => ({ id, type: 'function' })) },
      { role: 'tool', tool_call_id: ids[0], content: 'result of get_weather' },
      { role: 'tool', tool_call_id: ids[1], content: 'result of get_time' },
    ])
  })

  it.each([true, false])(
    'runs parallel tools to the end without message threads (stream: %s)',
    async (stream) => {
      const text = `call every tool, ${marker()}`
      const ran: unknown[] = []
      const alone = await createTenant(gateway())
      const runner = connect(alone.key).beta.messages.toolRunner({
        ...request(text),
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
      const bodies = (await translatedRequests(gateway(), dialect, text)).map(({ body }) => body)
      const roles = bodies.map(({ messages }) => (messages as { role: string }[]).map(({ role }) => role))
      const results = dialect === 'chat' ? ['tool', 'tool'] : ['user']
      expect(roles).toEqual([['user'], ['user', 'assistant', ...results]])
      expect(bodies.some((body) => 'thread' in body)).toBe(false)
      // 1.x asks for a thread first and goes on without one after the refusal; 0.x knows no threads.
      const refused = name.includes('1.11') ? [400] : []
      const calls = await callEntries(gateway(), alone, 2 + refused.length)
      expect(calls.map(({ status }) => status).sort()).toEqual([200, 200, ...refused])
    },
  )

  const parsing = dialect === 'chat' ? ['scripted-chat', 'scripted-chat-large'] : ['scripted-messages']
  it.each(parsing)('parses structured output of %s', async (parsingModel) => {
    const schema = z.object({ city: z.string(), degrees: z.number(), tags: z.array(z.string()) })
    const output_config = { format: zodOutputFormat(schema) }
    const structured = { ...requestTo(parsingModel, 'as JSON'), output_config }
    const parsed = await connect().messages.parse(structured)
    expect(schema.safeParse(parsed.parsed_output).success).toBe(true)
    const streamed = await connect().messages.stream(structured).finalMessage()
    expect(textOf(streamed)).toBe(textOf(parsed))
  })

  // The following depends on the gateway and not on the version of the client.
  if (!newest) return

  it('gets the request id that the audit has, on whole answers and on streams', async () => {
    const call = connect().messages.create(request('who are you'))
    const { data, response, request_id: requestId } = await call.withResponse()
    expect(requestId).toMatch(/^req_/)
    expect(data).toHaveProperty('_request_id', requestId)
    expect(response.headers.get('x-request-id')).toBe(requestId)
    const stream = connect().messages.stream(request('and streamed'))
    await stream.finalMessage()
    expect(stream.request_id).toMatch(/^req_/)
    for (const id of [requestId, stream.request_id]) {
      expect(await auditEntryOf(gateway(), tenant, id)).toMatchObject({ model, status: 200 })
    }
  })
})

describe.each(anthropicClients)('thinking of %s on a messages model', (_, Client) => {
  const connect = (): Anthropic =>
    new Client({ apiKey: tenant.key, baseURL: gateway().baseUrl, maxRetries: 0 })

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
})

describe('the Anthropic SDK', () => {
  const connect = (): Anthropic =>
    new newestAnthropic({ apiKey: tenant.key, baseURL: gateway().baseUrl, maxRetries: 0 })

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
})

describe('the Anthropic SDK on a chat model', () => {
  const connect = (): Anthropic =>
    new newestAnthropic({ apiKey: tenant.key, baseURL: gateway().baseUrl, maxRetries: 0 })
  const requestOf = (content: Anthropic.MessageParam['content'], model = CHAT_MODEL) =>
    requestTo(model, content)

  it('says instructions, pictures and choices in the words of chat completions', async () => {
    const text = marker()
    const picture: Anthropic.ImageBlockParam = {
      type: 'image',
      source: { type: 'base64', media_type: 'image/png', data: PICTURE },
    }
    await connect().messages.create({
      ...requestOf([
        { type: 'text', text, cache_control: { type: 'ephemeral' } },
        picture,
        { type: 'image', source: { type: 'url', url: 'https://example.com/picture.png' } },
      ]),
      system: [
        { type: 'text', text: 'Be brief.', cache_control: { type: 'ephemeral' } },
        { type: 'text', text: 'Be kind.' },
      ],
      tools: [weather],
      tool_choice: { type: 'any', disable_parallel_tool_use: true },
      stop_sequences: ['never said'],
      // Other clients still send what this SDK's types no longer have.
      ...{ temperature: 0.5, top_k: 5 },
    })
    const { body } = await translatedRequest(gateway(), 'chat', text)
    expect(body).toMatchObject({
      model: CHAT_MODEL,
      max_tokens: 2000,
      stop: ['never said'],
      temperature: 0.5,
      tool_choice: 'required',
      parallel_tool_calls: false,
      tools: [{ type: 'function', function: { name: 'get_weather', parameters: weather.input_schema } }],
    })
    expect(body.messages).toEqual([
      { role: 'system', content: 'Be brief.\n\nBe kind.' },
      {
        role: 'user',
        content: [
          { type: 'text', text },
          { type: 'image_url', image_url: { url: `data:image/png;base64,${PICTURE}` } },
          { type: 'image_url', image_url: { url: 'https://example.com/picture.png' } },
        ],
      },
    ])
    expect(JSON.stringify(body)).not.toMatch(/cache_control|top_k/)
  })

  it.each([
    ['its last token', { max_tokens: 3 }, 'max_tokens'],
    // Chat completions do not tell whether, and which, sequence ended an answer.
    ['a stop sequence', { stop_sequences: ['said'] }, 'end_turn'],
  ])('ends at %s', async (_what, more, reason) => {
    const whole = await connect().messages.create(requestOf('go on'))
    const request = { ...requestOf('go on'), ...more }
    const cut = await connect().messages.stream(request).finalMessage()
    expect(cut).toMatchObject({ stop_reason: reason, stop_sequence: null })
    expect(await connect().messages.create(request)).toMatchObject({
      stop_reason: reason,
      content: cut.content,
    })
    expect(textOf(whole).startsWith(textOf(cut))).toBe(true)
    expect(textOf(cut).length).toBeLessThan(textOf(whole).length)
  })

  it('tells a refusal', async () => {
    const streamed = await connect().messages.stream(requestOf('script:refusal')).finalMessage()
    expect(streamed).toMatchObject({ stop_reason: 'refusal', content: [{ type: 'text', text: 'No.' }] })
  })

  it('is refused by the name of an unsupported member, before any request upstream', async () => {
    const text = marker()
    const search: Anthropic.WebSearchTool20250305 = { type: 'web_search_20250305', name: 'web_search' }
    const request = requestOf(text)
    const prefilled = [...request.messages, { role: 'assistant' as const, content: 'Once' }]
    for (const [more, said] of [
      [{ tools: [search] }, 'web_search_20250305'],
      [{ messages: prefilled }, 'prefill'],
    ] as const) {
      const asked = { ...request, ...more } as Anthropic.MessageCreateParamsNonStreaming
      const error = await failureOf(connect().messages.create(asked))
      expect(error).toBeInstanceOf(newestAnthropic.BadRequestError)
      expect(error).toMatchObject({ status: 400, type: 'invalid_request_error' })
      expect(String(error.message)).toContain(said)
    }
    expect(await seenRequests(gateway(), text)).toEqual([])
  })

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
