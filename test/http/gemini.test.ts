import type Anthropic from '@anthropic-ai/sdk'
import { beforeAll, describe, expect, it } from 'vitest'
import { SCRIPTED_GEMINI } from '../../scripts/local/model-upstream/vendors/gemini/gemini.ts'
import { gateway } from '../harness/gateway.ts'
import { auditEntryOf } from '../harness/records.ts'
import {
  failureOf,
  newestAnthropic,
  newestOpenAi,
  openAiUrl,
  SCRIPTED_TEXT,
  textOf,
  userMessage,
} from '../harness/sdk-clients.ts'
import { administrator, createTenant, type Tenant, uniqueName } from '../harness/tenant.ts'
import { marker, registerScript, seenRequest, seenRequests } from '../harness/upstream.ts'

// Official clients of other protocols on Gemini, whose own protocol no caller speaks.

const model = 'scripted-gemini'
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

const PARAMETERS = { type: 'object' as const, properties: { city: { type: 'string' } } }
const WEATHER = { name: 'get_weather', input_schema: PARAMETERS }
const FUNCTION = { type: 'function' as const, function: { name: 'get_weather', parameters: PARAMETERS } }

interface SentContent {
  role: string
  parts: Array<{ functionCall?: object; thoughtSignature?: string; text?: string }>
}

/** The contents of the last request with a text. */
async function sentContents(text: string): Promise<SentContent[]> {
  const seen = await seenRequests(gateway(), text)
  return (JSON.parse(seen.at(-1)?.body ?? '{}') as { contents: SentContent[] }).contents
}

const SIGNATURE = expect.stringMatching(/^[A-Za-z0-9+/]{43}=$/)

describe('a text of Gemini', () => {
  it('answers chat completions, whole and streamed', async () => {
    const request = { model, messages: userMessage('script:canned') }
    const whole = await openai().chat.completions.create(request)
    expect(whole.choices[0]?.message.content).toBe(SCRIPTED_TEXT)
    const stream = openai().chat.completions.stream({ ...request, stream_options: { include_usage: true } })
    const { choices, usage } = await stream.finalChatCompletion()
    expect(choices[0]?.message.content).toBe(SCRIPTED_TEXT)
    expect(usage?.completion_tokens_details?.reasoning_tokens).toBe(8)
  })

  it('answers messages, whole and streamed, and the call is charged with its thoughts', async () => {
    const { data, response } = await anthropic().messages.create(ask('script:canned')).withResponse()
    expect([data.model, textOf(data), data.stop_reason]).toEqual([model, SCRIPTED_TEXT, 'end_turn'])
    const { record } = await auditEntryOf(gateway(), tenant, response.headers.get('x-request-id'))
    const { usage, cost, provenance } = record as {
      usage: { input: number; output: number; reasoning: number }
      cost: number
      provenance: string
    }
    expect(usage).toMatchObject({
      input: data.usage.input_tokens,
      output: data.usage.output_tokens,
      reasoning: 8,
    })
    expect(cost).toBe(usage.input * 2 + usage.output * 10)
    expect(provenance).toBe('reported')
    const message = await anthropic().messages.stream(ask('script:canned')).finalMessage()
    expect([textOf(message), message.stop_reason]).toEqual([SCRIPTED_TEXT, 'end_turn'])
  })

  it('answers responses, whole and streamed', async () => {
    const whole = await openai().responses.create({ model, input: 'script:canned' })
    expect(whole.output_text).toBe(SCRIPTED_TEXT)
    const stream = openai().responses.stream({ model, input: 'script:canned' })
    expect((await stream.finalResponse()).output_text).toBe(SCRIPTED_TEXT)
  })

  it('shows its thoughts where they are requested', async () => {
    const thinking = { type: 'enabled' as const, budget_tokens: 1_024 }
    const { content } = await anthropic().messages.create(ask('script:canned', { thinking }))
    expect(content[0]).toMatchObject({ type: 'thinking', thinking: '**Considering the request**' })
  })
})

