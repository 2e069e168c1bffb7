import type Anthropic from '@anthropic-ai/sdk'
import type OpenAI from 'openai'
import { beforeAll, describe, expect, it } from 'vitest'
import { gateway } from '../harness/gateway.ts'
import {
  collect,
  failureOf,
  newestAnthropic,
  newestOpenAi,
  openAiUrl,
  SCRIPTED_TEXT,
  textOf,
  userMessage,
} from '../harness/sdk-clients.ts'
import { createTenant, type Tenant } from '../harness/tenant.ts'
import { marker, seenRequests } from '../harness/upstream.ts'
import { answerScript, say, think } from './support/dlp-answers.ts'
import { createVendorModel, namedVendors } from './support/vendor-kinds.ts'

// Official clients on every vendor: tools, streams, pictures, thinking, errors and counts.

let tenant: Tenant
beforeAll(async () => {
  tenant = await createTenant(gateway())
})

const openai = () => new newestOpenAi({ apiKey: tenant.key, baseURL: openAiUrl(), maxRetries: 0 })
const anthropic = () => new newestAnthropic({ apiKey: tenant.key, baseURL: gateway().baseUrl, maxRetries: 0 })

const PARAMETERS = { type: 'object' as const, properties: { city: { type: 'string' } } }
const WEATHER: Anthropic.Tool = { name: 'get_weather', description: 'Weather', input_schema: PARAMETERS }
const FUNCTION: OpenAI.ChatCompletionTool = {
  type: 'function',
  function: { name: 'get_weather', description: 'Weather', parameters: PARAMETERS },
}
const OF_RESPONSES = { type: 'function' as const, name: 'get_weather', parameters: PARAMETERS, strict: false }
/** A picture of one dot. */
const PNG = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=='

