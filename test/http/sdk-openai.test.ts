import type OpenAI from 'openai'
import { zodFunction, zodResponseFormat } from 'openai/helpers/zod'
import { beforeAll, describe, expect, it } from 'vitest'
import * as z from 'zod'
import { gateway } from '../harness/gateway.ts'
import { auditEntryOf } from '../harness/records.ts'
import {
  CHAT_MODEL,
  chatRequest,
  collect,
  failureOf,
  newestOpenAi,
  openAiClients,
  openAiUrl,
  SCRIPTED_TEXT,
  userMessage,
} from '../harness/sdk-clients.ts'
import { createTenant, type Tenant } from '../harness/tenant.ts'
import { marker, seenRequest, seenRequests } from '../harness/upstream.ts'

let tenant: Tenant
beforeAll(async () => {
  tenant = await createTenant(gateway())
})

const forecast = z.object({ city: z.string(), days: z.int().min(3) })

describe.each(openAiClients)('%s', (_, Client) => {
  const connect = (): OpenAI => new Client({ apiKey: tenant.key, baseURL: openAiUrl(), maxRetries: 0 })
  /** The client with the key in another header than its own. */
  const connectWith = (header: string, baseURL: string): OpenAI =>
    new Client({
      apiKey: 'not-sent',
      baseURL,
      defaultHeaders: { authorization: null, [header]: tenant.key },
      maxRetries: 0,
    })

  const ways = [
    ['its own header on the base URL', () => connect()],
    ['x-api-key on the base URL', () => connectWith('x-api-key', openAiUrl())],
    [
      'its own header on the LLM host',
      () => new Client({ apiKey: tenant.key, baseURL: `${gateway().llmUrl}/v1`, maxRetries: 0 }),
    ],
    ['api-key on the LLM host', () => connectWith('api-key', `${gateway().llmUrl}/v1`)],
  ] as Array<[string, () => OpenAI]>
  it.each(Client === newestOpenAi ? ways : ways.slice(0, 1))(
    'creates and streams with %s',
    async (_way, open) => {
      const whole = await open().chat.completions.create(chatRequest('good morning'))
      const text = whole.choices[0]?.message.content
      expect(text).toContain('"good morning"')
      expect(whole).toMatchObject({ object: 'chat.completion', model: CHAT_MODEL })
      expect(whole.usage?.total_tokens).toBeGreaterThan(0)
      const stream = await open().chat.completions.create({ ...chatRequest('good morning'), stream: true })
      const chunks = await collect(stream)
      expect(chunks.map((chunk) => chunk.choices[0]?.delta.content ?? '').join('')).toBe(text)
      expect(chunks.length).toBeGreaterThan(10)
      expect(new Set(chunks.map((chunk) => chunk.id)).size).toBe(1)
    },
  )

  it('satisfies the stream helper: events, snapshot and final completion', async () => {
    const stream = connect().chat.completions.stream({
      model: CHAT_MODEL,
      messages: userMessage('twice'),
      n: 2,
      logprobs: true,
      stream_options: { include_usage: true },
    })
    const deltas: string[] = []
    stream.on('content.delta', ({ delta }) => deltas.push(delta))
    const completion = await stream.finalChatCompletion()
    expect(completion.choices.map(({ index }) => index)).toEqual([0, 1])
    for (const choice of completion.choices) {
      expect(choice.message.content).toContain('"twice"')
      expect(choice.finish_reason).toBe('stop')
      expect(choice.logprobs?.content?.map(({ token }) => token).join('')).toBe(choice.message.content)
    }
    expect(deltas.join('').length).toBe(2 * (completion.choices[0]?.message.content?.length ?? 0))
    expect((await stream.totalUsage()).completion_tokens).toBeGreaterThan(0)
  })

  it.each(Client === newestOpenAi ? [true, false] : [true])(
    'runs parallel tools and a second turn (stream: %s)',
    async (stream) => {
      const text = `call every tool, ${marker()}`
      const ran: unknown[] = []
      const runner = connect().chat.completions.runTools({
        model: CHAT_MODEL,
        messages: userMessage(text),
        // One call each way: the overloads of both differ by this literal alone.
        stream: stream as true,
        tools: [
          zodFunction({
            name: 'get_weather',
            parameters: forecast,
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
      expect(ran).toEqual([{ city: 'example', days: 3 }, 'time'])
      const [first, second] = await seenRequests(gateway(), text)
      const sent = JSON.parse(second?.body ?? '{}') as { messages: Array<Record<string, unknown>> }
      expect(JSON.parse(first?.body ?? '{}').messages).toHaveLength(1)
      expect(sent.messages.map(({ role }) => role)).toEqual(['user', 'assistant', 'tool', 'tool'])
      const calls = sent.messages[1]?.tool_calls as Array<{ id: string }>
      expect(sent.messages.slice(2).map((message) => message.tool_call_id)).toEqual(calls.map(({ id }) => id))
    },
  )

  it('parses structured output, whole and streamed', async () => {
    const schema = z.object({
      city: z.string(),
      days: z.int(),
      tags: z.array(z.enum(['a', 'b'])),
      inner: z.object({ ok: z.boolean() }),
    })
    const request = { ...chatRequestOf('as JSON'), response_format: zodResponseFormat(schema, 'forecast') }
    const parsed = await connect().chat.completions.parse(request)
    expect(schema.parse(parsed.choices[0]?.message.parsed).inner.ok).toBe(true)
    const streamed = await connect().chat.completions.stream(request).finalChatCompletion()
    expect(streamed.choices[0]?.message.parsed).toEqual(parsed.choices[0]?.message.parsed)
  })

  // What follows is the gateway's doing and not the client's, so one version stands for both.
  if (Client !== newestOpenAi) return

  it('gets usage on a stream when it asks for it, at its end only', async () => {
    const whole = await connect().chat.completions.create(chatRequest('count me'))
    const stream = await connect().chat.completions.create({
      ...chatRequest('count me'),
      stream: true,
      stream_options: { include_usage: true },
    })
    const chunks = await collect(stream)
    expect(chunks.slice(0, -1).some((chunk) => 'usage' in chunk)).toBe(false)
    expect(chunks.at(-1)).toMatchObject({ choices: [], usage: whole.usage })
  })

  it('sees no usage on a stream that did not ask, though the gateway metered it', async () => {
    const text = marker()
    const { data, request_id: requestId } = await connect()
      .chat.completions.create({ ...chatRequest(text), stream: true })
      .withResponse()
    const chunks = await collect(data)
    expect(chunks.some((chunk) => 'usage' in chunk)).toBe(false)
    expect(chunks.every((chunk) => chunk.choices.length === 1)).toBe(true)
    expect((await seenRequest(gateway(), text)).body).toContain('"include_usage":true')
    const { record, credits_settled: cost } = await auditEntryOf(gateway(), tenant, requestId)
    expect(record).toMatchObject({ provenance: 'reported', usage: { output: expect.any(Number) } })
    expect(cost).toBeGreaterThan(0)
  })

  it.each(['canned', 'no-done', 'split-frames', 'crlf', 'unknown-fields', 'usage-on-last-chunk'])(
    'streams %s to its end through the helper',
    async (script) => {
      const stream = connect().chat.completions.stream(chatRequestOf(`script:${script}`))
      expect((await stream.finalChatCompletion()).choices[0]?.message.content).toBe(SCRIPTED_TEXT)
    },
  )

  it('gets one JSON object in JSON mode', async () => {
    const answer = await connect().chat.completions.create({
      ...chatRequest('x as JSON'),
      response_format: { type: 'json_object' },
    })
    expect(JSON.parse(answer.choices[0]?.message.content ?? '')).toEqual({ answer: 'x as JSON' })
  })

  it('streams a refusal apart from content', async () => {
    const stream = connect().chat.completions.stream(chatRequestOf('script:refusal'))
    expect((await stream.finalChatCompletion()).choices[0]?.message.refusal).toBe('No.')
  })

  it('completes legacy prompts on the LLM host, whole and streamed', async () => {
    const client: OpenAI = new Client({
      apiKey: tenant.key,
      baseURL: `${gateway().llmUrl}/v1`,
      maxRetries: 0,
    })
    const request = { model: CHAT_MODEL, prompt: 'once upon', max_tokens: 4 }
    const whole = await client.completions.create(request)
    expect(whole.choices[0]?.finish_reason).toBe('length')
    const chunks = await collect(await client.completions.create({ ...request, stream: true }))
    expect(chunks.map((chunk) => chunk.choices[0]?.text ?? '').join('')).toBe(whole.choices[0]?.text)
  })

  it('lists the models it may use', async () => {
    const models = await collect(connect().models.list())
    // Other tests add models to the shared catalogue.
    expect(models.map(({ id }) => id)).toEqual(expect.arrayContaining(gateway().models))
    expect(models[0]).toMatchObject({ object: 'model', created: expect.any(Number) })
  })

  it('lists models on the LLM host', async () => {
    const client = new Client({ apiKey: tenant.key, baseURL: `${gateway().llmUrl}/v1`, maxRetries: 0 })
    const ids = (await collect(client.models.list())).map(({ id }) => id)
    expect(ids).toEqual(expect.arrayContaining(gateway().models))
    expect((await client.models.retrieve(CHAT_MODEL)).id).toBe(CHAT_MODEL)
  })

  it('shows what is wrong with a base URL in its own error', async () => {
    const calls = [
      [gateway().baseUrl, /base URL of the client lacks \/v1/],
      [`${gateway().baseUrl}/v1/v1`, /base URL of the client has \/v1 once too often/],
    ] as const
    for (const [baseURL, message] of calls) {
      const client = new Client({ apiKey: tenant.key, baseURL, maxRetries: 0 })
      const failure = await failureOf(client.chat.completions.create(chatRequest('hello')))
      expect(failure).toMatchObject({ status: 404, message: expect.stringMatching(message) })
    }
    const client = new Client({ apiKey: `${tenant.key}x`, baseURL: `${gateway().baseUrl}/v1`, maxRetries: 0 })
    const failure = await failureOf(client.models.list())
    expect(failure).toMatchObject({ status: 401, message: '401 A valid API key is required.' })
  })

  it('tells the request id that stands in the audit, on whole answers and on streams', async () => {
    const {
      data,
      response,
      request_id: requestId,
    } = await connect().chat.completions.create(chatRequest('who are you')).withResponse()
    expect(requestId).toMatch(/^req_/)
    expect(response.headers.get('x-request-id')).toBe(requestId)
    expect(response.headers.get('x-upstream-request-id')).toMatch(/^req_/)
    expect(data).toHaveProperty('_request_id', requestId)
    const raw = await connect()
      .chat.completions.create({ ...chatRequest('and streamed'), stream: true })
      .asResponse()
    expect(raw.headers.get('content-type')).toContain('text/event-stream')
    expect(await raw.text()).toMatch(/data: \[DONE\]\n\n$/)
    for (const id of [requestId, raw.headers.get('x-request-id')]) {
      expect(await auditEntryOf(gateway(), tenant, id)).toMatchObject({ model: CHAT_MODEL, status: 200 })
    }
  })
})

/** A request that both `create` and the helpers take. */
function chatRequestOf(content: string) {
  return { model: CHAT_MODEL, messages: userMessage(content) }
}
