import Anthropic from '@anthropic-ai/sdk'
import OpenAI from 'openai'
import { describe, expect, it } from 'vitest'
import { chat, openStream, post, register, upstream, useUpstream } from './model-upstream-harness.ts'

useUpstream()

type Json = Record<string, unknown>

const openai = () => new OpenAI({ apiKey: 'x', baseURL: `${upstream.url}/v1`, maxRetries: 0 })
const anthropic = () => new Anthropic({ apiKey: 'x', baseURL: upstream.url, maxRetries: 0 })

const ask = (content: string) => ({ model: 'm', messages: [{ role: 'user' as const, content }] })
const messagesBody = (content: string, more: Json = {}) => ({ ...ask(content), max_tokens: 2000, ...more })

/** Ids and signatures are new in every answer. */
const stable = (value: unknown): unknown =>
  JSON.parse(
    JSON.stringify(value)
      .replace(/\b(call|toolu|srvtoolu|msg|chatcmpl)[_-]\w+/g, '$1')
      .replace(/"(signature|data)":"[^"]{20,}"/g, '"$1":"signed"'),
  )

async function bothChats(text: string): Promise<{ streamed: Json; whole: Json }> {
  const include = { stream_options: { include_usage: true } }
  const stream = openai().chat.completions.stream({ ...ask(text), ...include })
  const streamed = await stream.finalChatCompletion()
  const whole = await openai().chat.completions.create(ask(text))
  const seen = (completion: OpenAI.ChatCompletion) => {
    const [choice] = completion.choices
    const { content, refusal, tool_calls: calls, function_call: call } = choice?.message ?? {}
    return stable({ content, refusal, calls, call, finish: choice?.finish_reason, usage: completion.usage })
  }
  return { streamed: seen(streamed) as Json, whole: seen(whole) as Json }
}

async function bothMessages(text: string): Promise<{ streamed: Json; whole: Json }> {
  const streamed = await anthropic().messages.stream(messagesBody(text)).finalMessage()
  const whole = await anthropic().messages.create(messagesBody(text))
  // The helper adds a member of its own.
  const { parsed_output: _, ...message } = streamed
  return { streamed: stable(message) as Json, whole: stable(whole) as Json }
}

const inBoth = [
  ['parallel-tools', 'tool_calls', 'tool_use'],
  ['whole-arguments', 'tool_calls', 'tool_use'],
  ['empty-arguments', 'tool_calls', 'tool_use'],
  ['text-before-tools', 'tool_calls', 'tool_use'],
  ['text-after-tools', 'tool_calls', 'tool_use'],
  ['thinking-tools', 'tool_calls', 'tool_use'],
  ['function-call', 'function_call', 'tool_use'],
  ['cut-arguments', 'length', 'max_tokens'],
  ['thinking', 'stop', 'end_turn'],
  ['thinking-as-reasoning', 'stop', 'end_turn'],
  ['thinking-omitted', 'stop', 'end_turn'],
  ['redacted-thinking', 'stop', 'end_turn'],
  ['citations', 'stop', 'end_turn'],
  ['web-search', 'stop', 'end_turn'],
  ['web-search-error', 'stop', 'end_turn'],
  ['max-tokens', 'length', 'max_tokens'],
  ['context-window', 'length', 'model_context_window_exceeded'],
  ['stop-sequence', 'stop', 'stop_sequence'],
  ['content-filter', 'content_filter', 'refusal'],
  ['refusal-deltas', 'stop', 'refusal'],
  ['refusal-after-text', 'stop', 'refusal'],
  ['empty-answer', 'stop', 'end_turn'],
  ['usage-full', 'stop', 'end_turn'],
  ['azure', 'stop', 'end_turn'],
  ['role-only', 'stop', 'end_turn'],
  ['finish-with-content', 'stop', 'end_turn'],
  ['unknown-parts', 'stop', 'end_turn'],
  ['several-texts', 'stop', 'end_turn'],
  ['pause-turn', 'stop', 'pause_turn'],
] as const

