import { afterEach, describe, expect, it, vi } from 'vitest'
import { changeMembers } from '../../../../src/gateway/protocols/body-members.ts'
import { chatCompletions } from '../../../../src/gateway/protocols/chat-completions.ts'
import { requestEdits } from '../../../../src/gateway/protocols/request-edits.ts'
import { credentialOf } from '../../../../src/gateway/providers/credential.ts'
import { MAKERS, type MakerKind } from '../../../../src/gateway/providers/makers/makers.ts'
import {
  bodyMembersOf,
  capabilitiesOf,
  PROVIDER_KINDS,
  type Provider,
  speaks,
  transportOf,
} from '../../../../src/gateway/providers/provider.ts'
import { sendToProvider } from '../../../../src/gateway/providers/send-to-provider.ts'
import { chatMessagesOfSteps } from '../../../../src/gateway/translation/requests/responses-chat-messages.ts'
import { TranslatedCall } from '../../../../src/gateway/translation/translated-call.ts'
import { applyEdits, joinBytes } from '../../../../src/lib/byte-edits.ts'
import { drained } from '../../../../src/lib/slices.ts'
import { recordFetch, requestOf } from './upstream-recorder.ts'

afterEach(() => void vi.unstubAllGlobals())

type Json = Record<string, unknown>

const KINDS = Object.keys(MAKERS) as MakerKind[]
const CAPABILITIES = ['reasoning', 'json_schema', 'json_object', 'vision']
const MESSAGES = [{ role: 'user', content: 'Hi' }]

function providerOf(kind: MakerKind, allowedMembers: string[] = []): Provider {
  const definition = PROVIDER_KINDS[kind]
  const credential = credentialOf(definition.credential, 'sk-one')
  const baseUrl = definition.defaultBaseUrl?.(credential.parts) ?? ''
  return { id: kind, name: kind, kind, baseUrl, credential, allowedMembers }
}

const membersOf = (provider: Provider, upstreamModel: string) =>
  bodyMembersOf(provider, {
    operation: 'chat_completions',
    upstreamModel,
    stream: false,
    callerHeaders: null,
  })

/** What a maker is sent of a chat completion request, and what the caller is told of it. */
function native(kind: MakerKind, request: Json, { model = 'model-1', allowed = [] as string[] } = {}) {
  const source = new TextEncoder().encode(JSON.stringify({ model, messages: MESSAGES, ...request }))
  const outline = drained(chatCompletions.outline(source))
  const bodyMembers = membersOf(providerOf(kind, allowed), model)
  const target = { upstreamModel: model, capabilities: CAPABILITIES, bodyMembers }
  const { body: edits, dropped } = drained(requestEdits(outline, chatCompletions, target))
  const {
    model: sentModel,
    messages,
    ...sent
  } = JSON.parse(new TextDecoder().decode(joinBytes(applyEdits(source, edits).pieces)))
  expect([sentModel, messages]).toEqual([model, MESSAGES])
  return { sent, dropped }
}

const QUESTION = { role: 'user', content: 'Weather?' }
const CALL = { type: 'tool_use', id: 'toolu_01abc', name: 'weather', input: { city: 'Bern' } }
const RESULT = {
  role: 'user',
  content: [{ type: 'tool_result', tool_use_id: 'toolu_01abc', content: 'Sun.' }],
}
const TOOLS = [{ name: 'weather', input_schema: { type: 'object' } }]

