import type Anthropic from '@anthropic-ai/sdk'
import { beforeAll, describe, expect, it } from 'vitest'
import { gateway } from '../harness/gateway.ts'
import { auditEntryOf } from '../harness/records.ts'
import { answered, inTurn } from '../harness/routed-model.ts'
import {
  failureOf,
  newestAnthropic,
  newestOpenAi,
  openAiUrl,
  SCRIPTED_TEXT,
  textOf,
  userMessage,
} from '../harness/sdk-clients.ts'
import { createTenant, type Tenant } from '../harness/tenant.ts'
import { marker, registerScript, seenRequest, seenRequests } from '../harness/upstream.ts'

// Official clients on a model of Bedrock that is not Claude.

const model = 'scripted-bedrock-nova'
const PNG = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=='
const WEATHER = {
  name: 'get_weather',
  input_schema: { type: 'object' as const, properties: { city: { type: 'string' } } },
}
const CHAT_WEATHER = {
  type: 'function' as const,
  function: { name: 'get_weather', parameters: WEATHER.input_schema },
}
const SCHEMA = {
  type: 'object',
  properties: { city: { type: 'string' } },
  required: ['city'],
  additionalProperties: false,
}

let tenant: Tenant
beforeAll(async () => {
  tenant = await createTenant(gateway())
})

const openai = () => new newestOpenAi({ apiKey: tenant.key, baseURL: openAiUrl(), maxRetries: 0 })
const anthropic = () => new newestAnthropic({ apiKey: tenant.key, baseURL: gateway().baseUrl, maxRetries: 0 })
const ask = (content: Anthropic.MessageParam['content'], more = {}) => ({
  model,
  max_tokens: 2_000,
  messages: [{ role: 'user' as const, content }],
  ...more,
})
/** The request that the scripted Bedrock received. */
const sentFor = async (text: string) => JSON.parse((await seenRequest(gateway(), text)).body)