describe.each(namedVendors)('%s', (_, vendor) => {
  let model: string
  beforeAll(async () => {
    model = (await createVendorModel(vendor)).model
  })

  const ask = (content: Anthropic.MessageParam['content'], more: object = {}) => ({
    model,
    max_tokens: 2_000,
    messages: [{ role: 'user' as const, content }],
    ...more,
  })
  const lastBody = async (text: string) => (await seenRequests(gateway(), text)).at(-1)?.body ?? ''

  it.each([false, true])('texts on each surface, streamed %s', async (stream) => {
    const chat = { model, messages: userMessage('script:canned') }
    const completion = stream
      ? await openai()
          .chat.completions.stream({ ...chat, stream_options: { include_usage: true } })
          .finalChatCompletion()
      : await openai().chat.completions.create(chat)
    expect([completion.choices[0]?.message.content, completion.choices[0]?.finish_reason]).toEqual([
      SCRIPTED_TEXT,
      'stop',
    ])
    expect(completion.model).toBe(model)
    const messages = anthropic().messages
    const message = stream
      ? await messages.stream(ask('script:canned')).finalMessage()
      : await messages.create(ask('script:canned'))
    expect([message.model, textOf(message), message.stop_reason]).toEqual([model, SCRIPTED_TEXT, 'end_turn'])
    const responses = { model, input: 'script:canned' }
    const response = stream
      ? await openai().responses.stream(responses).finalResponse()
      : await openai().responses.create(responses)
    expect([response.output_text, response.status]).toEqual([SCRIPTED_TEXT, 'completed'])
  })

  it.each([false, true])('a tool and its result for chat completions, streamed %s', async (stream) => {
    const text = marker()
    const request = { model, messages: userMessage(`script:tool-call ${text}`), tools: [FUNCTION] }
    const { choices } = stream
      ? await openai().chat.completions.stream(request).finalChatCompletion()
      : await openai().chat.completions.create(request)
    const message = choices[0]?.message as OpenAI.ChatCompletionMessage
    const [call] = message.tool_calls ?? []
    if (call?.type !== 'function') throw new Error('no call')
    expect([choices[0]?.finish_reason, call.function.name]).toEqual(['tool_calls', 'get_weather'])
    expect(JSON.parse(call.function.arguments)).toEqual(expect.any(Object))
    const second = await openai().chat.completions.create({
      model,
      tools: [FUNCTION],
      messages: [
        ...userMessage(`script:canned ${text}`),
        message,
        { role: 'tool', tool_call_id: call.id, content: `Sunny ${text}` },
      ],
    })
    expect(second.choices[0]?.message.content).toBe(SCRIPTED_TEXT)
    const sent = await lastBody(text)
    expect(sent).toContain(`Sunny ${text}`)
    expect(sent).toContain('get_weather')
  })

  it.each([false, true])('a tool and its result for messages, streamed %s', async (stream) => {
    const text = marker()
    const request = ask(`script:tool-call ${text}`, { tools: [WEATHER] })
    const first = stream
      ? await anthropic().messages.stream(request).finalMessage()
      : await anthropic().messages.create(request)
    const call = first.content.find((block) => block.type === 'tool_use')
    expect([first.stop_reason, call?.name]).toEqual(['tool_use', 'get_weather'])
    const result = { type: 'tool_result' as const, tool_use_id: call?.id ?? '', content: `Sunny ${text}` }
    const second = await anthropic().messages.create({
      ...ask('', { tools: [WEATHER] }),
      messages: [
        { role: 'user', content: `script:canned ${text}` },
        { role: 'assistant', content: first.content },
        { role: 'user', content: [result] },
      ],
    })
    expect(textOf(second)).toBe(SCRIPTED_TEXT)
    expect(await lastBody(text)).toContain(`Sunny ${text}`)
  })

  it.each([false, true])('a tool and its result for responses, streamed %s', async (stream) => {
    const text = marker()
    const request = { model, input: `script:tool-call ${text}`, tools: [OF_RESPONSES] }
    const first = stream
      ? await openai().responses.stream(request).finalResponse()
      : await openai().responses.create(request)
    const call = first.output.find((item) => item.type === 'function_call')
    if (call?.type !== 'function_call') throw new Error('no call')
    const output = `Sunny script:canned ${text}`
    const second = await openai().responses.create({
      model,
      tools: [OF_RESPONSES],
      previous_response_id: first.id,
      input: [{ type: 'function_call_output', call_id: call.call_id, output }],
    })
    expect(second.status).toBe('completed')
    expect(await lastBody(text)).toContain(output)
  })

  it('a picture on each surface', async () => {
    const [text, url] = [marker(), `data:image/png;base64,${PNG}`]
    await openai().chat.completions.create({
      model,
      messages: [
        {
          role: 'user',
          content: [
            { type: 'text', text: `script:canned ${text} chat` },
            { type: 'image_url', image_url: { url } },
          ],
        },
      ],
    })
    await anthropic().messages.create(
      ask([
        { type: 'image', source: { type: 'base64', media_type: 'image/png', data: PNG } },
        { type: 'text', text: `script:canned ${text} messages` },
      ]),
    )
    await openai().responses.create({
      model,
      input: [
        {
          role: 'user',
          content: [
            { type: 'input_text', text: `script:canned ${text} responses` },
            { type: 'input_image', image_url: url, detail: 'auto' },
          ],
        },
      ],
    })
    for (const surface of ['chat', 'messages', 'responses']) {
      expect(await lastBody(`${text} ${surface}`)).toContain(PNG)
    }
  })

  it.each([false, true])('thinking on each surface, streamed %s', async (stream) => {
    const script = await answerScript(vendor.scripts, [think('So it is.'), say('Yes.')])
    // The scripted model of chat completions reasons by its script alone, and takes no effort.
    const isAsked = vendor.wire !== 'chat'
    const request = ask(script, isAsked ? { thinking: { type: 'enabled', budget_tokens: 1_024 } } : {})
    const message = stream
      ? await anthropic().messages.stream(request).finalMessage()
      : await anthropic().messages.create(request)
    const thoughts = message.content.flatMap((block) => (block.type === 'thinking' ? [block.thinking] : []))
    // The scripted Gemini shows a thought of its own as well.
    expect(thoughts.join('')).toContain('So it is.')
    expect(textOf(message)).toBe('Yes.')
    const effort = isAsked ? { reasoning_effort: 'low' as const } : {}
    const chat = { model, messages: userMessage(script), ...effort }
    const parts = stream
      ? (await collect(await openai().chat.completions.create({ ...chat, stream: true }))).map(
          ({ choices }) => choices[0]?.delta,
        )
      : [(await openai().chat.completions.create(chat)).choices[0]?.message]
    // Clients hand on members that their types do not have.
    const known = parts as Array<{ content?: string; reasoning_content?: string } | undefined>
    expect(known.map((part) => part?.content ?? '').join('')).toBe('Yes.')
    expect(known.map((part) => part?.reasoning_content ?? '').join('')).toContain('So it is.')
    const reasoned = { effort: 'low' as const, summary: 'auto' as const }
    const asked = { model, input: script, ...(isAsked && { reasoning: reasoned }) }
    const response = stream
      ? await openai().responses.stream(asked).finalResponse()
      : await openai().responses.create(asked)
    expect(response.output_text).toBe('Yes.')
    const reasoning = response.output.filter((item) => item.type === 'reasoning')
    expect(JSON.stringify(reasoning)).toContain('So it is.')
  })

  it.each([
    ['error-400', 400, newestOpenAi.BadRequestError, newestAnthropic.BadRequestError],
    ['error-429', 429, newestOpenAi.RateLimitError, newestAnthropic.RateLimitError],
    ['error-500', 500, newestOpenAi.InternalServerError, newestAnthropic.InternalServerError],
  ])('%s is an error of each client', async (script, status, ofOpenAi, ofAnthropic) => {
    for (const stream of [false, true]) {
      const chat = openai().chat.completions.create({
        model,
        messages: userMessage(`script:${script}`),
        stream,
      })
      const chatError = await failureOf(chat)
      expect(chatError).toBeInstanceOf(ofOpenAi)
      expect(chatError.status).toBe(status)
      const messagesError = await failureOf(
        stream
          ? anthropic()
              .messages.stream(ask(`script:${script}`))
              .finalMessage()
          : anthropic().messages.create(ask(`script:${script}`)),
      )
      expect(messagesError).toBeInstanceOf(ofAnthropic)
      expect(String(messagesError.message)).not.toContain('answered with status')
      if (status === 429) {
        for (const { headers } of [chatError, messagesError]) {
          expect(Number((headers as Headers).get('retry-after'))).toBeGreaterThanOrEqual(1)
        }
      }
      const response = await openai()
        .responses.create({ model, input: `script:${script}` })
        .then(({ status: ended, error }) => ({ ended, error }))
        .catch((error: { status: number; error: unknown }) => ({ ended: error.status, error: error.error }))
      expect([status, 'failed']).toContain(response.ended)
      expect(response.error).toMatchObject({ message: expect.any(String) })
    }
  })

  it.each(['mid-stream-error', 'mid-stream-cut'])('%s ends a stream of each client', async (script) => {
    const text = `script:${script}`
    const ofChat = openai().chat.completions.stream({ model, messages: userMessage(text) })
    expect(await failureOf(ofChat.finalChatCompletion())).toBeInstanceOf(newestOpenAi.APIError)
    const ofMessages = anthropic().messages.stream(ask(text))
    expect(await failureOf(ofMessages.finalMessage())).toBeInstanceOf(newestAnthropic.APIError)
    const events: Array<{ type: string }> = []
    const stream = await openai().responses.create({ model, input: text, stream: true })
    await (async () => {
      for await (const event of stream) events.push(event)
    })().catch(() => {})
    expect(events.map(({ type }) => type).filter((type) => type === 'response.completed')).toEqual([])
  })

  it('counts the tokens of a request', async () => {
    const count = (content: string) =>
      anthropic().messages.countTokens({ model, messages: [{ role: 'user', content }], tools: [WEATHER] })
    const { input_tokens } = await count('How many tokens is this?')
    expect(input_tokens).toBeGreaterThan(3)
    expect((await count('How many tokens is this? '.repeat(50))).input_tokens).toBeGreaterThan(input_tokens)
  })
})