/** What a maker is sent of a messages request. */
function translated(kind: MakerKind, request: Json, model = 'model-1') {
  const provider = providerOf(kind)
  const bodyMembers = membersOf(provider, model)
  const call = new TranslatedCall(
    new TextEncoder().encode(
      JSON.stringify({ model: 'm', max_tokens: 100, messages: [QUESTION], ...request }),
    ),
    {
      caller: 'messages',
      upstream: 'chat_completions',
      target: {
        upstreamModel: model,
        maxOutputTokens: 1_000,
        capabilities: capabilitiesOf(provider, model, CAPABILITIES),
        origin: `chat_completions:${model}`,
        takesReasoning: bodyMembers?.messages?.reasoningContent ?? false,
        signsCalls: bodyMembers?.messages?.thoughtSignatures ?? false,
      },
      bodyMembers,
      repeatsReasoning: transportOf(provider).repeatsReasoning ?? false,
    },
  )
  const body = JSON.parse(new TextDecoder().decode(joinBytes(call.takeRequest().pieces))) as Json
  return { body, messages: body.messages as Json[], dropped: call.dropped, call }
}

describe.each(KINDS)('the preset of %s', (kind) => {
  it('needs a key and no address', async () => {
    const sent = recordFetch()
    const provider = providerOf(kind)
    const allow = ['127.0.0.1:11434', '127.0.0.1:8000']
    await sendToProvider(transportOf(provider), requestOf({ allow }))
    expect(sent).toMatchObject([
      {
        address: `${MAKERS[kind].baseUrl}/chat/completions`,
        headers: { authorization: 'Bearer sk-one', 'content-type': 'application/json' },
      },
    ])
    expect([speaks(provider, 'messages', 'm'), speaks(provider, 'input_tokens', 'm')]).toEqual([false, false])
  })

  it('leaves a plain request and a tool conversation as they are', () => {
    const request = { temperature: 0.5, stop: ['x'], tools: [{ type: 'function', function: { name: 'f' } }] }
    expect(native(kind, request)).toEqual({ sent: request, dropped: [] })
  })

  it('takes what its operator says that it takes', () => {
    const request = { store: true, logit_bias: { 1: 2 }, tool_choice: 'auto', presence_penalty: 1 }
    expect(native(kind, request, { allowed: Object.keys(request) })).toEqual({ sent: request, dropped: [] })
  })
})

it('servers of one’s own need no key', async () => {
  const sent = recordFetch()
  for (const kind of ['ollama', 'vllm'] as const) {
    const transport = PROVIDER_KINDS[kind].connect('https://models.example/v1', {}, { allowedMembers: [] })
    await sendToProvider(transport, requestOf())
  }
  expect(sent.map(({ headers }) => headers.authorization)).toEqual([undefined, undefined])
  expect(() => credentialOf(PROVIDER_KINDS.mistral.credential, {})).toThrow(/missing/)
})

