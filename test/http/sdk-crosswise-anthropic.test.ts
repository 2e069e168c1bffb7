import type Anthropic from '@anthropic-ai/sdk'
import { zodOutputFormat } from '@anthropic-ai/sdk/helpers/zod'
import { beforeAll, describe, expect, it } from 'vitest'
import * as z from 'zod'
import { gateway } from '../harness/gateway.ts'
import { auditEntryOf } from '../harness/records.ts'
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
import { marker, seenRequests } from '../harness/upstream.ts'
import { PICTURE, translatedRequest } from './support/translated-request.ts'

// The Anthropic SDKs on models of chat completions: what holds in sdk-anthropic.test.ts has to hold here.

let tenant: Tenant
beforeAll(async () => {
  tenant = await createTenant(gateway())
})

const weather: Anthropic.Tool = {
  name: 'get_weather',
  input_schema: { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] },
}

const requestOf = (content: Anthropic.MessageParam['content'], model = CHAT_MODEL) => ({
  ...messageRequest(content),
  model,
})

describe.each(anthropicClients)('%s on a chat model', (_, Client) => {
  const connect = (): Anthropic =>
    new Client({ apiKey: tenant.key, baseURL: gateway().baseUrl, maxRetries: 0 })

  it('creates and streams', async () => {
    const whole = await connect().messages.create(requestOf('good morning'))
    expect(textOf(whole)).toContain('"good morning"')
    expect(whole).toMatchObject({ type: 'message', role: 'assistant', model: CHAT_MODEL })
    expect(whole).toMatchObject({ stop_reason: 'end_turn', stop_sequence: null })
    expect(whole.id).toMatch(/^msg_/)
    const events = await collect(
      await connect().messages.create({ ...requestOf('good morning'), stream: true }),
    )
    const text = events.map((event) =>
      event.type === 'content_block_delta' && event.delta.type === 'text_delta' ? event.delta.text : '',
    )
    expect(text.join('')).toBe(textOf(whole))
    expect(text.filter((delta) => delta !== '').length).toBeGreaterThan(10)
    expect(events.at(-1)?.type).toBe('message_stop')
  })

  it('satisfies the stream helper: events in order and the final message', async () => {
    const whole = await connect().messages.create(requestOf('stream please'))
    const stream = connect().messages.stream(requestOf('stream please'))
    const deltas: string[] = []
    const blocks: string[] = []
    stream.on('text', (delta) => deltas.push(delta)).on('contentBlock', ({ type }) => blocks.push(type))
    const types = (await collect(stream)).map(({ type }) => type)
    const message = await stream.finalMessage()
    expect(message).toMatchObject({ content: whole.content, stop_reason: 'end_turn' })
    const { input_tokens: input, output_tokens: output } = whole.usage
    expect(message.usage).toMatchObject({ input_tokens: input, output_tokens: output })
    expect(Math.min(input, output)).toBeGreaterThan(0)
    expect(deltas.join('')).toBe(textOf(whole))
    expect(blocks).toEqual(['text'])
    expect(types.slice(0, 2)).toEqual(['message_start', 'content_block_start'])
    expect(types.slice(-3)).toEqual(['content_block_stop', 'message_delta', 'message_stop'])
  })

  // What follows is the gateway's doing and not the client's, so one version stands for both.
  if (Client !== newestAnthropic) return

  it.each(['canned', 'no-done', 'split-frames', 'crlf', 'unknown-fields', 'usage-on-last-chunk'])(
    'streams %s to its end through the helper',
    async (script) => {
      const message = await connect()
        .messages.stream(requestOf(`script:${script}`))
        .finalMessage()
      expect(textOf(message)).toBe(SCRIPTED_TEXT)
      expect(message.usage).toMatchObject({ input_tokens: 12, output_tokens: expect.any(Number) })
    },
  )

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

  it.each(['scripted-chat', 'scripted-chat-large'])('parses structured output of %s', async (model) => {
    const schema = z.object({ city: z.string(), degrees: z.number(), tags: z.array(z.string()) })
    const request = { ...requestOf('as JSON', model), output_config: { format: zodOutputFormat(schema) } }
    const parsed = await connect().messages.parse(request)
    expect(schema.safeParse(parsed.parsed_output).success).toBe(true)
    const streamed = await connect().messages.stream(request).finalMessage()
    expect(textOf(streamed)).toBe(textOf(parsed))
  })

  it('tells a refusal', async () => {
    const streamed = await connect().messages.stream(requestOf('script:refusal')).finalMessage()
    expect(streamed).toMatchObject({ stop_reason: 'refusal', content: [{ type: 'text', text: 'No.' }] })
  })

  it('is told by name what the model cannot do, before anything is asked upstream', async () => {
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
      expect(error).toBeInstanceOf(Client.BadRequestError)
      expect(error).toMatchObject({ status: 400, type: 'invalid_request_error' })
      expect(String(error.message)).toContain(said)
    }
    expect(await seenRequests(gateway(), text)).toEqual([])
  })

  it('tells the request id that stands in the audit, on whole answers and on streams', async () => {
    const { data, request_id: requestId } = await connect()
      .messages.create(requestOf('who are you'))
      .withResponse()
    expect(requestId).toMatch(/^req_/)
    expect(data).toHaveProperty('_request_id', requestId)
    const stream = connect().messages.stream(requestOf('and streamed'))
    await stream.finalMessage()
    expect(stream.request_id).toMatch(/^req_/)
    for (const id of [requestId, stream.request_id]) {
      expect(await auditEntryOf(gateway(), tenant, id)).toMatchObject({ model: CHAT_MODEL, status: 200 })
    }
  })
})
