import type OpenAI from 'openai'
import { zodFunction, zodResponseFormat } from 'openai/helpers/zod'
import { beforeAll, describe, expect, it } from 'vitest'
import * as z from 'zod'
import { gateway } from '../harness/gateway.ts'
import { auditEntryOf } from '../harness/records.ts'
import {
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
import { marker, seenRequests } from '../harness/upstream.ts'
import { PICTURE, translatedRequest, translatedRequests } from './support/translated-request.ts'

// The OpenAI SDKs on models of the messages protocol: what holds in sdk-openai.test.ts has to hold here.

let tenant: Tenant
beforeAll(async () => {
  tenant = await createTenant(gateway())
})

// The SDK makes its tools strict, and in strict tools this protocol knows no bounds of numbers.
const forecast = z.object({ city: z.string(), days: z.int() })

function requestOf(content: string, model = MESSAGES_MODEL) {
  return { model, messages: userMessage(content) }
}

describe.each(openAiClients)('%s on a messages model', (_, Client) => {
  const connect = (): OpenAI => new Client({ apiKey: tenant.key, baseURL: openAiUrl(), maxRetries: 0 })

  it('creates and streams', async () => {
    const whole = await connect().chat.completions.create(requestOf('good morning'))
    const text = whole.choices[0]?.message.content
    expect(text).toContain('"good morning"')
    expect(whole).toMatchObject({ object: 'chat.completion', model: MESSAGES_MODEL })
    expect(whole.choices[0]).toMatchObject({ index: 0, finish_reason: 'stop', logprobs: null })
    expect(whole.choices[0]?.message).toMatchObject({ role: 'assistant', refusal: null })
    expect(Math.abs(whole.created - Date.now() / 1000)).toBeLessThan(60)
    const stream = await connect().chat.completions.create({ ...requestOf('good morning'), stream: true })
    const chunks = await collect(stream)
    expect(chunks.map((chunk) => chunk.choices[0]?.delta.content ?? '').join('')).toBe(text)
    expect(chunks.length).toBeGreaterThan(10)
    expect(new Set(chunks.map(({ id, created, model }) => `${id} ${created} ${model}`)).size).toBe(1)
    expect(chunks[0]).toMatchObject({ object: 'chat.completion.chunk', model: MESSAGES_MODEL })
  })

  it('satisfies the stream helper: events, snapshot and final completion', async () => {
    const stream = connect().chat.completions.stream({
      ...requestOf('once'),
      stream_options: { include_usage: true },
    })
    const deltas: string[] = []
    stream.on('content.delta', ({ delta }) => deltas.push(delta))
    const { choices } = await stream.finalChatCompletion()
    expect(choices).toMatchObject([{ index: 0, finish_reason: 'stop', message: { role: 'assistant' } }])
    expect(choices[0]?.message.content).toContain('"once"')
    expect(deltas.join('')).toBe(choices[0]?.message.content)
    expect((await stream.totalUsage()).completion_tokens).toBeGreaterThan(0)
  })

  it.each(Client === newestOpenAi ? [true, false] : [true])(
    'runs parallel tools and a second turn (stream: %s)',
    async (stream) => {
      const text = `call every tool, ${marker()}`
      const ran: unknown[] = []
      const runner = connect().chat.completions.runTools({
        ...requestOf(text),
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
      expect(ran).toEqual([{ city: 'example', days: expect.any(Number) }, 'time'])
      const [first, second, ...others] = await translatedRequests(gateway(), 'messages', text)
      expect(others).toEqual([])
      expect(first?.body.messages).toHaveLength(1)
      expect(first?.body.tools).toMatchObject([{ name: 'get_weather' }, { name: 'get_time' }])
      const turns = second?.body.messages as Array<{ role: string; content: Array<Record<string, unknown>> }>
      expect(turns.map(({ role }) => role)).toEqual(['user', 'assistant', 'user'])
      expect(turns[1]?.content).toMatchObject([
        { type: 'tool_use', name: 'get_weather' },
        { type: 'tool_use', name: 'get_time', input: {} },
      ])
      expect(turns[2]?.content.map((block) => block.type)).toEqual(['tool_result', 'tool_result'])
      expect(turns[2]?.content.map((block) => block.tool_use_id)).toEqual(
        turns[1]?.content.map((block) => block.id),
      )
    },
  )

  // What follows is the gateway's doing and not the client's, so one version stands for both.
  if (Client !== newestOpenAi) return

  it('gets usage on a stream when it asks for it, at its end only', async () => {
    const whole = await connect().chat.completions.create(requestOf('count me'))
    const chunks = await collect(
      await connect().chat.completions.create({
        ...requestOf('count me'),
        stream: true,
        stream_options: { include_usage: true },
      }),
    )
    expect(chunks.slice(0, -1).some((chunk) => chunk.usage)).toBe(false)
    expect(chunks.at(-1)).toMatchObject({ choices: [], usage: whole.usage })
    const { prompt_tokens: prompt = 0, completion_tokens: completion = 0 } = whole.usage ?? {}
    expect(whole.usage?.total_tokens).toBe(prompt + completion)
    expect(Math.min(prompt, completion)).toBeGreaterThan(0)
  })

  it('sees no usage on a stream that did not ask, though the gateway metered it', async () => {
    const { data, request_id: requestId } = await connect()
      .chat.completions.create({ ...requestOf('not asked'), stream: true })
      .withResponse()
    const chunks = await collect(data)
    expect(chunks.some((chunk) => chunk.usage)).toBe(false)
    expect(chunks.every((chunk) => chunk.choices.length === 1)).toBe(true)
    const { record, credits_settled: cost } = await auditEntryOf(gateway(), tenant, requestId)
    expect(record).toMatchObject({ provenance: 'reported', usage: { output: expect.any(Number) } })
    expect(cost).toBeGreaterThan(0)
  })

  it.each(['canned', 'split-frames', 'crlf', 'unknown-fields', 'usage-on-last-chunk'])(
    'streams %s to its end through the helper',
    async (script) => {
      const stream = connect().chat.completions.stream(requestOf(`script:${script}`))
      expect((await stream.finalChatCompletion()).choices[0]?.message.content).toBe(SCRIPTED_TEXT)
    },
  )

  it('tells a call forced by name, and the choice of tools it allows', async () => {
    const text = marker()
    const tools = ['get_weather', 'get_time'].map((name) => ({
      type: 'function' as const,
      function: { name },
    }))
    const called = await connect().chat.completions.create({
      ...requestOf(text),
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

  it('parses structured output, whole and streamed', async () => {
    const schema = z.object({
      city: z.string(),
      days: z.int(),
      tags: z.array(z.enum(['a', 'b'])),
      inner: z.object({ ok: z.boolean() }),
    })
    const request = { ...requestOf('as JSON'), response_format: zodResponseFormat(schema, 'forecast') }
    const parsed = await connect().chat.completions.parse(request)
    expect(schema.parse(parsed.choices[0]?.message.parsed).inner.ok).toBe(true)
    const streamed = await connect().chat.completions.stream(request).finalChatCompletion()
    expect(streamed.choices[0]?.message.parsed).toEqual(parsed.choices[0]?.message.parsed)
  })

  it('gets one JSON object without its fence in JSON mode, whole and streamed', async () => {
    const request = { ...requestOf('script:fenced-json'), response_format: { type: 'json_object' as const } }
    const expected = { answer: 'fenced', count: 3 }
    const whole = await connect().chat.completions.create(request)
    expect(JSON.parse(whole.choices[0]?.message.content ?? '')).toEqual(expected)
    const streamed = await connect().chat.completions.stream(request).finalChatCompletion()
    expect(JSON.parse(streamed.choices[0]?.message.content ?? '')).toEqual(expected)
  })

  it('tells reasoning apart from content, whole and streamed', async () => {
    const request = { ...requestOf('think', 'scripted-messages-adaptive'), reasoning_effort: 'high' as const }
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

  it('streams a refusal apart from content', async () => {
    const stream = connect().chat.completions.stream(requestOf('script:refusal'))
    const [choice] = (await stream.finalChatCompletion()).choices
    expect(choice).toMatchObject({ finish_reason: 'content_filter', message: { refusal: 'No.' } })
  })

  it('is told by name what the model cannot do, before anything is asked upstream', async () => {
    const text = marker()
    const calls = [{ n: 2 }, { logprobs: true }, { modalities: ['text' as const, 'audio' as const] }]
    for (const more of calls) {
      const error = await failureOf(connect().chat.completions.create({ ...requestOf(text), ...more }))
      expect(error).toBeInstanceOf(Client.BadRequestError)
      expect(error).toMatchObject({ status: 400, type: 'invalid_request_error' })
      expect(String(error.message)).toContain(Object.keys(more)[0])
    }
    expect(await seenRequests(gateway(), text)).toEqual([])
  })

  it('completes a legacy prompt on the LLM host, whole and streamed', async () => {
    const client: OpenAI = new Client({
      apiKey: tenant.key,
      baseURL: `${gateway().llmUrl}/v1`,
      maxRetries: 0,
    })
    const request = { model: MESSAGES_MODEL, prompt: ['once upon'], max_tokens: 4 }
    const whole = await client.completions.create(request)
    expect(whole).toMatchObject({
      object: 'text_completion',
      model: MESSAGES_MODEL,
      choices: [{ index: 0, finish_reason: 'length' }],
    })
    const texts: string[] = []
    for await (const chunk of await client.completions.create({ ...request, stream: true })) {
      for (const { text } of chunk.choices) texts.push(text)
    }
    expect(texts.join('')).toBe(whole.choices[0]?.text)
    expect(texts.join('')).not.toBe('')
    const several = client.completions.create({ ...request, prompt: ['once upon', 'a time'] })
    await expect(several).rejects.toMatchObject({ status: 400, code: 'invalid_body' })
  })

  it('tells the request id that stands in the audit, on whole answers and on streams', async () => {
    const {
      data,
      response,
      request_id: requestId,
    } = await connect().chat.completions.create(requestOf('who are you')).withResponse()
    expect(requestId).toMatch(/^req_/)
    expect(response.headers.get('x-request-id')).toBe(requestId)
    expect(response.headers.get('x-upstream-request-id')).toMatch(/^req_/)
    expect(data).toHaveProperty('_request_id', requestId)
    const raw = await connect()
      .chat.completions.create({ ...requestOf('and streamed'), stream: true })
      .asResponse()
    expect(raw.headers.get('content-type')).toContain('text/event-stream')
    expect(await raw.text()).toMatch(/data: \[DONE\]\n\n$/)
    for (const id of [requestId, raw.headers.get('x-request-id')]) {
      expect(await auditEntryOf(gateway(), tenant, id)).toMatchObject({ model: MESSAGES_MODEL, status: 200 })
    }
  })
})