describe('Mistral', () => {
  it('is sent its own names, no member that it does not know, and no options of streams', () => {
    const request = {
      stream: true,
      stream_options: { include_usage: true },
      max_completion_tokens: 5,
      seed: 7,
      tool_choice: 'required',
      store: false,
      user: 'u',
      logprobs: true,
    }
    expect(native('mistral', request)).toEqual({
      sent: { stream: true, max_tokens: 5, random_seed: 7, tool_choice: 'any' },
      dropped: ['store', 'user', 'logprobs'],
    })
    expect(native('mistral', { stream: true }).sent).toEqual({ stream: true })
    expect(native('mistral', { stream: true }, { allowed: ['stream_options'] }).sent).toEqual({
      stream: true,
      stream_options: { include_usage: true },
    })
  })

  it('is sent each limit once', () => {
    expect(native('mistral', { max_completion_tokens: 5, max_tokens: 4 }).sent).toEqual({ max_tokens: 4 })
  })

  it('is sent tool calls in its form', () => {
    const text = { type: 'text', text: 'I look.' }
    const history = [QUESTION, { role: 'assistant', content: [text, CALL] }, RESULT]
    const { body, messages, dropped } = translated('mistral', {
      messages: history,
      tools: TOOLS,
      tool_choice: { type: 'any' },
      stream: true,
    })
    const [, call, result] = messages
    const [{ id } = {}] = (call?.tool_calls ?? []) as Json[]
    expect(id).toMatch(/^[a-zA-Z0-9]{9}$/)
    expect(call).toMatchObject({ role: 'assistant', content: '' })
    expect(result).toEqual({ role: 'tool', tool_call_id: id, name: 'weather', content: 'Sun.' })
    expect(body).toMatchObject({ tool_choice: 'any', max_tokens: 100 })
    expect(body).not.toHaveProperty('stream_options')
    expect(dropped).toContain('messages.content')
    // The same conversation has the same ids, for prompt caches; ids of its own stay.
    expect(translated('mistral', { messages: history, tools: TOOLS }).messages[2]).toEqual(result)
    const own = JSON.parse(JSON.stringify(history).replaceAll('toolu_01abc', 'AbCdEf123'))
    expect(translated('mistral', { messages: own, tools: TOOLS }).messages[2]?.tool_call_id).toBe('AbCdEf123')
  })

  it('answers with thinking among the parts of the content', () => {
    const thinking = { type: 'thinking', thinking: [{ type: 'text', text: 'Hm.' }] }
    const message = { role: 'assistant', content: [thinking, { type: 'text', text: 'Four.' }] }
    const answer = { id: 'a', choices: [{ index: 0, message, finish_reason: 'model_length' }] }
    const events = translated('mistral', {}).call.answer(new TextEncoder().encode(JSON.stringify(answer)))
    expect(events).toMatchObject([
      { type: 'start' },
      { type: 'reasoning', text: 'Hm.' },
      { type: 'text', text: 'Four.' },
      { type: 'stop', reason: 'context_window' },
    ])
  })
})

describe('DeepSeek', () => {
  it('is sent the efforts that it has', () => {
    const effort = (reasoning_effort: string, more = {}) =>
      native('deepseek', { reasoning_effort, ...more }).sent
    expect(effort('minimal')).toEqual({ reasoning_effort: 'low' })
    expect(effort('medium')).toEqual({ reasoning_effort: 'high' })
    expect(effort('xhigh')).toEqual({ reasoning_effort: 'max' })
    expect(effort('low')).toEqual({ reasoning_effort: 'low' })
    expect(effort('none')).toEqual({ thinking: { type: 'disabled' } })
    expect(effort('none', { thinking: { type: 'enabled' } })).toEqual({ thinking: { type: 'enabled' } })
    expect(effort('constructor')).toEqual({ reasoning_effort: 'constructor' })
    expect(
      translated('deepseek', { thinking: { type: 'enabled', budget_tokens: 8_000 } }).body,
    ).toMatchObject({
      reasoning_effort: 'high',
      max_tokens: 100,
    })
  })

  it('is sent its reasoning back once tools have been called', () => {
    const thought = { type: 'thinking', thinking: 'I need the weather.', signature: '' }
    const signed = { type: 'thinking', thinking: 'Of Claude.', signature: 'sig' }
    const history = [
      { role: 'user', content: 'Hello' },
      { role: 'assistant', content: [signed, { type: 'text', text: 'Hello!' }] },
      QUESTION,
      { role: 'assistant', content: [thought, CALL] },
      RESULT,
    ]
    const reasoning = (messages: Json[]) =>
      messages.flatMap((message) => (message.role === 'assistant' ? [message.reasoning_content] : []))
    expect(reasoning(translated('deepseek', { messages: history, tools: TOOLS }).messages)).toEqual([
      '',
      'I need the weather.',
    ])
    const plain = [
      QUESTION,
      { role: 'assistant', content: [thought, { type: 'text', text: 'Sun.' }] },
      QUESTION,
    ]
    expect(reasoning(translated('deepseek', { messages: plain }).messages)).toEqual([undefined])
    expect(reasoning(translated('xai', { messages: history, tools: TOOLS }).messages)).toEqual([
      undefined,
      undefined,
    ])
  })

  it('is told of a schema in words', () => {
    const schema = { type: 'object', properties: { city: { type: 'string' } } }
    const output_config = { format: { type: 'json_schema', schema } }
    const { body } = translated('deepseek', { output_config })
    expect(body.response_format).not.toMatchObject({ type: 'json_schema' })
    expect(JSON.stringify(body.messages)).toContain('city')
    expect(translated('groq', { output_config }).body.response_format).toMatchObject({ type: 'json_schema' })
  })
})

