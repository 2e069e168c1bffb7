import type OpenAI from 'openai'
import { zodFunction, zodResponseFormat } from 'openai/helpers/zod'
import { beforeAll, describe, expect, it } from 'vitest'
import * as z from 'zod'
import { gateway } from '../harness/gateway.ts'
import { auditEntryOf } from '../harness/records.ts'
import type { Dialect } from '../harness/routed-model.ts'
import {
  CHAT_MODEL,
  collect,
  failureOf,
  MESSAGES_MODEL,
  newestOpenAi,
  openAiClients,
  openAiUrl,
  SCRIPTED_TEXT,
  userMessage,
} from '../harness/sdk-clients.ts'
import { createTenant, type Tenant } from '../harness/tenant.ts'
import { marker, seenRequest, seenRequests } from '../harness/upstream.ts'
import { MODEL_OF } from './support/sdk-calls.ts'
import { PICTURE, translatedRequest, translatedRequests } from './support/translated-request.ts'

// The OpenAI SDKs on models of both protocols.

let tenant: Tenant
beforeAll(async () => {
  tenant = await createTenant(gateway())
})

const requestOf = (content: string, model = CHAT_MODEL) => ({ model, messages: userMessage(content) })

/** The tool calls of the second turn and the ids that its tool results name, in the protocol of the upstream. */
function callsAndResults(dialect: Dialect, messages: Array<Record<string, unknown>>) {
  if (dialect === 'chat') {
    expect(messages.map(({ role }) => role)).toEqual(['user', 'assistant', 'tool', 'tool'])
    const calls = messages[1]?.tool_calls as Array<{ id: string; function: { name: string } }>
    return {
      calls: calls.map(({ id, function: { name } }) => ({ id, name })),
      results: messages.slice(2).map((message) => message.tool_call_id),
    }
  }
  expect(messages.map(({ role }) => role)).toEqual(['user', 'assistant', 'user'])
  const [, called, answered] = messages.map(({ content }) => content as Array<Record<string, unknown>>)
  expect(called?.every(({ type }) => type === 'tool_use')).toBe(true)
  expect(answered?.every(({ type }) => type === 'tool_result')).toBe(true)
  return {
    calls: called?.map(({ id, name }) => ({ id, name })),
    results: answered?.map((block) => block.tool_use_id),
  }
}

const SDKS = openAiClients.flatMap(([version, Client]) =>
  (['chat', 'messages'] as const).map((dialect) => ({
    name: `${version} on a ${dialect} model`,
    Client,
    dialect,
    newest: Client === newestOpenAi,
  })),
)