describe('a call of a tool, whose signature Gemini demands,', () => {
  it('works for callers of chat completions', async () => {
    const text = marker()
    const first = await openai().chat.completions.create({
      model,
      messages: userMessage(`script:tool-call ${text}`),
      tools: [FUNCTION],
    })
    const message = first.choices[0]?.message
    const [call] = message?.tool_calls ?? []
    if (!message || !call) throw new Error('no call')
    const next = (made: typeof message) =>
      openai().chat.completions.create({
        model,
        messages: [
          ...userMessage(`script:canned ${text}`),
          made,
          { role: 'tool', tool_call_id: call.id, content: 'Sunny' },
        ],
        tools: [FUNCTION],
      })
    expect((await next(message)).choices[0]?.message.content).toBe(SCRIPTED_TEXT)
    expect((await sentContents(text))[1]?.parts.at(-1)?.thoughtSignature).toEqual(SIGNATURE)
    // Most clients drop members that they do not know.
    const { id, type, function: made } = call as typeof call & { function: object }
    const bare = { ...message, tool_calls: [{ id, type, function: made }] } as typeof message
    expect((await next(bare)).choices[0]?.message.content).toBe(SCRIPTED_TEXT)
    const skipped = 'skip_thought_signature_validator'
    expect((await sentContents(text))[1]?.parts.at(-1)?.thoughtSignature).toBe(skipped)
  })

  it.each([false, true])('works for callers of messages, streamed %s', async (isStreamed) => {
    const text = marker()
    const request = ask(`script:tool-call ${text}`, { tools: [WEATHER] })
    const first = isStreamed
      ? await anthropic().messages.stream(request).finalMessage()
      : await anthropic().messages.create(request)
    const call = first.content.find((block) => block.type === 'tool_use')
    const second = await anthropic().messages.create({
      ...ask('', { tools: [WEATHER] }),
      messages: [
        { role: 'user', content: `script:canned ${text}` },
        { role: 'assistant', content: first.content },
        { role: 'user', content: [{ type: 'tool_result', tool_use_id: call?.id ?? '', content: 'Sunny' }] },
      ],
    })
    expect(textOf(second)).toBe(SCRIPTED_TEXT)
    const contents = await sentContents(text)
    expect(contents[1]?.parts.find((part) => part.functionCall)?.thoughtSignature).toEqual(SIGNATURE)
  })

  it('works for callers of responses, whose reasoning items have it', async () => {
    const text = marker()
    const tools = [{ type: 'function' as const, name: 'get_weather', parameters: PARAMETERS, strict: false }]
    const first = await openai().responses.create({ model, input: `script:tool-call ${text}`, tools })
    const call = first.output.find((item) => item.type === 'function_call')
    if (call?.type !== 'function_call') throw new Error('no call')
    const second = await openai().responses.create({
      model,
      tools,
      previous_response_id: first.id,
      input: [{ type: 'function_call_output', call_id: call.call_id, output: `Sunny script:canned ${text}` }],
    })
    expect(second.status).toBe('completed')
    const contents = await sentContents(text)
    expect(contents[1]?.parts.find((part) => part.functionCall)?.thoughtSignature).toEqual(SIGNATURE)
  })
})

