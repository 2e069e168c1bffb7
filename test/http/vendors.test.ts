import type Anthropic from '@anthropic-ai/sdk'
import { beforeAll, describe, expect, it } from 'vitest'
import { gateway } from '../harness/gateway.ts'
import { auditEntryOf, readList } from '../harness/records.ts'
import { ANSWER_COST, answered, failed, inTurn } from '../harness/routed-model.ts'
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

// Official clients on a model of each vendor whose transport is its own.

const CLAUDE = [
  { vendor: 'Bedrock', model: 'scripted-bedrock-claude', overloaded: 503 },
  { vendor: 'Vertex', model: 'scripted-vertex-claude', overloaded: 529 },
  { vendor: 'Foundry', model: 'scripted-foundry-claude', overloaded: 529 },
]

let tenant: Tenant
beforeAll(async () => {
  tenant = await createTenant(gateway())
})

const openai = () => new newestOpenAi({ apiKey: tenant.key, baseURL: openAiUrl(), maxRetries: 0 })
const anthropic = () => new newestAnthropic({ apiKey: tenant.key, baseURL: gateway().baseUrl, maxRetries: 0 })

const WEATHER = {
  name: 'get_weather',
  input_schema: { type: 'object' as const, properties: { city: { type: 'string' } } },
}