describe.each(SDKS)('$name', ({ Client, dialect, newest }) => {
  const connect = (baseURL = openAiUrl()): OpenAI =>
    new Client({ apiKey: tenant.key, baseURL, maxRetries: 0 })
  const connectToLlmHost = () => connect(`${gateway().llmUrl}/v1`)
  /** The client with the key in another header than its own. */
  const connectWith = (header: string, baseURL: string): OpenAI =>
    new Client({
      apiKey: 'not-sent',
      baseURL,
      defaultHeaders: { authorization: null, [header]: tenant.key },
      maxRetries: 0,
    })
  const model = MODEL_OF[dialect]
  const request = (content: string) => requestOf(content, model)

  const ways: Array<[string, () => OpenAI]> = [
    ['its own header on the base URL', () => connect()],
    ['x-api-key on the base URL', () => connectWith('x-api-key', openAiUrl())],
    ['its own header on the LLM host', connectToLlmHost],
    ['api-key on the LLM host', () => connectWith('api-key', `${gateway().llmUrl}/v1`)],
  ]
  it.each(newest && dialect === 'chat' ? ways : ways.slice(0, 1))(
    'creates and streams with %s',
    async (_way, open) => {
      const whole = await open().chat.completions.create(request('good morning'))
      const text = whole.choices[0]?.message.content
      expect(text).toContain('"good morning"')
      expect(whole).toMatchObject({ object: 'chat.completion', model })
      expect(whole.choices).toMatchObject([
        { index: 0, finish_reason: 'stop', message: { role: 'assistant', refusal: null } },
      ])
      expect(Math.abs(whole.created - Date.now() / 1000)).toBeLessThan(60)
      expect(whole.usage?.total_tokens).toBeGreaterThan(0)
      const stream = await open().chat.completions.create({ ...request('good morning'), stream: true })
      const chunks = await collect(stream)
      expect(chunks.map((chunk) => chunk.choices[0]?.delta.content ?? '').join('')).toBe(text)
      expect(chunks.length).toBeGreaterThan(10)
      expect(new Set(chunks.map(({ id, created, model }) => `${id} ${created} ${model}`)).size).toBe(1)
      expect(chunks[0]).toMatchObject({ object: 'chat.completion.chunk', model })
    },
  )

  it('satisfies the stream helper: events, snapshot and final completion', async () => {
    const stream = connect().chat.completions.stream({
      ...request('several times'),
      // Models of the messages protocol give one choice, without log probabilities.
      ...(dialect === 'chat' ? { n: 2, logprobs: true } : {}),
      stream_options: { include_usage: true },
    })
    const deltas: string[] = []
    stream.on('content.delta', ({ delta }) => deltas.push(delta))
    const { choices } = await stream.finalChatCompletion()
    expect(choices.map(({ index }) => index)).toEqual(dialect === 'chat' ? [0, 1] : [0])
    for (const { finish_reason: reason, message, logprobs } of choices) {
      expect({ reason, role: message.role }).toEqual({ reason: 'stop', role: 'assistant' })
      expect(message.content).toContain('"several times"')
      if (dialect === 'chat') {
        expect(logprobs?.content?.map(({ token }) => token).join('')).toBe(message.content)
      }
    }
    const lengths = choices.map(({ message }) => message.content?.length ?? 0)
    expect(deltas.join('').length).toBe(lengths.reduce((sum, length) => sum + length, 0))
    expect((await stream.totalUsage()).completion_tokens).toBeGreaterThan(0)
  })

  it.each(newest ? [true, false] : [true])(
    'runs parallel tools and a second turn (stream: %s)',
    async (stream) => {
      const text = `call every tool, ${marker()}`
      const ran: unknown[] = []
      // The SDK makes its tools strict, and strict tools of the messages protocol have no bounds of numbers.
      const days = dialect === 'chat' ? z.int().min(3) : z.int()
      const runner = connect().chat.completions.runTools({
        ...request(text),
        // The overloads of the two forms differ by this literal alone.
        stream: stream as true,
        tools: [
          zodFunction({
            name: 'get_weather',
            parameters: z.object({ city: z.string(), days }),
            function: (input) => {
              ran.push(input)
              return 'sunny and mild'
            },
          }),
          zodFunction({
            name: 'get_time',
            parameters: z.object({}),
            function: () => {
              ran.push('time')
              return 'noon sharp'
            },
          }),
        ],
      })
      expect(await runner.finalContent()).toContain('"noon sharp"')
      expect(ran).toEqual([{ city: 'example', days: dialect === 'chat' ? 3 : expect.any(Number) }, 'time'])
      const [first, second, ...others] = await translatedRequests(gateway(), dialect, text)
      expect(others).toEqual([])
      expect(first?.body.messages).toHaveLength(1)
      const sent = callsAndResults(dialect, second?.body.messages as Array<Record<string, unknown>>)
      expect(sent.calls).toMatchObject([{ name: 'get_weather' }, { name: 'get_time' }])
      expect(sent.results).toEqual(sent.calls?.map(({ id }) => id))
    },
  )

  if (!newest && dialect === 'messages') return

  it('parses structured output, whole and streamed', async () => {
    const schema = z.object({
      city: z.string(),
      days: z.int(),
      tags: z.array(z.enum(['a', 'b'])),
      inner: z.object({ ok: z.boolean() }),
    })
    const structured = { ...request('as JSON'), response_format: zodResponseFormat(schema, 'forecast') }
    const parsed = await connect().chat.completions.parse(structured)
    expect(schema.parse(parsed.choices[0]?.message.parsed).inner.ok).toBe(true)
    const streamed = await connect().chat.completions.stream(structured).finalChatCompletion()
    expect(streamed.choices[0]?.message.parsed).toEqual(parsed.choices[0]?.message.parsed)
  })

  // The following depends on the gateway and not on the version of the client.
  if (!newest) return

  it('gets usage on a stream when it asks for it, at its end only', async () => {
    const whole = await connect().chat.completions.create(request('count me'))
    const stream = await connect().chat.completions.create({
      ...request('count me'),
      stream: true,
      stream_options: { include_usage: true },
    })
    const chunks = await collect(stream)
    expect(chunks.slice(0, -1).some((chunk) => chunk.usage)).toBe(false)
    expect(chunks.at(-1)).toMatchObject({ choices: [], usage: whole.usage })
    const { prompt_tokens: prompt = 0, completion_tokens: completion = 0 } = whole.usage ?? {}
    expect(whole.usage?.total_tokens).toBe(prompt + completion)
    expect(Math.min(prompt, completion)).toBeGreaterThan(0)
  })

  it('sees no usage on a stream that did not ask, though the gateway metered it', async () => {
    const text = marker()
    const { data, request_id: requestId } = await connect()
      .chat.completions.create({ ...request(text), stream: true })
      .withResponse()
    const chunks = await collect(data)
    expect(chunks.some((chunk) => 'usage' in chunk)).toBe(false)
    expect(chunks.every((chunk) => chunk.choices.length === 1)).toBe(true)
    if (dialect === 'chat') {
      expect((await seenRequest(gateway(), text)).body).toContain('"include_usage":true')
    }
    const { record, credits_settled: cost } = await auditEntryOf(gateway(), tenant, requestId)
    expect(record).toMatchObject({ provenance: 'reported', usage: { output: expect.any(Number) } })
    expect(cost).toBeGreaterThan(0)
  })

  const scripts = ['canned', 'no-done', 'split-frames', 'crlf', 'unknown-fields', 'usage-on-last-chunk']
  it.each(scripts)('streams %s to its end through the helper', async (script) => {
    const stream = connect().chat.completions.stream(request(`script:${script}`))
    expect((await stream.finalChatCompletion()).choices[0]?.message.content).toBe(SCRIPTED_TEXT)
  })

  it('gets one JSON object in JSON mode, whole and streamed', async () => {
    // A messages model writes it in a code fence, which the gateway takes away.
    const [content, expected] =
      dialect === 'chat'
        ? ['x as JSON', { answer: 'x as JSON' }]
        : ['script:fenced-json', { answer: 'fenced', count: 3 }]
    const inJson = { ...request(content), response_format: { type: 'json_object' as const } }
    const whole = await connect().chat.completions.create(inJson)
    const streamed = await connect().chat.completions.stream(inJson).finalChatCompletion()
    for (const { choices } of [whole, streamed]) {
      expect(JSON.parse(choices[0]?.message.content ?? '')).toEqual(expected)
    }
  })

  it('streams a refusal apart from content', async () => {
    const stream = connect().chat.completions.stream(request('script:refusal'))
    const [choice] = (await stream.finalChatCompletion()).choices
    expect(choice?.message.refusal).toBe('No.')
    if (dialect === 'messages') expect(choice?.finish_reason).toBe('content_filter')
  })

  it('completes a legacy prompt on the LLM host, whole and streamed', async () => {
    const prompt = dialect === 'chat' ? 'once upon' : ['once upon']
    const legacy = { model, prompt, max_tokens: 4 }
    const whole = await connectToLlmHost().completions.create(legacy)
    expect(whole).toMatchObject({ object: 'text_completion', model })
    expect(whole.choices).toMatchObject([{ index: 0, finish_reason: 'length' }])
    const chunks = await collect(await connectToLlmHost().completions.create({ ...legacy, stream: true }))
    const texts = chunks.flatMap(({ choices }) => choices.map(({ text }) => text))
    expect(texts.join('')).toBe(whole.choices[0]?.text)
    expect(texts.join('')).not.toBe('')
  })

  it('gets the request id that the audit has, on whole answers and on streams', async () => {
    const call = connect().chat.completions.create(request('who are you'))
    const { data, response, request_id: requestId } = await call.withResponse()
    expect(requestId).toMatch(/^req_/)
    expect(response.headers.get('x-request-id')).toBe(requestId)
    expect(response.headers.get('x-upstream-request-id')).toMatch(/^req_/)
    expect(data).toHaveProperty('_request_id', requestId)
    const streamed = connect().chat.completions.create({ ...request('and streamed'), stream: true })
    const raw = await streamed.asResponse()
    expect(raw.headers.get('content-type')).toContain('text/event-stream')
    expect(await raw.text()).toMatch(/data: \[DONE\]\n\n$/)
    for (const id of [requestId, raw.headers.get('x-request-id')]) {
      expect(await auditEntryOf(gateway(), tenant, id)).toMatchObject({ model, status: 200 })
    }
  })
})

