import OpenAI from 'openai'
import { zodFunction, zodResponseFormat } from 'openai/helpers/zod'
import { describe, expect, it } from 'vitest'
import * as z from 'zod'
import { upstream, useUpstream } from './model-upstream-harness.ts'

useUpstream()

const model = 'gpt-4o'
const weather: OpenAI.ChatCompletionTool = {
  type: 'function',
  function: {
    name: 'get_weather',
    parameters: {
      type: 'object',
      properties: {
        city: { type: 'string' },
        days: { type: 'integer', minimum: 3 },
        note: { type: 'string' },
      },
      required: ['city', 'days'],
    },
  },
}
const clock: OpenAI.ChatCompletionTool = { type: 'function', function: { name: 'get_time' } }

function user(content: string): OpenAI.ChatCompletionMessageParam[] {
  return [{ role: 'user', content }]
}

async function collect<T>(stream: AsyncIterable<T>): Promise<T[]> {
  const items: T[] = []
  for await (const item of stream) items.push(item)
  return items
}

describe("OpenAI's SDK", () => {
  const connect = (): OpenAI => new OpenAI({ apiKey: 'any', baseURL: `${upstream.url}/v1`, maxRetries: 0 })

  it('creates a completion that quotes the user, the same text every time', async () => {
    const request = { model, messages: user('good morning') }
    const first = await connect().chat.completions.create(request)
    const second = await connect().chat.completions.create(request)
    const choice = first.choices[0]
    expect(choice?.message.content).toContain('"good morning"')
    expect(choice).toMatchObject({ index: 0, finish_reason: 'stop', logprobs: null })
    expect(choice?.message).toMatchObject({ role: 'assistant', refusal: null })
    expect(second.choices[0]?.message.content).toBe(choice?.message.content)
    expect(second.id).not.toBe(first.id)
    expect(first.usage?.total_tokens).toBe(
      (first.usage?.prompt_tokens ?? 0) + (first.usage?.completion_tokens ?? 0),
    )
    expect(first.usage?.prompt_tokens_details?.cached_tokens).toBe(0)
    expect(first._request_id).toMatch(/^req_/)
  })

  it('streams the same text, with usage null until the extra chunk', async () => {
    const request = { model, messages: user('stream please') }
    const whole = await connect().chat.completions.create(request)
    const stream = await connect().chat.completions.create({
      ...request,
      stream: true,
      stream_options: { include_usage: true },
    })
    const chunks = await collect(stream)
    const text = chunks.map((chunk) => chunk.choices[0]?.delta.content ?? '').join('')
    expect(text).toBe(whole.choices[0]?.message.content)
    expect(chunks.length).toBeGreaterThan(10)
    expect(new Set(chunks.map((chunk) => chunk.id)).size).toBe(1)
    expect(chunks.slice(0, -1).every((chunk) => chunk.usage === null && chunk.choices.length === 1)).toBe(
      true,
    )
    expect(chunks.at(-1)).toMatchObject({ choices: [], usage: whole.usage })
    expect(chunks[0]?.choices[0]?.delta.role).toBe('assistant')
    expect(chunks.filter((chunk) => chunk.choices[0]?.delta.role !== undefined)).toHaveLength(1)
  })

  it('sends no usage member when it is not asked for', async () => {
    const stream = await connect().chat.completions.create({ model, messages: user('hi'), stream: true })
    const chunks = await collect(stream)
    expect(chunks.some((chunk) => 'usage' in chunk)).toBe(false)
    expect(chunks.at(-1)?.choices[0]?.finish_reason).toBe('stop')
  })

  it('satisfies the stream helper, also with two choices and log probabilities', async () => {
    const stream = connect().chat.completions.stream({
      model,
      messages: user('twice'),
      n: 2,
      logprobs: true,
      top_logprobs: 2,
    })
    const completion = await stream.finalChatCompletion()
    expect(completion.choices.map((choice) => choice.index)).toEqual([0, 1])
    for (const choice of completion.choices) {
      expect(choice.message.content).toContain('"twice"')
      const tokens = choice.logprobs?.content?.map((entry) => entry.token).join('')
      expect(tokens).toBe(choice.message.content)
      expect(choice.logprobs?.content?.[0]?.top_logprobs).toHaveLength(2)
    }
  })

  it('runs a tool loop and quotes the result', async () => {
    const seen: unknown[] = []
    const runner = connect().chat.completions.runTools({
      model,
      messages: user('use the tool'),
      stream: true,
      tools: [
        zodFunction({
          name: 'get_weather',
          parameters: z.object({ city: z.string(), days: z.int().min(3) }),
          function: (input) => {
            seen.push(input)
            return 'sunny and mild'
          },
        }),
      ],
    })
    expect(await runner.finalContent()).toContain('"sunny and mild"')
    expect(seen).toEqual([{ city: 'example', days: 3 }])
  })

  it('calls every tool with gapless indexes, one when parallel calls are off', async () => {
    const request = { model, messages: user('call every tool'), tools: [weather, clock] }
    const both = await connect().chat.completions.stream(request).finalChatCompletion()
    const calls = both.choices[0]?.message.tool_calls ?? []
    expect(calls.map((call) => call.type === 'function' && call.function.name)).toEqual([
      'get_weather',
      'get_time',
    ])
    expect(both.choices[0]?.finish_reason).toBe('tool_calls')
    const one = await connect().chat.completions.create({ ...request, parallel_tool_calls: false })
    expect(one.choices[0]?.message.tool_calls).toHaveLength(1)
    expect(one.choices[0]?.message.content).toBeNull()
  })

  it('follows the tool choice', async () => {
    const ask = async (choice: OpenAI.ChatCompletionToolChoiceOption, text = 'hello') => {
      const request = { model, messages: user(text), tools: [weather, clock], tool_choice: choice }
      return (await connect().chat.completions.create(request)).choices[0]
    }
    expect((await ask('auto'))?.message.tool_calls).toBeUndefined()
    expect((await ask('none', 'use a tool'))?.message.tool_calls).toBeUndefined()
    expect((await ask('required'))?.finish_reason).toBe('tool_calls')
    const named = await ask({ type: 'function', function: { name: 'get_time' } })
    expect(named?.message.tool_calls?.[0]).toMatchObject({ function: { name: 'get_time', arguments: '{}' } })
    expect(named?.finish_reason).toBe('stop')
  })

  it('calls a custom tool with free text, whole and streamed', async () => {
    const tools: OpenAI.ChatCompletionTool[] = [{ type: 'custom', custom: { name: 'run' } }]
    const request = { model, messages: user('run the tool'), tools }
    const whole = await connect().chat.completions.create(request)
    expect(whole.choices[0]?.message.tool_calls?.[0]).toMatchObject({
      type: 'custom',
      custom: { input: 'example' },
    })
    const chunks = await collect(await connect().chat.completions.create({ ...request, stream: true }))
    expect(JSON.stringify(chunks)).toContain('"custom":{"name":"run","input":""}')
  })

  it('answers JSON that satisfies the schema asked for', async () => {
    const Schema = z.object({
      city: z.string(),
      days: z.int(),
      tags: z.array(z.enum(['a', 'b'])),
      inner: z.object({ ok: z.boolean() }),
    })
    const format = zodResponseFormat(Schema, 'weather')
    const parsed = await connect().chat.completions.parse({
      model,
      messages: user('json'),
      response_format: format,
    })
    expect(Schema.parse(parsed.choices[0]?.message.parsed).inner.ok).toBe(true)
    const streamed = connect().chat.completions.stream({
      model,
      messages: user('json'),
      response_format: format,
    })
    expect(Schema.safeParse((await streamed.finalChatCompletion()).choices[0]?.message.parsed).success).toBe(
      true,
    )
    const loose = await connect().chat.completions.create({
      model,
      messages: user('x as JSON'),
      response_format: { type: 'json_object' },
    })
    expect(JSON.parse(loose.choices[0]?.message.content ?? '')).toEqual({ answer: 'x as JSON' })
  })

  it('cuts at a stop sequence and at the token limit', async () => {
    const stopped = await connect().chat.completions.create({
      model,
      messages: user('hi'),
      stop: ['You said'],
    })
    expect(stopped.choices[0]).toMatchObject({ finish_reason: 'stop', message: { content: 'Hello! ' } })
    const cut = await connect().chat.completions.create({
      model,
      messages: user('hi'),
      max_completion_tokens: 2,
    })
    expect(cut.choices[0]).toMatchObject({ finish_reason: 'length', message: { content: 'Hello! You' } })
    expect(cut.usage?.completion_tokens).toBe(2)
  })

  it('reports reasoning tokens, and cached tokens for a long prompt seen before', async () => {
    const thought = await connect().chat.completions.create({
      model: 'scripted-chat-reasoning',
      messages: user('hi'),
      reasoning_effort: 'high',
    })
    const reasoning = thought.usage?.completion_tokens_details?.reasoning_tokens ?? 0
    expect(reasoning).toBeGreaterThan(0)
    expect(thought.usage?.completion_tokens).toBeGreaterThan(reasoning)
    const messages = user('long prompt '.repeat(600))
    const cold = await connect().chat.completions.create({ model, messages })
    const warm = await connect().chat.completions.create({ model, messages: [...messages, ...user('more')] })
    expect(cold.usage?.prompt_tokens_details?.cached_tokens).toBe(0)
    expect(warm.usage?.prompt_tokens_details?.cached_tokens).toBeGreaterThanOrEqual(1024)
    expect((warm.usage?.prompt_tokens_details?.cached_tokens ?? 1) % 128).toBe(0)
  })

  it('answers legacy completions, whole and streamed', async () => {
    const request = { model: 'gpt-3.5-turbo-instruct', prompt: ['one', 'two'], max_tokens: 4, logprobs: 1 }
    const whole = await connect().completions.create(request)
    expect(whole.choices.map((choice) => choice.index)).toEqual([0, 1])
    expect(whole.choices[0]).toMatchObject({ finish_reason: 'length', text: ' continues here. You wrote:' })
    expect(whole.choices[0]?.logprobs?.tokens?.join('')).toBe(whole.choices[0]?.text)
    const stream = await connect().completions.create({
      ...request,
      stream: true,
      stream_options: { include_usage: true },
    })
    const chunks = await collect(stream)
    const second = chunks
      .map((chunk) => chunk.choices.find((choice) => choice.index === 1)?.text ?? '')
      .join('')
    expect(second).toBe(whole.choices[1]?.text)
    expect(chunks.at(-1)).toMatchObject({ choices: [], usage: whole.usage })
    expect(new Set(chunks.map((chunk) => chunk.id)).size).toBe(1)
  })

  it.each([
    ['error-400', 400, 'unsupported_value'],
    ['error-404', 404, 'model_not_found'],
    ['error-429', 429, 'rate_limit_exceeded'],
    ['error-500', 500, null],
    ['error-529', 529, null],
  ])('raises %s as its class', async (script, status, code) => {
    const failure = connect().chat.completions.create({ model, messages: user(`script:${script}`) })
    await expect(failure).rejects.toMatchObject({ status, code })
    await expect(failure).rejects.toBeInstanceOf(OpenAI.APIError)
  })

  it('names missing members', async () => {
    const body = { model } as OpenAI.ChatCompletionCreateParamsNonStreaming
    await expect(connect().chat.completions.create(body)).rejects.toMatchObject({
      status: 400,
      param: 'messages',
    })
  })

  it.each(['mid-stream-error', 'first-event-error'])('raises the in-band error of %s', async (script) => {
    const stream = await connect().chat.completions.create({
      model,
      messages: user(`script:${script}`),
      stream: true,
    })
    await expect(collect(stream)).rejects.toMatchObject({ type: 'server_error' })
  })

  it.each(['mid-stream-cut', 'mid-stream-end'])('makes the stream helper fail on %s', async (script) => {
    const stream = connect().chat.completions.stream({ model, messages: user(`script:${script}`) })
    await expect(stream.finalChatCompletion()).rejects.toThrow()
  })

  it.each([
    'canned',
    'no-done',
    'split-frames',
    'crlf',
    'unknown-fields',
    'usage-on-last-chunk',
    'large-answer bytes=100000',
  ])('streams %s to its end through the helper', async (script) => {
    const stream = connect().chat.completions.stream({ model, messages: user(`script:${script}`) })
    const completion = await stream.finalChatCompletion()
    const expected = script.startsWith('large')
      ? /^large answer .{99987}$/
      : /^This is the scripted answer, with an é and a 🦉.$/
    expect(completion.choices[0]?.message.content).toMatch(expected)
  })

  it('streams a refusal apart from content', async () => {
    const streamed = connect().chat.completions.stream({ model, messages: user('script:refusal') })
    expect((await streamed.finalChatCompletion()).choices[0]?.message.refusal).toBe('No.')
    const whole = await connect().chat.completions.create({ model, messages: user('script:refusal') })
    expect(whole.choices[0]?.message).toMatchObject({ content: null, refusal: 'No.' })
  })
})