describe.concurrent('a model of Bedrock over Converse', () => {
  it('answers messages, whole and streamed, and the call is charged by its usage', async () => {
    const { data, response } = await anthropic().messages.create(ask('script:canned')).withResponse()
    expect([data.model, textOf(data), data.stop_reason]).toEqual([model, SCRIPTED_TEXT, 'end_turn'])
    const { record } = await auditEntryOf(gateway(), tenant, response.headers.get('x-request-id'))
    const { input_tokens: input, output_tokens: output } = data.usage
    expect(record.usage).toMatchObject({ input, output })
    // A million input tokens cost a dollar, as many output tokens five.
    expect([record.status, record.cost]).toEqual([200, input + 5 * output])

    const stream = anthropic().messages.stream(ask('script:canned'))
    const message = await stream.finalMessage()
    expect([message.model, textOf(message), message.stop_reason]).toEqual([model, SCRIPTED_TEXT, 'end_turn'])
    expect(message.usage).toMatchObject({ input_tokens: input, output_tokens: output })
  })

  it('answers chat completions, whole and streamed, with the same usage', async () => {
    const request = { model, messages: userMessage('script:canned') }
    const whole = await openai().chat.completions.create(request)
    expect(whole.choices[0]).toMatchObject({ finish_reason: 'stop', message: { content: SCRIPTED_TEXT } })
    const stream = openai().chat.completions.stream({ ...request, stream_options: { include_usage: true } })
    const { choices, usage } = await stream.finalChatCompletion()
    expect(choices[0]).toMatchObject({ finish_reason: 'stop', message: { content: SCRIPTED_TEXT } })
    expect(usage).toMatchObject({ total_tokens: whole.usage?.total_tokens })
  })

  it('answers responses, whole and streamed', async () => {
    const whole = await openai().responses.create({ model, input: 'script:canned' })
    expect(whole.output_text).toBe(SCRIPTED_TEXT)
    const stream = openai().responses.stream({ model, input: 'script:canned' })
    expect((await stream.finalResponse()).output_text).toBe(SCRIPTED_TEXT)
  })

  it('calls tools for messages, and takes their results', async () => {
    const text = marker()
    const first = await anthropic()
      .messages.stream(ask(`script:tool-call ${text}`, { tools: [WEATHER] }))
      .finalMessage()
    expect(first.stop_reason).toBe('tool_use')
    const call = first.content.find((block) => block.type === 'tool_use')
    expect(call).toMatchObject({ name: 'get_weather', input: expect.any(Object) })
    const second = await anthropic().messages.create({
      ...ask(''),
      messages: [
        { role: 'user', content: `Weather? ${text}` },
        { role: 'assistant', content: first.content },
        {
          role: 'user',
          content: [{ type: 'tool_result', tool_use_id: call?.id ?? '', content: 'Sunny script:canned' }],
        },
      ],
    })
    // The second request offers no tools, which the vendor refuses with this history.
    expect(second.stop_reason).toBe('end_turn')
    const sent = (await seenRequests(gateway(), text)).map(({ body }) => JSON.parse(body))
    expect(sent[1].toolConfig.tools[0].toolSpec.name).toBe('get_weather')
    expect(sent[1].messages[2].content[0].toolResult).toMatchObject({
      toolUseId: call?.id,
      status: 'success',
    })
  })

  it('calls tools for chat completions and responses', async () => {
    const request = { model, messages: userMessage('script:tool-call'), tools: [CHAT_WEATHER] }
    for (const completion of [
      await openai().chat.completions.create(request),
      await openai().chat.completions.stream(request).finalChatCompletion(),
    ]) {
      const [choice] = completion.choices
      expect(choice?.finish_reason).toBe('tool_calls')
      const [call] = choice?.message.tool_calls ?? []
      const made = call?.type === 'function' ? call.function : undefined
      expect([made?.name, typeof JSON.parse(made?.arguments ?? '')]).toEqual(['get_weather', 'object'])
    }
    const tools = [
      { type: 'function' as const, name: 'get_weather', parameters: WEATHER.input_schema, strict: false },
    ]
    const response = await openai().responses.create({ model, input: 'script:tool-call', tools })
    expect(response.output.find(({ type }) => type === 'function_call')).toMatchObject({
      name: 'get_weather',
    })
  })

  it('takes images and documents', async () => {
    const text = marker()
    await anthropic().messages.create(
      ask([
        { type: 'text', text: `script:canned ${text}` },
        { type: 'image', source: { type: 'base64', media_type: 'image/png', data: PNG } },
        {
          type: 'document',
          title: 'Obey me.pdf',
          source: { type: 'base64', media_type: 'application/pdf', data: 'JVBERi0xLjQK' },
        },
      ]),
    )
    const { messages } = await sentFor(text)
    expect(messages[0].content).toEqual([
      { text: `script:canned ${text}` },
      { image: { format: 'png', source: { bytes: PNG } } },
      { document: { format: 'pdf', name: 'document-1', source: { bytes: 'JVBERi0xLjQK' } } },
    ])
  })

  it('answers in JSON, by a schema and by an instruction', async () => {
    const text = marker()
    const { choices } = await openai().chat.completions.create({
      model,
      messages: userMessage(`Where? ${text}`),
      response_format: { type: 'json_schema', json_schema: { name: 'place', schema: SCHEMA } },
    })
    expect(JSON.parse(choices[0]?.message.content ?? '')).toEqual({ city: expect.any(String) })
    const { outputConfig } = await sentFor(text)
    const { jsonSchema } = outputConfig.textFormat.structure
    expect([jsonSchema.name, JSON.parse(jsonSchema.schema)]).toEqual(['place', SCHEMA])

    const fenced = await openai().chat.completions.create({
      model,
      messages: userMessage('script:fenced-json'),
      response_format: { type: 'json_object' },
    })
    expect(() => JSON.parse(fenced.choices[0]?.message.content ?? '')).not.toThrow()
  })

  it('names what it leaves out, and refuses what would change the answer', async () => {
    const { response } = await openai()
      .chat.completions.create({
        model,
        messages: userMessage('script:canned'),
        seed: 1,
        logit_bias: { 1: 1 },
      })
      .withResponse()
    const dropped = response.headers.get('x-headgate-dropped')?.split(', ')
    expect(dropped).toEqual(expect.arrayContaining(['seed', 'logit_bias']))
    const error = await failureOf(
      openai().chat.completions.create({ model, messages: userMessage('script:canned'), n: 2 }),
    )
    expect([error.status, error.message]).toEqual([400, expect.stringContaining('n: ')])
  })

  it('takes its signed reasoning back', async () => {
    const text = marker()
    const streaming = { headers: { 'content-type': 'text/event-stream' } }
    const frame = (type: string, data: object) =>
      `event: ${type}\ndata: ${JSON.stringify({ type, ...data })}\n\n`
    const delta = (index: number, type: string, value: object) =>
      frame('content_block_delta', { index, delta: { type, ...value } })
    const message = { id: 'm', type: 'message', role: 'assistant', model: 'm', content: [], usage: {} }
    const script = await registerScript(gateway(), [
      streaming,
      {
        sse: [
          frame('message_start', { message }),
          frame('content_block_start', { index: 0, content_block: { type: 'thinking', thinking: '' } }),
          delta(0, 'thinking_delta', { thinking: 'Hm.' }),
          delta(0, 'signature_delta', { signature: 'c2lnbmF0dXJl' }),
          frame('content_block_stop', { index: 0 }),
          frame('content_block_start', { index: 1, content_block: { type: 'text', text: '' } }),
          delta(1, 'text_delta', { text: 'Yes.' }),
          frame('content_block_stop', { index: 1 }),
          frame('message_delta', {
            delta: { stop_reason: 'end_turn' },
            usage: { input_tokens: 3, output_tokens: 4 },
          }),
          frame('message_stop', {}),
        ],
      },
      { end: true },
    ])
    const first = await anthropic().messages.stream(ask(script)).finalMessage()
    const [thinking] = first.content
    expect(thinking).toMatchObject({
      type: 'thinking',
      thinking: 'Hm.',
      signature: expect.stringMatching(/^headgate\./),
    })
    await anthropic().messages.create({
      ...ask(''),
      messages: [
        { role: 'user', content: 'Hi' },
        { role: 'assistant', content: first.content },
        { role: 'user', content: `script:canned ${text}` },
      ],
    })
    const { messages } = await sentFor(text)
    expect(messages[1].content).toEqual([
      { reasoningContent: { reasoningText: { text: 'Hm.', signature: 'c2lnbmF0dXJl' } } },
      { text: 'Yes.' },
    ])
  })

  it('counts tokens by the counter of the vendor', async () => {
    const { data, response } = await anthropic()
      .messages.countTokens({ model, messages: [{ role: 'user', content: 'How many tokens is this?' }] })
      .withResponse()
    expect(data.input_tokens).toBeGreaterThan(3)
    expect(response.headers.get('x-headgate-token-count')).toBeNull()
  })

  it.each([
    ['error-400', 400, 'invalid_request_error'],
    ['error-429', 429, 'rate_limit_error'],
    ['error-500', 500, 'api_error'],
    ['error-529', 503, 'api_error'],
  ])('turns %s into an error of the messages protocol', async (script, status, type) => {
    const error = await failureOf(anthropic().messages.create(ask(`script:${script}`)))
    expect([error.status, error.type]).toEqual([status, type])
    expect(String(error.message)).not.toContain('answered with status')
    const streamed = anthropic()
      .messages.stream(ask(`script:${script}`))
      .finalMessage()
    const failure = await failureOf(streamed)
    expect([failure.status, failure.type]).toEqual([status, type])
  })

  it('tells of an error in the middle of a stream, and of a cut', async () => {
    const message = { id: 'm', type: 'message', role: 'assistant', model: 'm', content: [], usage: {} }
    const frame = (type: string, data: object) =>
      `event: ${type}\ndata: ${JSON.stringify({ type, ...data })}\n\n`
    const begun = [
      frame('message_start', { message }),
      frame('content_block_start', { index: 0, content_block: { type: 'text', text: '' } }),
      frame('content_block_delta', { index: 0, delta: { type: 'text_delta', text: 'He' } }),
    ]
    const streaming = { headers: { 'content-type': 'text/event-stream' } }
    const failing = frame('error', { error: { type: 'rate_limit_error', message: 'Slow down' } })
    const scripts = [
      [
        await registerScript(gateway(), [streaming, { sse: [...begun, failing] }, { end: true }]),
        'Slow down',
      ],
      [await registerScript(gateway(), [streaming, { sse: begun }, { destroy: true }]), 'broke off'],
      [await registerScript(gateway(), [streaming, { sse: begun }, { end: true }]), 'ended its answer early'],
    ]
    for (const [script, text] of scripts) {
      const error = await failureOf(
        anthropic()
          .messages.stream(ask(String(script)))
          .finalMessage(),
      )
      expect(JSON.stringify(error.error ?? String(error))).toContain(text)
    }
  })

  it('reads a whole answer of another size of usage', async () => {
    const script = await inTurn(gateway(), answered('messages', 'Short.', false))
    const { data, response } = await anthropic().messages.create(ask(script)).withResponse()
    expect(textOf(data)).toBe('Short.')
    const { record } = await auditEntryOf(gateway(), tenant, response.headers.get('x-request-id'))
    expect(record.cost).toBe(11 + 7 * 5)
  })
})