describe('xAI', () => {
  it('is not sent penalties', () => {
    const request = { presence_penalty: 1, frequency_penalty: 1, stop: 'x' }
    expect(native('xai', request)).toEqual({
      sent: { stop: 'x' },
      dropped: ['presence_penalty', 'frequency_penalty'],
    })
  })

  it('has pieces of reasoning that repeat once', () => {
    const chunk = { id: 'c', choices: [{ index: 0, delta: { reasoning_content: 'Thinking... ' } }] }
    const frame = (data: object) =>
      ({ event: null, data: new TextEncoder().encode(JSON.stringify(data)) }) as never
    const pieces = (kind: MakerKind) => {
      const { call } = translated(kind, {})
      return [1, 2, 3].flatMap(() => call.events(frame(chunk))).filter(({ type }) => type === 'reasoning')
    }
    expect(pieces('xai')).toHaveLength(1)
    expect(pieces('vllm')).toHaveLength(3)
  })
})

describe('Gemini over chat completions', () => {
  it('is not sent records of OpenAI’s platform, nor efforts that it does not have', () => {
    const request = { store: true, logit_bias: {}, reasoning_effort: 'xhigh', verbosity: 'low' }
    expect(native('gemini-openai', request)).toEqual({
      sent: { reasoning_effort: 'high' },
      dropped: ['store', 'logit_bias', 'verbosity'],
    })
  })

  it.each([
    ['gemini-3-pro-preview', true],
    ['models/gemini-4-flash', true],
    ['gemini-flash-latest', true],
    ['gemini-2.5-flash', false],
    ['gemini-1.5-pro', false],
  ])('%s is sent history with signatures: %s', (model, isSigned) => {
    const second = { ...CALL, id: 'toolu_02' }
    const history = [QUESTION, { role: 'assistant', content: [CALL, second] }, RESULT]
    const { messages } = translated('gemini-openai', { messages: history, tools: TOOLS }, model)
    const calls = messages.find(({ role }) => role === 'assistant')?.tool_calls as Json[]
    const signature = { google: { thought_signature: 'skip_thought_signature_validator' } }
    // Of parallel calls, only the first has one.
    expect(calls.map((call) => call.extra_content)).toEqual([isSigned ? signature : undefined, undefined])
  })
})