describe('the OpenAI SDK', () => {
  const connect = (baseURL = openAiUrl(), apiKey = tenant.key): OpenAI =>
    new newestOpenAi({ apiKey, baseURL, maxRetries: 0 })

  it.each([
    ['the base URL', openAiUrl],
    ['the LLM host', () => `${gateway().llmUrl}/v1`],
  ])('lists the models it may use on %s', async (_host, url) => {
    const models = await collect(connect(url()).models.list())
    // Other tests add models to the shared catalogue.
    expect(models.map(({ id }) => id)).toEqual(expect.arrayContaining(gateway().models))
    expect(models[0]).toMatchObject({ object: 'model', created: expect.any(Number) })
    expect((await connect(url()).models.retrieve(CHAT_MODEL)).id).toBe(CHAT_MODEL)
  })

  it('shows what is wrong with a base URL in its own error', async () => {
    const calls = [
      [gateway().baseUrl, /base URL of the client lacks \/v1/],
      [`${gateway().baseUrl}/v1/v1`, /base URL of the client has \/v1 once too often/],
    ] as const
    for (const [baseURL, message] of calls) {
      const failure = await failureOf(connect(baseURL).chat.completions.create(requestOf('hello')))
      expect(failure).toMatchObject({ status: 404, message: expect.stringMatching(message) })
    }
    const failure = await failureOf(connect(openAiUrl(), `${tenant.key}x`).models.list())
    expect(failure).toMatchObject({ status: 401, message: '401 A valid API key is required.' })
  })
})