describe.each(CLAUDE)('Claude on $vendor', ({ vendor, model, overloaded }) => {
  const ask = (content: Anthropic.MessageParam['content'], more = {}) => ({
    model,
    max_tokens: 2_000,
    messages: [{ role: 'user' as const, content }],
    ...more,
  })

  it('answers messages, whole and streamed, and the call is charged by its usage', async () => {
    const { data, response } = await anthropic().messages.create(ask('script:canned')).withResponse()
    expect([data.model, textOf(data)]).toEqual([model, SCRIPTED_TEXT])
    const { record } = await auditEntryOf(gateway(), tenant, response.headers.get('x-request-id'))
    expect(record.usage).toMatchObject({ input: data.usage.input_tokens, output: data.usage.output_tokens })
    expect([record.status, record.modelId]).toEqual([200, model])
    expect(record.cost).toBeGreaterThan(0)

    const stream = anthropic().messages.stream(ask('script:canned'))
    const message = await stream.finalMessage()
    expect([message.model, textOf(message), message.stop_reason]).toEqual([model, SCRIPTED_TEXT, 'end_turn'])
    expect(JSON.stringify(message)).not.toContain('invocationMetrics')
  })

  it('answers chat completions, whole and streamed', async () => {
    const request = { model, messages: userMessage('script:canned') }
    const whole = await openai().chat.completions.create(request)
    expect(whole.choices[0]?.message.content).toBe(SCRIPTED_TEXT)
    const stream = openai().chat.completions.stream({ ...request, stream_options: { include_usage: true } })
    const { choices, usage } = await stream.finalChatCompletion()
    expect(choices[0]?.message.content).toBe(SCRIPTED_TEXT)
    expect(usage?.total_tokens).toBeGreaterThan(0)
  })

  it('answers responses, whole and streamed', async () => {
    const whole = await openai().responses.create({ model, input: 'script:canned' })
    expect(whole.output_text).toBe(SCRIPTED_TEXT)
    const stream = openai().responses.stream({ model, input: 'script:canned' })
    expect((await stream.finalResponse()).output_text).toBe(SCRIPTED_TEXT)
  })

  it('calls tools and takes their results', async () => {
    const text = marker()
    const first = await anthropic().messages.create(ask(`script:tool-call ${text}`, { tools: [WEATHER] }))
    const call = first.content.find((block) => block.type === 'tool_use')
    expect(call).toMatchObject({ name: 'get_weather', id: expect.any(String) })
    const second = await anthropic().messages.create({
      ...ask('', { tools: [WEATHER] }),
      messages: [
        { role: 'user', content: `Weather? ${text}` },
        { role: 'assistant', content: first.content },
        {
          role: 'user',
          content: [{ type: 'tool_result', tool_use_id: call?.id ?? '', content: 'Sunny script:canned' }],
        },
      ],
    })
    expect(second.stop_reason).toBe('end_turn')
  })

  it.skipIf(vendor === 'Foundry')('leaves out what the platform does not take, and names it', async () => {
    const text = marker()
    const body = ask(`script:canned ${text}`, { service_tier: 'auto', some_new_member: { a: 1 } })
    const headers = { 'anthropic-beta': 'claude-code-20250219,interleaved-thinking-2025-05-14' }
    const { response } = await anthropic().messages.create(body, { headers }).withResponse()
    const dropped = response.headers.get('x-headgate-dropped')?.split(', ')
    expect(dropped).toEqual(expect.arrayContaining(['service_tier', 'some_new_member']))
    const sent = JSON.parse((await seenRequest(gateway(), text)).body)
    expect(Object.keys(sent).filter((name) => name in body)).toEqual(['max_tokens', 'messages'])
    expect(sent.messages).toEqual(body.messages)
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
    ['error-529', overloaded, overloaded === 529 ? 'overloaded_error' : 'api_error'],
  ])('turns %s into an error of the messages protocol', async (script, status, type) => {
    const error = await failureOf(anthropic().messages.create(ask(`script:${script}`)))
    expect([error.status, error.type]).toEqual([status, type])
    expect(String(error.message)).not.toContain('answered with status')
    const streamed = await failureOf(
      anthropic()
        .messages.stream(ask(`script:${script}`))
        .finalMessage(),
    )
    expect([streamed.status, streamed.type]).toEqual([status, type])
  })

  it('tells of an error in the middle of a stream, and of a cut', async () => {
    const frame = (data: { type: string }) => `event: ${data.type}\ndata: ${JSON.stringify(data)}\n\n`
    const message = { id: 'm', type: 'message', role: 'assistant', model: 'm', content: [], usage: {} }
    const begun = [
      frame({ type: 'message_start', message } as { type: string }),
      frame({ type: 'content_block_start', index: 0, content_block: { type: 'text', text: '' } } as never),
      frame({ type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: 'He' } } as never),
    ]
    const streaming = { headers: { 'content-type': 'text/event-stream' } }
    const failing = frame({
      type: 'error',
      error: { type: 'rate_limit_error', message: 'Slow down' },
    } as never)
    const exception = await registerScript(gateway(), [
      streaming,
      { sse: [...begun, failing] },
      { end: true },
    ])
    const cut = await registerScript(gateway(), [streaming, { sse: begun }, { destroy: true }])
    for (const [script, text] of [
      [exception, 'Slow down'],
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

describe('a vendor that refuses the credential', () => {
  const canary = uniqueName('canary-secret')
  const refused: Array<[string, object, string]> = [
    [
      'bedrock',
      { region: 'us-east-1', access_key_id: 'AKIASCRIPTEDUPSTREAM', secret_access_key: canary },
      'us.anthropic.claude-scripted-messages-v1:0',
    ],
    ['bedrock', { region: 'us-east-1', api_key: canary }, 'us.anthropic.claude-scripted-messages-v1:0'],
    ['foundry', { api_key: canary }, 'claude-deployment'],
    ['azure-openai', { api_key: canary }, 'my-deployment'],
  ]
  it.each(refused)(
    'is not taken for a refusal of the caller, and its credential is shown nowhere: %s',
    async (kind, credential, upstream_model) => {
      const { ask } = administrator(gateway())
      const name = uniqueName('refused')
      const folder = kind === 'azure-openai' ? 'azure' : kind
      const base_url = `${gateway().standIns.modelUpstream}/vendors/${folder}`
      const provider = await ask('POST', '/providers', { name, kind, base_url, credential })
      expect(JSON.stringify(provider)).not.toContain(canary)
      await ask('PUT', `/models/${name}`, {
        owned_by: 'test',
        context_window: 100_000,
        max_output_tokens: 1_000,
        prices: { input: 1, output: 1 },
        routes: [{ provider_id: provider.id, upstream_model }],
      })
      const asked = { model: name, max_tokens: 100, messages: [{ role: 'user' as const, content: 'Hi' }] }
      const { data, response } = await sendRaw('/v1/messages', asked)
      expect([response.status, data.error.type]).toEqual([500, 'api_error'])
      expect(data.error.message).toContain('refused the gateway')
      const chat = await sendRaw('/v1/chat/completions', asked)
      expect([401, 403]).toContain(chat.response.status)
      const entry = await auditEntryOf(gateway(), tenant, response.headers.get('x-request-id'))
      for (const shown of [data, chat.data, entry, await ask('GET', `/providers/${provider.id}`)]) {
        expect(JSON.stringify(shown)).not.toContain(canary)
      }
    },
  )

  async function sendRaw(path: string, body: object) {
    const response = await fetch(gateway().baseUrl + path, {
      method: 'POST',
      headers: { authorization: `Bearer ${tenant.key}`, 'content-type': 'application/json' },
      body: JSON.stringify(body),
    })
    return { response, data: (await response.json()) as { error: { type: string; message: string } } }
  }
})

describe('a provider of one vendor', () => {
  const ask = (body: object) => administrator(gateway()).ask('POST', '/providers', body)
  it('needs the parts of one way to authorize, and no address', async () => {
    const create = (more: object) => ask({ name: uniqueName('aws'), kind: 'bedrock', ...more })
    const made = await create({ credential: { region: 'eu-central-1', api_key: 'bedrock-key' } })
    expect(made).toMatchObject({ base_url: 'https://bedrock-runtime.eu-central-1.amazonaws.com' })
    await expect(create({ credential: { region: 'eu-central-1' } })).rejects.toThrow(/either `api_key` or/)
    const path = `/providers/${made.id}`
    const change = (body: object) => administrator(gateway()).ask('PUT', path, body)
    const moved = { region: 'us-west-2', api_key: 'k' }
    await expect(change({ credential: moved })).rejects.toThrow(/not that of base_url/)
    await change({ credential: moved, base_url: 'https://bedrock-runtime.us-west-2.amazonaws.com' })
    await expect(create({ credential: { region: '../x', api_key: 'k' } })).rejects.toThrow(/region/)
    await expect(
      create({ credential: { region: 'us-east-1', api_key: 'k' }, base_url: 'https://attacker.example' }),
    ).rejects.toThrow(/no host of this vendor/)
  })
})

describe('one model with routes to Claude at three vendors', () => {
  const id = uniqueName('claude-everywhere')
  /** An input token costs one micro-credit at 100 percent, an output token five. */
  beforeAll(async () => {
    const { ask } = administrator(gateway())
    const providers = await readList<{ id: string; name: string }>(gateway(), '/providers')
    const route = (name: string, upstream_model: string, price_percent: number) => ({
      provider_id: providers.find((provider) => provider.name === name)?.id,
      upstream_model,
      price_percent,
    })
    await ask('PUT', `/models/${id}`, {
      owned_by: 'test',
      context_window: 100_000,
      max_output_tokens: 2_000,
      prices: { input: 1_000_000, output: 5_000_000 },
      capabilities: ['reasoning'],
      routes: [
        route('scripted-anthropic', 'claude-direct', 100),
        route('scripted-bedrock', 'us.anthropic.claude-scripted-messages-v1:0', 110),
        route('scripted-vertex', 'claude-scripted@20250929', 300),
      ],
    })
  })

  const request = (messages: Anthropic.MessageParam[]) => ({
    model: id,
    max_tokens: 1_500,
    thinking: { type: 'enabled' as const, budget_tokens: 1_024 },
    system: [{ type: 'text' as const, text: 'Be brief.', cache_control: { type: 'ephemeral' as const } }],
    tools: [{ ...WEATHER, cache_control: { type: 'ephemeral' as const, ttl: '1h' as const } }],
    messages,
  })

  /** A conversation whose first turn thought, with a signature, and called a tool. */
  async function conversation(text: string) {
    const { content } = await anthropic().messages.create(
      request([{ role: 'user', content: 'script:thinking-tools' }]),
    )
    const call = content.find((block) => block.type === 'tool_use')
    const result = { type: 'tool_result' as const, tool_use_id: call?.id ?? '', content: 'Sunny' }
    expect(JSON.stringify(content)).toMatch(/"signature":"[^"]{20}/)
    return request([
      { role: 'user', content: text },
      { role: 'assistant', content },
      { role: 'user', content: [result] },
    ])
  }

  const limited = failed(429, '{"type":"error","error":{"type":"rate_limit_error","message":"Slow down"}}')

  it.each([
    ['Bedrock', [limited], 110],
    ['Vertex', [limited, failed(503)], 300],
  ])(
    'moves on to %s with everything that the request has, at the price of that route',
    async (_, before, percent) => {
      const text = marker()
      const script = await inTurn(gateway(), ...before, answered('messages', 'Moved.', false))
      const asked = await conversation(`${script} ${text}`)
      const { data, response } = await anthropic().messages.create(asked).withResponse()
      expect(textOf(data)).toBe('Moved.')
      const sent = (await seenRequests(gateway(), text)).map(({ body }) => JSON.parse(body))
      expect(sent).toHaveLength(before.length + 1)
      for (const { system, tools, messages, thinking } of sent) {
        expect({ system, tools, messages, thinking }).toEqual({
          system: asked.system,
          tools: asked.tools,
          messages: asked.messages,
          thinking: asked.thinking,
        })
      }
      const { record } = await auditEntryOf(gateway(), tenant, response.headers.get('x-request-id'))
      expect(record.attempts).toHaveLength(before.length + 1)
      expect(record.cost).toBe(Math.ceil((ANSWER_COST * percent) / 100))
    },
  )

  it('tells the client when to come back when every vendor is throttled', async () => {
    const script = await inTurn(
      gateway(),
      failed(429, '{}', { 'retry-after': '7' }),
      failed(429),
      failed(429),
    )
    const error = await failureOf(anthropic().messages.create(await conversation(script)))
    expect([error.status, error.type]).toEqual([429, 'rate_limit_error'])
    expect(Number((error.headers as Headers).get('retry-after'))).toBeGreaterThanOrEqual(1)
  })
})