describe('rich answers', () => {
  it.each(inBoth)('say the same streamed and whole: %s', async (name, finish, stop) => {
    const completions = await bothChats(`script:${name}`)
    expect(completions.streamed).toEqual(completions.whole)
    expect(completions.whole.finish).toBe(finish)
    const messages = await bothMessages(`script:${name}`)
    expect(messages.streamed).toEqual(messages.whole)
    expect(messages.whole.stop_reason).toBe(stop)
  })

  it('alternate the fragments of two calls, or leave out their index', async () => {
    const text = await (await chat('script:parallel-tools', { stream: true })).text()
    const indexes = [...text.matchAll(/"tool_calls":\[\{"index":(\d),"function"/g)].map(([, index]) => index)
    expect(indexes.slice(0, 4)).toEqual(['0', '1', '0', '1'])
    const bare = await (await chat('script:indexless-tools', { stream: true })).text()
    expect(bare).toContain('"tool_calls":[{"id":')
    expect(bare).not.toContain('"tool_calls":[{"index"')
  })

  it('call the tools on offer, and end in text once their results are there', async () => {
    const schema = { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] }
    const tools = [{ name: 'weather_of', input_schema: schema }]
    const first = await (await post('/v1/messages', 'script:parallel-tools', { tools })).json()
    const { content } = first as { content: { id: string; name: string; input: unknown }[] }
    expect(content.map(({ name, input }) => [name, input])).toEqual([
      ['weather_of', { city: 'example' }],
      ['weather_of', { city: 'example' }],
    ])
    const results = content.map(({ id }, index) => ({
      type: 'tool_result',
      tool_use_id: id,
      content: `result ${index}`,
    }))
    const messages = [
      { role: 'user', content: 'script:parallel-tools' },
      { role: 'assistant', content },
      { role: 'user', content: results },
    ]
    const second = await (await post('/v1/messages', '', { tools, messages })).json()
    expect(second).toMatchObject({
      stop_reason: 'end_turn',
      content: [{ type: 'text', text: 'The tools answered: "result 0", "result 1".' }],
    })
  })

  it('show thinking under either name, or only that it took tokens', async () => {
    const message = async (script: string) => {
      const completion = (await (await chat(`script:${script}`)).json()) as {
        choices: { message: Json }[]
        usage: unknown
      }
      return { ...completion.choices[0]?.message, usage: completion.usage }
    }
    expect(await message('thinking')).toMatchObject({ reasoning_content: expect.stringContaining('🦉') })
    expect(await message('thinking-as-reasoning')).toMatchObject({ reasoning: expect.any(String) })
    const hidden = await message('thinking-omitted')
    expect(hidden).not.toHaveProperty('reasoning_content')
    expect(hidden).toMatchObject({ usage: { completion_tokens_details: { reasoning_tokens: 9 } } })
    const { streamed } = await bothMessages('script:thinking-omitted')
    expect(streamed.content).toMatchObject([{ type: 'thinking', thinking: '', signature: 'signed' }, {}])
  })

  it('report usage late, with nulls or not at all', async () => {
    const counted = {
      input_tokens: 100,
      output_tokens: 50,
      cache_creation_input_tokens: 50,
      cache_read_input_tokens: 400,
    }
    for (const script of ['usage-late', 'usage-nulls']) {
      const message = await anthropic()
        .messages.stream(messagesBody(`script:${script}`))
        .finalMessage()
      expect(message.usage).toMatchObject(counted)
    }
    const nulls = await (await post('/v1/messages', 'script:usage-nulls', { stream: true })).text()
    expect(nulls).toContain('"usage":{"input_tokens":null')
    const late = await (await post('/v1/messages', 'script:usage-late', { stream: true })).text()
    expect(late).toContain('"usage":{"input_tokens":0,"output_tokens":0}')
    const include = { stream: true, stream_options: { include_usage: true } }
    const [last] = (await (await chat('script:usage-late', include)).text()).split('\n\n').slice(-3)
    expect(last).toMatch(/"finish_reason":"stop"\}\],"usage":\{"prompt_tokens":550/)
    for (const path of ['/v1/messages', '/v1/chat/completions']) {
      expect(await (await post(path, 'script:usage-missing', { stream: true })).text()).not.toMatch(
        /"usage":\{/,
      )
    }
  })

  it('stop at the first of the stop sequences that were sent', async () => {
    const message = await anthropic().messages.create(
      messagesBody('script:stop-sequence', { stop_sequences: ['###', 'x'] }),
    )
    expect(message).toMatchObject({ stop_reason: 'stop_sequence', stop_sequence: '###' })
  })
})

describe('a paused turn', () => {
  it.each([2, 3])('goes on with its content sent back, over %i exchanges', async (exchanges) => {
    const messages: Anthropic.MessageParam[] = [
      { role: 'user', content: `script:pause-turn exchanges=${exchanges}` },
    ]
    const reasons: unknown[] = []
    for (let exchange = 0; exchange < exchanges; exchange += 1) {
      const body = { model: 'm', max_tokens: 2000, messages }
      const answer =
        exchange % 2 === 0
          ? await anthropic().messages.create(body)
          : await anthropic().messages.stream(body).finalMessage()
      reasons.push(answer.stop_reason)
      messages.push({ role: 'assistant', content: answer.content })
    }
    expect(reasons).toEqual([...Array(exchanges - 1).fill('pause_turn'), 'end_turn'])
  })

  it('refuses content that lacks something', async () => {
    const question: Anthropic.MessageParam = { role: 'user', content: 'script:pause-turn' }
    const body = { model: 'm', max_tokens: 2000 }
    const paused = await anthropic().messages.create({ ...body, messages: [question] })
    const missing: Anthropic.MessageParam = { role: 'assistant', content: paused.content.slice(1) }
    const failure = anthropic().messages.create({ ...body, messages: [question, missing] })
    await expect(failure).rejects.toMatchObject({ status: 400 })
  })
})

describe('call-tool', () => {
  const text =
    'Do it. script:call-tool tool=read_file arguments={"path":"/a {b}.txt","deep":{"n":1}} and then stop.'
  const input = { path: '/a {b}.txt', deep: { n: 1 } }

  it('calls the tool with its arguments and quotes the result, on messages', async () => {
    const tools = [
      { name: 'other', input_schema: { type: 'object' } },
      { name: 'read_file', input_schema: { type: 'object' } },
    ]
    const first = (await (await post('/v1/messages', text, { tools })).json()) as {
      content: { id: string }[]
    }
    expect(first.content).toMatchObject([{ type: 'tool_use', name: 'read_file', input }])
    const result = [{ type: 'tool_result', tool_use_id: first.content[0]?.id, content: 'the contents' }]
    const messages = [
      { role: 'user', content: text },
      { role: 'assistant', content: first.content },
      { role: 'user', content: result },
    ]
    const second = await (await post('/v1/messages', '', { tools, messages })).json()
    expect(second).toMatchObject({ content: [{ text: expect.stringContaining('the contents') }] })
  })

  it('does so on chat, and says in text that a tool is not on offer', async () => {
    const tools = [{ type: 'function', function: { name: 'read_file', parameters: { type: 'object' } } }]
    const first = (await (await chat(text, { tools })).json()) as {
      choices: { message: { tool_calls: { id: string; function: { arguments: string } }[] } }[]
    }
    const message = first.choices[0]?.message
    expect(JSON.parse(message?.tool_calls[0]?.function.arguments ?? '')).toEqual(input)
    const messages = [
      { role: 'user', content: text },
      message,
      { role: 'tool', tool_call_id: message?.tool_calls[0]?.id, content: 'the contents' },
    ]
    expect(await (await chat('', { tools, messages })).text()).toContain('the contents')
    expect(await (await chat(text)).text()).toContain('There is no tool')
  })
})

describe('registered scripts', () => {
  it('write any bytes', async () => {
    const bytes = Buffer.from([0xff, 0xc3])
    await register('any-bytes', { steps: [{ chunk: 'é' }, { chunkBase64: bytes.toString('base64') }] })
    const chunks: Buffer[] = []
    for await (const chunk of await openStream('script:any-bytes')) chunks.push(chunk as Buffer)
    expect(Buffer.concat(chunks)).toEqual(Buffer.concat([Buffer.from('é'), bytes]))
  })

  it('write frames or JSON, streamed or whole as requested', async () => {
    await register('two-forms', {
      streamed: [{ sse: ['data: {"a":"é"}\n\n', 'data: [DONE]\n\n'] }],
      whole: [{ json: { answer: [1, null] }, status: 201 }],
    })
    const whole = await chat('script:two-forms')
    expect([whole.status, whole.headers.get('content-type'), await whole.json()]).toEqual([
      201,
      'application/json',
      { answer: [1, null] },
    ])
    expect(await (await chat('script:two-forms', { stream: true })).text()).toBe(
      'data: {"a":"é"}\n\ndata: [DONE]\n\n',
    )
  })
})