describe('the signature of a call of Gemini', () => {
  const MODEL = 'gemini-3-pro-preview'
  const message = {
    role: 'assistant',
    content: null,
    tool_calls: [1, 2].map((number) => ({
      id: `call_${number}`,
      type: 'function',
      function: { name: 'weather', arguments: '{}' },
      ...(number === 1 && { extra_content: { google: { thought_signature: 'c2ln' } } }),
    })),
  }
  const answer = (part: 'message' | 'delta') => ({
    id: 'a',
    choices: [{ index: 0, [part]: message, finish_reason: 'tool_calls' }],
  })

  it('reaches a caller of messages, and comes back on the same call', () => {
    const bytes = new TextEncoder().encode(JSON.stringify(answer('message')))
    const { call } = translated('gemini-openai', { tools: TOOLS }, MODEL)
    const whole = call.answer(bytes)
    const frame = { event: null, data: new TextEncoder().encode(JSON.stringify(answer('delta'))) } as never
    expect(translated('gemini-openai', { tools: TOOLS }, MODEL).call.events(frame)).toEqual(whole)
    const [proof] = (whole as Json[]).filter(({ type }) => type === 'reasoning_signature')
    const history = [
      QUESTION,
      {
        role: 'assistant',
        content: [
          { type: 'thinking', thinking: '', signature: proof?.signature },
          CALL,
          { ...CALL, id: 'toolu_02' },
        ],
      },
      RESULT,
    ]
    const signatures = (model: string) => {
      const { messages } = translated('gemini-openai', { messages: history, tools: TOOLS }, model)
      const calls = messages.find(({ role }) => role === 'assistant')?.tool_calls as Json[]
      return calls.map(({ extra_content }) => extra_content)
    }
    expect(signatures(MODEL)).toEqual([{ google: { thought_signature: 'c2ln' } }, undefined])
    // Those of another model are refused.
    expect(signatures('gemini-4-flash')).toEqual([
      { google: { thought_signature: 'skip_thought_signature_validator' } },
      undefined,
    ])
  })

  it('comes back from the items of a response, as reasoning of DeepSeek does', () => {
    const target = { takesReasoning: true, signsCalls: true, origin: 'here' }
    const call = { callId: 'c', name: 'f', arguments: '{}', output: [] }
    const sent = (origin: string) =>
      chatMessagesOfSteps(
        [
          {
            role: 'assistant',
            parts: [
              { kind: 'thought', thought: { text: 'Hm.', signature: 'c2ln', redacted: undefined, origin } },
              { kind: 'call', call },
              { kind: 'call', call: { ...call, callId: 'd' } },
            ],
          },
        ],
        null,
        target,
      )[0]
    expect(sent('here')).toMatchObject({ reasoning_content: 'Hm.' })
    const contents = (origin: string) =>
      ((sent(origin)?.tool_calls ?? []) as Json[]).map((each) => each.extra_content)
    expect(contents('here')).toEqual([{ google: { thought_signature: 'c2ln' } }, undefined])
    expect(contents('elsewhere')).toEqual([undefined, undefined])
    expect(sent('elsewhere')).not.toHaveProperty('reasoning_content')
  })
})

it('Gemini is sent images without their detail, and others with it', () => {
  const image = { type: 'image_url', image_url: { url: 'data:image/png;base64,AA==', detail: 'high' } }
  const bodyOf = () => ({
    messages: [{ role: 'user', content: [{ type: 'text', text: 'What?' }, structuredClone(image)] }],
  })
  const sent = (kind: MakerKind) => changeMembers(bodyOf(), membersOf(providerOf(kind), 'm') ?? {}).body
  expect(JSON.stringify(sent('gemini-openai'))).not.toContain('detail')
  expect(sent('vllm')).toEqual(bodyOf())
})

it('Mistral is sent a refusal as text', () => {
  const messages = [...MESSAGES, { role: 'assistant', content: null, refusal: 'No.' }, ...MESSAGES]
  const { body } = changeMembers({ messages }, membersOf(providerOf('mistral'), 'm') ?? {})
  expect(body.messages).toEqual([...MESSAGES, { role: 'assistant', content: 'No.' }, ...MESSAGES])
})

it('Groq is not sent biases', () => {
  expect(native('groq', { logit_bias: { 1: 2 }, seed: 1 })).toEqual({
    sent: { seed: 1 },
    dropped: ['logit_bias'],
  })
})

it('the caller of Ollama is told that a choice of tools has no effect', () => {
  const { sent, dropped } = native('ollama', { tool_choice: 'required', max_completion_tokens: 5 })
  expect([sent, dropped]).toEqual([{ max_tokens: 5 }, ['tool_choice']])
})

it.each(['together', 'fireworks'] as const)('%s is sent the older name of the limit', (kind) => {
  expect(native(kind, { max_completion_tokens: 5 }).sent).toEqual({ max_tokens: 5 })
})

it.each(['openrouter', 'vllm'] as const)('%s is sent every member', (kind) => {
  const request = { max_completion_tokens: 5, seed: 1, store: true, reasoning: { effort: 'low' } }
  expect(native(kind, request)).toEqual({ sent: request, dropped: [] })
})