describe('the OpenAI SDK on a messages model', () => {
  const connect = (): OpenAI => new newestOpenAi({ apiKey: tenant.key, baseURL: openAiUrl(), maxRetries: 0 })
  const requestTo = (content: string, model = MESSAGES_MODEL) => requestOf(content, model)

  it('tells a call forced by name, and the choice of tools it allows', async () => {
    const text = marker()
    const tools = ['get_weather', 'get_time'].map((name) => ({
      type: 'function' as const,
      function: { name },
    }))
    const called = await connect().chat.completions.create({
      ...requestTo(text),
      tools,
      tool_choice: { type: 'function', function: { name: 'get_time' } },
      parallel_tool_calls: false,
    })
    expect(called.choices[0]?.message.tool_calls).toMatchObject([{ function: { name: 'get_time' } }])
    const { body } = await translatedRequest(gateway(), 'messages', text)
    expect(body.tool_choice).toEqual({ type: 'tool', name: 'get_time', disable_parallel_tool_use: true })
  })

  it('says instructions and pictures in the words of the messages protocol', async () => {
    const text = marker()
    await connect().chat.completions.create({
      model: MESSAGES_MODEL,
      messages: [
        { role: 'system', content: 'Be brief.' },
        { role: 'developer', content: [{ type: 'text', text: 'Be kind.' }] },
        {
          role: 'user',
          content: [
            { type: 'text', text },
            { type: 'image_url', image_url: { url: `data:image/png;base64,${PICTURE}`, detail: 'low' } },
            { type: 'image_url', image_url: { url: 'https://example.com/picture.png' } },
          ],
        },
      ],
      stop: 'never said',
      temperature: 1.5,
    })
    const { body } = await translatedRequest(gateway(), 'messages', text)
    expect(body).toMatchObject({ stop_sequences: ['never said'], temperature: 1 })
    expect(body.system).toMatchObject([{ text: 'Be brief.' }, { text: 'Be kind.' }])
    expect(body.messages).toEqual([
      {
        role: 'user',
        content: [
          { type: 'text', text },
          { type: 'image', source: { type: 'base64', media_type: 'image/png', data: PICTURE } },
          { type: 'image', source: { type: 'url', url: 'https://example.com/picture.png' } },
        ],
      },
    ])
  })

  it('tells reasoning apart from content, whole and streamed', async () => {
    const request = { ...requestTo('think', 'scripted-messages-adaptive'), reasoning_effort: 'high' as const }
    const whole = await connect().chat.completions.create(request)
    const message = whole.choices[0]?.message
    expect(message?.content).toContain('"think"')
    expect(message).toHaveProperty('reasoning_content', expect.stringMatching(/\w{3}/))
    expect(whole.usage?.completion_tokens_details?.reasoning_tokens).toBeGreaterThan(0)
    const stream = await connect().chat.completions.create({ ...request, stream: true })
    const deltas = (await collect(stream)).map(({ choices }) => choices[0]?.delta ?? {})
    // The SDK's types do not have the member, and its stream helper keeps only the last piece of it.
    const told = (name: 'content' | 'reasoning_content') =>
      deltas.map((delta) => (delta as Record<string, string | undefined>)[name] ?? '').join('')
    expect({ content: told('content'), reasoning_content: told('reasoning_content') }).toEqual({
      content: message?.content,
      reasoning_content: (message as unknown as Record<string, unknown>).reasoning_content,
    })
  })

  it('is told by name what the model cannot do, before anything is asked upstream', async () => {
    const text = marker()
    const calls = [{ n: 2 }, { logprobs: true }, { modalities: ['text' as const, 'audio' as const] }]
    for (const more of calls) {
      const error = await failureOf(connect().chat.completions.create({ ...requestTo(text), ...more }))
      expect(error).toBeInstanceOf(newestOpenAi.BadRequestError)
      expect(error).toMatchObject({ status: 400, type: 'invalid_request_error' })
      expect(String(error.message)).toContain(Object.keys(more)[0])
    }
    expect(await seenRequests(gateway(), text)).toEqual([])
  })

  it('has one choice for a legacy prompt', async () => {
    const legacy = { model: MESSAGES_MODEL, prompt: ['once upon', 'a time'], max_tokens: 4 }
    const several = connect().completions.create(legacy)
    await expect(several).rejects.toMatchObject({ status: 400, code: 'invalid_body' })
  })
})