describe('a conversation that moves', () => {
  it.each(['scripted-chat', 'scripted-messages'])(
    'from Gemini to %s leaves signatures behind',
    async (next) => {
      const text = marker()
      const messages = userMessage(`script:tool-call ${text}`)
      const first = await openai().chat.completions.create({ model, messages, tools: [FUNCTION] })
      const message = first.choices[0]?.message
      const [call] = message?.tool_calls ?? []
      if (!message || !call) throw new Error('no call')
      expect(call).toHaveProperty('extra_content')
      const result = { role: 'tool' as const, tool_call_id: call.id, content: 'Sunny' }
      const ofChat = await openai().chat.completions.create({
        model: next,
        messages: [...userMessage(`script:canned ${text} chat`), message, result],
        tools: [FUNCTION],
      })
      expect(ofChat.choices[0]?.message.content).toBe(SCRIPTED_TEXT)
      const thinking = { type: 'enabled' as const, budget_tokens: 1_024 }
      const thought = await anthropic().messages.create(
        ask(`script:tool-call ${text}`, { tools: [WEATHER], thinking }),
      )
      const use = thought.content.find((block) => block.type === 'tool_use')
      expect(thought.content[0]?.type).toBe('thinking')
      const ofMessages = await anthropic().messages.create({
        ...ask('', { tools: [WEATHER] }),
        model: next,
        messages: [
          { role: 'user', content: `script:canned ${text} messages` },
          { role: 'assistant', content: thought.content },
          { role: 'user', content: [{ type: 'tool_result', tool_use_id: use?.id ?? '', content: 'Sunny' }] },
        ],
      })
      expect(textOf(ofMessages)).toBe(SCRIPTED_TEXT)
      for (const surface of ['chat', 'messages']) {
        const { path, body } = await seenRequest(gateway(), `${text} ${surface}`)
        expect(path).toMatch(/^\/v1\//)
        expect(body).not.toContain('headgate.')
      }
    },
  )

  it('from a Claude to Gemini brings none', async () => {
    const text = marker()
    const first = await anthropic().messages.create({
      ...ask(`script:tool-call ${text}`, { tools: [WEATHER] }),
      model: 'scripted-messages',
    })
    const use = first.content.find((block) => block.type === 'tool_use')
    const second = await anthropic().messages.create({
      ...ask('', { tools: [WEATHER] }),
      messages: [
        { role: 'user', content: `script:canned ${text}` },
        { role: 'assistant', content: first.content },
        { role: 'user', content: [{ type: 'tool_result', tool_use_id: use?.id ?? '', content: 'Sunny' }] },
      ],
    })
    expect(textOf(second)).toBe(SCRIPTED_TEXT)
  })
})

describe('what Gemini does not answer', () => {
  it('is a refusal where the prompt is blocked', async () => {
    const blocked = await anthropic().messages.create(ask('gemini-blocked'))
    expect(blocked.stop_reason).toBe('refusal')
    const { choices } = await openai().chat.completions.create({
      model,
      messages: userMessage('gemini-blocked'),
    })
    expect(choices[0]?.finish_reason).toBe('content_filter')
  })

  it('is an error where its call cannot be read', async () => {
    const error = await failureOf(anthropic().messages.create(ask('script:canned gemini-malformed')))
    expect(error.status).toBeGreaterThanOrEqual(500)
    expect(String(error.message)).toContain('MALFORMED_FUNCTION_CALL')
    const streamed = anthropic().messages.stream(ask('script:canned gemini-malformed')).finalMessage()
    expect(JSON.stringify((await failureOf(streamed)).error)).toContain('MALFORMED_FUNCTION_CALL')
  })

  it.each([
    ['error-400', 400, 'invalid_request_error'],
    ['error-429', 429, 'rate_limit_error'],
    ['error-500', 500, 'api_error'],
  ])('is an error of messages for %s', async (script, status, type) => {
    const error = await failureOf(anthropic().messages.create(ask(`script:${script}`)))
    expect([error.status, error.type]).toEqual([status, type])
    expect(String(error.message)).not.toContain('answered with status')
  })

  it('is Google’s own error on chat completions', async () => {
    const call = openai().chat.completions.create({ model, messages: userMessage('script:error-400') })
    expect((await failureOf(call)).error).toMatchObject({ code: 400, status: 'INVALID_ARGUMENT' })
  })

  it('ends a stream in the middle, by an error or a cut', async () => {
    const chunk = (delta: object) =>
      `data: ${JSON.stringify({ choices: [{ index: 0, delta, finish_reason: null }] })}\n\n`
    const streaming = { headers: { 'content-type': 'text/event-stream' } }
    const begun = chunk({ role: 'assistant', content: 'He' })
    const failing = 'data: {"error":{"message":"Slow down"}}\n\n'
    const failed = await registerScript(gateway(), [streaming, { sse: [begun, failing] }, { end: true }])
    const cut = await registerScript(gateway(), [streaming, { sse: [begun] }, { destroy: true }])
    for (const [script, text] of [
      [failed, 'Slow down'],
      [cut, 'broke off'],
    ]) {
      const error = await failureOf(
        anthropic()
          .messages.stream(ask(String(script)))
          .finalMessage(),
      )
      expect(JSON.stringify(error.error ?? String(error))).toContain(text)
    }
  })
})

describe('a request to Gemini', () => {
  it('goes to the method of the model, with the key in a header', async () => {
    const text = marker()
    await anthropic()
      .messages.stream(ask(`script:canned ${text}`, { temperature: 0.5, top_k: 3 }))
      .finalMessage()
    const { path, headers, body } = await seenRequest(gateway(), text)
    expect(path).toContain(`/v1beta/models/${SCRIPTED_GEMINI.model}:streamGenerateContent`)
    expect(headers['x-goog-api-key']).toBeDefined()
    expect(Object.keys(headers)).not.toContain('authorization')
    expect(JSON.parse(body)).toEqual({
      contents: [{ role: 'user', parts: [{ text: `script:canned ${text}` }] }],
      generationConfig: { temperature: 0.5, topK: 3, maxOutputTokens: 2_000 },
    })
  })

  it('names what was dropped, and is refused for what would change its meaning', async () => {
    const { response } = await openai()
      .chat.completions.create({ model, messages: userMessage('script:canned'), user: 'u', verbosity: 'low' })
      .withResponse()
    expect(response.headers.get('x-headgate-dropped')?.split(', ').sort()).toEqual(['user', 'verbosity'])
    const streamed = await openai()
      .chat.completions.create({
        model,
        messages: userMessage('script:canned'),
        stream: true,
        temperature: 1,
      })
      .withResponse()
    for await (const _chunk of streamed.data);
    expect(streamed.response.headers.get('x-headgate-dropped')).toBeNull()
    const call = openai().chat.completions.create({ model, messages: userMessage('Hi'), logprobs: true })
    expect((await failureOf(call)).status).toBe(400)
  })

  it('is counted by the counter of the vendor', async () => {
    const { data, response } = await anthropic()
      .messages.countTokens({ model, messages: [{ role: 'user', content: 'How many tokens is this?' }] })
      .withResponse()
    expect(data.input_tokens).toBeGreaterThan(3)
    expect(response.headers.get('x-headgate-token-count')).toBeNull()
  })

  it('with a key that Google does not know is no fault of the caller', async () => {
    const { ask: manage } = administrator(gateway())
    const { data } = await manage<{ data: Array<{ name: string; base_url: string }> }>(
      'GET',
      '/providers?limit=100',
    )
    const base_url = data.find(({ name }) => name === 'scripted-gemini')?.base_url
    const provider = { name: uniqueName('gemini'), kind: 'gemini', base_url, credential: 'AIza-revoked' }
    const { id: provider_id } = await manage<{ id: string }>('POST', '/providers', provider)
    const id = uniqueName('gemini-revoked')
    await manage('PUT', `/models/${id}`, {
      ...{ owned_by: 'test', context_window: 100_000, max_output_tokens: 2_000 },
      prices: { input: 1_000_000, output: 5_000_000 },
      routes: [{ provider_id, upstream_model: SCRIPTED_GEMINI.model }],
    })
    const error = await failureOf(anthropic().messages.create({ ...ask('Hi'), model: id }))
    expect([error.status, error.message]).toEqual([500, expect.stringContaining('refused the gateway')])
    expect(error.message).not.toContain('AIza-revoked')
  })
})
