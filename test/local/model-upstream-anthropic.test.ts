import Anthropic from '@anthropic-ai/sdk'
import { betaZodTool } from '@anthropic-ai/sdk/helpers/beta/zod'
import { zodOutputFormat } from '@anthropic-ai/sdk/helpers/zod'
import { describe, expect, it } from 'vitest'
import * as z from 'zod'
import { upstream, useUpstream } from './model-upstream-harness.ts'

useUpstream()

const model = 'claude-sonnet-4-6'
const scripted = 'This is the scripted answer, with an é and a 🦉.'

const weather: Anthropic.Tool = {
  name: 'get_weather',
  input_schema: { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] },
}
const clock: Anthropic.Tool = { name: 'get_time', input_schema: { type: 'object' } }

function request(content: Anthropic.MessageParam['content']): Anthropic.MessageCreateParamsNonStreaming {
  return { model, max_tokens: 2000, messages: [{ role: 'user', content }] }
}

function textOf(message: Anthropic.Message): string {
  return message.content.map((block) => (block.type === 'text' ? block.text : '')).join('')
}

async function collect<T>(stream: AsyncIterable<T>): Promise<T[]> {
  const items: T[] = []
  for await (const item of stream) items.push(item)
  return items
}

describe("Anthropic's SDK", () => {
  const connect = (): Anthropic => new Anthropic({ apiKey: 'any', baseURL: upstream.url, maxRetries: 0 })

  it('creates a message that quotes the user', async () => {
    const message = await connect().messages.create(request('good morning'))
    expect(textOf(message)).toContain('"good morning"')
    expect(message).toMatchObject({
      type: 'message',
      role: 'assistant',
      stop_reason: 'end_turn',
      stop_sequence: null,
    })
    expect(message.usage.input_tokens).toBeGreaterThan(0)
    expect(message._request_id).toMatch(/^req_/)
  })

  it('streams the same message through the helper, in order', async () => {
    const whole = await connect().messages.create(request('stream please'))
    const stream = connect().messages.stream(request('stream please'))
    const types = (await collect(stream)).map((event) => event.type)
    const message = await stream.finalMessage()
    expect(textOf(message)).toBe(textOf(whole))
    expect(message.usage).toEqual(whole.usage)
    expect(message.stop_reason).toBe('end_turn')
    expect(types.slice(0, 3)).toEqual(['message_start', 'content_block_start', 'content_block_delta'])
    expect(types.slice(-3)).toEqual(['content_block_stop', 'message_delta', 'message_stop'])
    expect(types.filter((type) => type === 'content_block_delta').length).toBeGreaterThan(10)
  })

  it('thinks first when asked, with a signature and its tokens counted', async () => {
    const thinking = { type: 'enabled' as const, budget_tokens: 1024 }
    const message = await connect()
      .messages.stream({ ...request('think'), thinking })
      .finalMessage()
    expect(message.content.map((block) => block.type)).toEqual(['thinking', 'text'])
    const [first] = message.content
    expect(first?.type === 'thinking' && first.thinking.length > 0 && first.signature.length > 20).toBe(true)
    expect(message.usage.output_tokens_details?.thinking_tokens).toBeGreaterThan(0)
    const whole = await connect().messages.create({ ...request('think'), thinking })
    expect(whole.content).toEqual(message.content)
  })

  it('keeps an empty signed block when the display of thinking is omitted', async () => {
    const thinking = { type: 'adaptive' as const, display: 'omitted' as const }
    const message = await connect()
      .messages.stream({ ...request('think'), thinking })
      .finalMessage()
    expect(message.content[0]).toMatchObject({ type: 'thinking', thinking: '' })
    expect(message.content[0]?.type === 'thinking' && message.content[0].signature.length > 20).toBe(true)
  })

  it.each([true, false])('runs a tool loop and quotes the result (stream: %s)', async (stream) => {
    const seen: unknown[] = []
    const runner = connect().beta.messages.toolRunner({
      ...request('use the tool'),
      stream,
      tools: [
        betaZodTool({
          name: 'get_weather',
          description: 'Weather of a city',
          inputSchema: z.object({ city: z.string(), days: z.int().min(3) }),
          run: (input) => {
            seen.push(input)
            return 'sunny and mild'
          },
        }),
      ],
    })
    const message = await runner.runUntilDone()
    expect(message.content[0]).toMatchObject({
      type: 'text',
      text: expect.stringContaining('"sunny and mild"'),
    })
    expect(seen).toEqual([{ city: 'example', days: 3 }])
  })

  it('answers a lost or repeated thread so that the client can start over', async () => {
    const betas = ['message-threads-2026-08-12']
    const send = (thread: object, text: string) =>
      connect().beta.messages.create({
        ...request(text),
        betas,
        thread,
      } as Anthropic.Beta.MessageCreateParamsNonStreaming)
    const first = await send({ type: 'create' }, 'remember me')
    const again = { type: 'continue', previous_message_id: first.id }
    const second = await send(again, 'and me')
    expect(second.usage.input_tokens).toBeGreaterThan(first.usage.input_tokens + first.usage.output_tokens)
    const code = (errorCode: string) => ({ error: { error: { details: { error_code: errorCode } } } })
    await expect(send(again, 'x')).rejects.toMatchObject({ status: 400, ...code('thread_already_continued') })
    const lost = { type: 'continue', previous_message_id: 'msg_unknown' }
    await expect(send(lost, 'x')).rejects.toMatchObject({ status: 404, ...code('thread_not_found') })
    const unasked = {
      ...request('x'),
      thread: { type: 'create' },
    } as Anthropic.MessageCreateParamsNonStreaming
    await expect(connect().messages.create(unasked)).rejects.toThrow('thread: Extra inputs are not permitted')
  })

  it('calls every tool in blocks of their own, one when parallel use is off', async () => {
    const both = { ...request('call every tool'), tools: [weather, clock] }
    const streamed = await connect().messages.stream(both).finalMessage()
    expect(streamed.stop_reason).toBe('tool_use')
    expect(streamed.content).toMatchObject([
      { type: 'tool_use', name: 'get_weather', input: { city: 'example' } },
      { type: 'tool_use', name: 'get_time', input: {} },
    ])
    const choice = { type: 'auto' as const, disable_parallel_tool_use: true }
    const single = await connect().messages.create({ ...both, tool_choice: choice })
    expect(single.content).toHaveLength(1)
  })

  it('follows the tool choice', async () => {
    const ask = async (choice: Anthropic.ToolChoice, text = 'hello') => {
      const message = await connect().messages.create({
        ...request(text),
        tools: [weather, clock],
        tool_choice: choice,
      })
      return message.content.map((block) => (block.type === 'tool_use' ? block.name : block.type))
    }
    expect(await ask({ type: 'auto' })).toEqual(['text'])
    expect(await ask({ type: 'none' }, 'use a tool')).toEqual(['text'])
    expect(await ask({ type: 'any' })).toEqual(['get_weather'])
    expect(await ask({ type: 'tool', name: 'get_time' })).toEqual(['get_time'])
  })

  it('answers JSON that satisfies the output format', async () => {
    const Schema = z.object({ city: z.string(), degrees: z.number(), tags: z.array(z.string()) })
    const parsed = await connect().messages.parse({
      ...request('json please'),
      output_config: { format: zodOutputFormat(Schema) },
    })
    expect(Schema.safeParse(parsed.parsed_output).success).toBe(true)
  })

  it('counts the same input tokens as the message reports', async () => {
    const { max_tokens: _, ...counted } = {
      ...request('count these words'),
      system: 'be brief',
      tools: [weather],
    }
    const count = await connect().messages.countTokens(counted)
    const message = await connect().messages.create({ ...counted, max_tokens: 100 })
    expect(count.input_tokens).toBe(message.usage.input_tokens)
    const longer = await connect().messages.countTokens({ ...counted, system: 'be brief, but not too brief' })
    expect(longer.input_tokens).toBeGreaterThan(count.input_tokens)
  })

  it('writes the marked prefix to the cache once and reads it afterwards, by ttl', async () => {
    const system: Anthropic.TextBlockParam[] = [
      {
        type: 'text',
        text: 'rules of the house '.repeat(20),
        cache_control: { type: 'ephemeral', ttl: '1h' },
      },
      { type: 'text', text: 'examples '.repeat(30), cache_control: { type: 'ephemeral' } },
    ]
    const ask = async (content: string) =>
      (await connect().messages.create({ ...request(content), system })).usage
    const cold = await ask('first')
    const warm = await connect()
      .messages.stream({ ...request('second question'), system })
      .finalMessage()
    expect(cold.cache_read_input_tokens).toBe(0)
    expect(cold.cache_creation?.ephemeral_1h_input_tokens).toBeGreaterThan(50)
    expect(cold.cache_creation?.ephemeral_5m_input_tokens).toBeGreaterThan(50)
    const { ephemeral_1h_input_tokens: hour = 0, ephemeral_5m_input_tokens: minutes = 0 } =
      cold.cache_creation ?? {}
    expect(cold.cache_creation_input_tokens).toBe(hour + minutes)
    expect(warm.usage.cache_read_input_tokens).toBe(hour + minutes)
    expect(warm.usage.cache_creation_input_tokens).toBe(0)
    expect(warm.usage.input_tokens).toBeLessThan(10)
  })

  it('reads the longest prefix seen before and writes only what is new', async () => {
    const turn = (text: string, marked: boolean): Anthropic.MessageParam => ({
      role: 'user',
      content: [{ type: 'text', text, ...(marked ? { cache_control: { type: 'ephemeral' as const } } : {}) }],
    })
    const opening = 'the opening '.repeat(20)
    const ask = async (messages: Anthropic.MessageParam[]) =>
      (await connect().messages.create({ model, max_tokens: 50, messages })).usage
    const first = await ask([turn(opening, true)])
    const second = await ask([turn(opening, false), turn('then more '.repeat(20), true)])
    expect(second.cache_read_input_tokens).toBe(first.cache_creation_input_tokens)
    expect(second.cache_creation_input_tokens).toBeGreaterThan(20)
    const changed = await ask([turn(`changed ${opening}`, true)])
    expect(changed.cache_read_input_tokens).toBe(0)
  })

  it('cuts at a stop sequence and at the token limit', async () => {
    const stopped = await connect().messages.create({
      ...request('hi'),
      stop_sequences: ['never', 'You said'],
    })
    expect(stopped).toMatchObject({ stop_reason: 'stop_sequence', stop_sequence: 'You said' })
    expect(textOf(stopped)).toBe('Hello! ')
    const cut = await connect()
      .messages.stream({ ...request('hi'), max_tokens: 2 })
      .finalMessage()
    expect(cut).toMatchObject({ stop_reason: 'max_tokens', usage: { output_tokens: 2 } })
  })

  it.each([
    ['error-400', 400, 'invalid_request_error'],
    ['error-404', 404, 'not_found_error'],
    ['error-429', 429, 'rate_limit_error'],
    ['error-500', 500, 'api_error'],
    ['error-529', 529, 'overloaded_error'],
  ])('raises %s as its class', async (script, status, type) => {
    const failure = connect().messages.create(request(`script:${script}`))
    await expect(failure).rejects.toMatchObject({ status, type })
    await expect(failure).rejects.toBeInstanceOf(Anthropic.APIError)
    const { max_tokens: _, ...counted } = request(`script:${script}`)
    await expect(connect().messages.countTokens(counted)).rejects.toMatchObject({ status })
  })

  it('leaves token counts alone when another script is named', async () => {
    const { max_tokens: _, ...counted } = request('script:stall')
    expect((await connect().messages.countTokens(counted)).input_tokens).toBeGreaterThan(0)
  })

  it.each([
    ['max_tokens: Field required', { max_tokens: undefined }],
    [
      "messages.0.role: Input should be 'user' or 'assistant'",
      { messages: [{ role: 'tool', content: 'x' }] },
    ],
    ['thinking.enabled.budget_tokens', { thinking: { type: 'enabled', budget_tokens: 10 } }],
  ])('refuses a body with the reason "%s"', async (reason, change) => {
    const body = { ...request('hi'), ...change } as Anthropic.MessageCreateParamsNonStreaming
    await expect(connect().messages.create(body)).rejects.toThrow(reason)
  })

  it.each(['mid-stream-error', 'first-event-error'])('raises the in-band error of %s', async (script) => {
    const stream = connect().messages.stream(request(`script:${script}`))
    await expect(stream.finalMessage()).rejects.toMatchObject({
      error: { type: 'error', error: { type: 'overloaded_error' } },
    })
  })

  it.each(['mid-stream-cut', 'mid-stream-end', 'no-done', 'empty-stream'])(
    'makes the stream helper fail on %s',
    async (script) => {
      await expect(
        connect()
          .messages.stream(request(`script:${script}`))
          .finalMessage(),
      ).rejects.toThrow()
    },
  )

  it.each(['canned', 'split-frames', 'crlf', 'unknown-fields', 'usage-on-last-chunk'])(
    'streams %s to its end through the helper',
    async (script) => {
      const message = await connect()
        .messages.stream(request(`script:${script}`))
        .finalMessage()
      expect(textOf(message)).toBe(scripted)
      expect(message.usage).toMatchObject({ input_tokens: 12, output_tokens: expect.any(Number) })
    },
  )

  it('answers a stream script whole when no stream is asked for', async () => {
    expect(textOf(await connect().messages.create(request('script:mid-stream-error')))).toBe(scripted)
  })

  it('refuses with stop details', async () => {
    const message = await connect().messages.stream(request('script:refusal')).finalMessage()
    expect(message).toMatchObject({ stop_reason: 'refusal', stop_details: { type: 'refusal' } })
  })
})
