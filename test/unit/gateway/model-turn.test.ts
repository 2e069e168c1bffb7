import { afterEach, describe, expect, it, vi } from 'vitest'
import { refusalOutcome, settle } from '../../../src/calls/governed-call.ts'
import { interruptedOutcome } from '../../../src/gateway/call-outcome.ts'
import { TurnFailure } from '../../../src/gateway/calls/turn-failure.ts'
import { callOutcome } from '../../../src/ledger/audit-record.ts'
import { ApiError } from '../../../src/lib/api-error.ts'
import {
  batchesOf,
  CREDENTIAL,
  type Json,
  openStream,
  said,
  streamed,
  TurnWorld,
  thrownBy,
  user,
  whole,
} from './model-turn-harness.ts'
import { chunks, events } from './stream-reading.ts'

afterEach(() => vi.unstubAllGlobals())

const chatChunk = (delta: Json, finish_reason: string | null = null) =>
  chunks({ id: 'c', model: 'plain-chat', choices: [{ index: 0, delta, finish_reason }] })
const CHAT_USAGE = chunks({ id: 'c', choices: [], usage: { prompt_tokens: 7, completion_tokens: 3 } })
const DONE = 'data: [DONE]\n\n'
const CHAT_ANSWER = [chatChunk({ content: 'Hel' }), chatChunk({ content: 'lo' }, 'stop'), CHAT_USAGE, DONE]
const MESSAGES_USAGE = { input_tokens: 7, output_tokens: 3 }
const MESSAGES_ANSWER = events(
  { type: 'message_start', message: { id: 'm', model: 'claude-sonnet-4-5', usage: MESSAGES_USAGE } },
  { type: 'content_block_start', index: 0, content_block: { type: 'thinking', thinking: '' } },
  { type: 'content_block_delta', index: 0, delta: { type: 'thinking_delta', thinking: 'Hm.' } },
  { type: 'content_block_delta', index: 0, delta: { type: 'signature_delta', signature: 'proof' } },
  { type: 'content_block_stop', index: 0 },
  { type: 'content_block_start', index: 1, content_block: { type: 'redacted_thinking', data: 'dark' } },
  { type: 'content_block_stop', index: 1 },
  { type: 'content_block_start', index: 2, content_block: { type: 'tool_use', id: 't', name: 'ns__look' } },
  { type: 'content_block_delta', index: 2, delta: { type: 'input_json_delta', partial_json: '{"a":1}' } },
  { type: 'content_block_stop', index: 2 },
  { type: 'message_delta', delta: { stop_reason: 'tool_use' }, usage: { output_tokens: 9 } },
  { type: 'message_stop' },
)
const TOOLS = [
  {
    type: 'namespace',
    name: 'ns',
    tools: [{ type: 'function', name: 'look', parameters: { type: 'object' } }],
  },
  { type: 'web_search' },
]
const HI = { model: 'chat-model', input: [user('Hi')] }

describe('a turn', () => {
  it('of a chat upstream becomes events of the model', async () => {
    const world = new TurnWorld([streamed(...CHAT_ANSWER)])
    const told = await world.events({ ...HI, max_output_tokens: 50, instructions: 'Be kind.' })
    expect(told.map(({ type }) => type)).toEqual(['start', 'text', 'text', 'stop', 'usage', 'end'])
    expect(said(told, 'text')).toBe('Hello')
    expect(world.asked[0]?.url).toBe('https://openai-compatible.example/chat/completions')
    expect(world.asked[0]?.body).toMatchObject({
      model: 'plain-chat',
      max_tokens: 50,
      stream_options: { include_usage: true },
      messages: [
        { role: 'system', content: 'Be kind.' },
        { role: 'user', content: 'Hi' },
      ],
    })
    expect(await world.outcome()).toMatchObject({ status: 200, usage: { input: 7, output: 3 } })
  })

  it('of a messages upstream has thinking with its signatures, and tools by their upstream names', async () => {
    const world = new TurnWorld([streamed(MESSAGES_ANSWER)])
    const turn = await world.begin({ model: 'messages-model', tools: TOOLS, input: [user('Hi')] })
    expect(turn.origin).toBe('messages:claude')
    expect((await batchesOf(turn)).flat().slice(1)).toEqual([
      { type: 'reasoning', choice: 0, text: 'Hm.' },
      { type: 'reasoning_signature', choice: 0, signature: 'proof' },
      { type: 'redacted_reasoning', choice: 0, data: 'dark' },
      { type: 'tool_call', choice: 0, call: 0, id: 't', name: 'ns__look' },
      { type: 'tool_arguments', choice: 0, call: 0, json: '{"a":1}' },
      expect.objectContaining({ type: 'stop', reason: 'tool_calls' }),
      expect.objectContaining({ type: 'usage', usage: expect.objectContaining({ input: 7, output: 9 }) }),
      { type: 'end' },
    ])
    expect(world.asked[0]?.body.tools).toMatchObject([{ name: 'ns__look' }])
  })

  it('has for each tool only the name that its caller uses', async () => {
    let upstreamName: unknown
    const world = new TurnWorld([
      ({ body }) => {
        const [tool] = body.tools as Array<{ function: { name: string } }>
        upstreamName = tool?.function.name
        const call = { index: 0, id: 'c', function: { name: upstreamName, arguments: '{}' } }
        const stream = chatChunk({ tool_calls: [call] }) + chatChunk({}, 'tool_calls') + DONE
        return new Response(stream, { headers: { 'content-type': 'text/event-stream' } })
      },
    ])
    const tool = { type: 'function', name: 'a name with spaces', parameters: {} }
    const told = await world.events({ ...HI, tools: [tool] })
    expect(upstreamName).toMatch(/^a_name_with_spaces_/)
    expect(told).toContainEqual({ type: 'tool_call', choice: 0, call: 0, id: 'c', name: upstreamName })
  })

  it('may have more of instructions, texts and files than is parsed', async () => {
    const long = 'x'.repeat(9_000_000)
    const world = new TurnWorld([streamed(...CHAT_ANSWER)])
    await world.events({ ...HI, instructions: long, input: [user(long)] })
    expect(world.asked[0]?.body.messages).toEqual([
      { role: 'system', content: long },
      { role: 'user', content: long },
    ])
    const error = await thrownBy(() => new TurnWorld([]).events({ ...HI, user: long }))
    expect(error).toMatchObject({ status: 400, code: 'invalid_body' })
  })

  it('returns thinking to its own family only', async () => {
    const thought = (origin: string) => ({
      type: 'reasoning',
      content: [{ type: 'reasoning_text', text: 'Hm.' }],
      signature: 'proof',
      origin,
    })
    const call = { type: 'function_call', call_id: 't', name: 'look', arguments: '{}' }
    const output = { type: 'function_call_output', call_id: 't', output: 'seen' }
    const sent = async (model: string, origin: string) => {
      const world = new TurnWorld([
        model === 'chat-model' ? streamed(...CHAT_ANSWER) : streamed(MESSAGES_ANSWER),
      ])
      await world.events({ model, input: [user('Hi'), thought(origin), call, output] })
      return JSON.stringify(world.asked[0]?.body)
    }
    expect(await sent('messages-model', 'messages:claude')).toContain(
      '{"type":"thinking","thinking":"Hm.","signature":"proof"}',
    )
    expect(await sent('messages-model', 'messages:other@elsewhere')).not.toContain('proof')
    expect(await sent('chat-model', 'messages:claude')).not.toContain('proof')
  })

  it('goes to another provider when the first does not answer, and names its origin', async () => {
    const overloaded = whole({ type: 'error', error: { type: 'overloaded_error', message: 'Busy' } }, 529)
    const world = new TurnWorld([overloaded, streamed(...CHAT_ANSWER)])
    const turn = await world.begin({ ...HI, model: 'both-model' })
    expect(turn.origin).toMatch(/^chat_completions:plain@/)
    expect(said((await batchesOf(turn)).flat(), 'text')).toBe('Hello')
    expect(world.asked.map(({ url }) => new URL(url).hostname)).toEqual([
      'anthropic.example',
      'openai-compatible.example',
    ])
    expect(world.ledger.opened).toHaveLength(1)
    expect((await world.outcome())?.attempts).toMatchObject([
      { provider: 'anthropic', status: 529 },
      { provider: 'openai-compatible', status: 200, failure: null },
    ])
  })

  it('of an upstream that does not stream has the same events', async () => {
    const message = { role: 'assistant', content: 'Hello' }
    const world = new TurnWorld([
      whole({
        id: 'c',
        model: 'plain-chat',
        choices: [{ index: 0, message, finish_reason: 'stop' }],
        usage: { prompt_tokens: 7, completion_tokens: 3 },
      }),
    ])
    const turn = await world.begin(HI)
    expect(turn.origin).toBe('chat_completions:plain@openai-compatible of chat-model')
    const batches = await batchesOf(turn)
    expect(batches).toHaveLength(1)
    expect(batches[0]?.map(({ type }) => type)).toEqual(['start', 'text', 'stop', 'usage', 'end'])
    expect(await world.outcome()).toMatchObject({ status: 200, usage: { input: 7, output: 3 } })
  })

  it('is without a code fence where JSON is requested by an instruction', async () => {
    const text = (text: string) => ({
      type: 'content_block_delta',
      index: 0,
      delta: { type: 'text_delta', text },
    })
    const world = new TurnWorld([
      streamed(
        events(
          { type: 'message_start', message: { id: 'm', usage: MESSAGES_USAGE } },
          { type: 'content_block_start', index: 0, content_block: { type: 'text', text: '' } },
          text('```json\n{"a"'),
          text(':1}\n```'),
          { type: 'content_block_stop', index: 0 },
          { type: 'message_delta', delta: { stop_reason: 'end_turn' }, usage: { output_tokens: 9 } },
          { type: 'message_stop' },
        ),
      ),
    ])
    const format = { type: 'json_object' }
    const told = await world.events({ model: 'messages-model', input: [user('Hi')], text: { format } })
    expect(said(told, 'text')).toBe('{"a":1}')
  })

  it('sends large texts and files as they came', async () => {
    const long = `${'ü'.repeat(40_000)}"\\\n`
    const image = `data:image/png;base64,${'A'.repeat(40_000)}`
    const input = [
      user([
        { type: 'input_text', text: long },
        { type: 'input_image', image_url: image },
        {
          type: 'input_file',
          filename: 'a.pdf',
          file_data: `data:application/pdf;base64,${'B'.repeat(40_000)}`,
        },
      ]),
      { type: 'function_call', call_id: 't', name: 'look', arguments: '{}' },
      { type: 'function_call_output', call_id: 't', output: long },
    ]
    for (const model of ['chat-model', 'messages-model']) {
      const world = new TurnWorld([streamed(...(model === 'chat-model' ? CHAT_ANSWER : [MESSAGES_ANSWER]))])
      await world.events({ model, input, instructions: long })
      const sent = JSON.stringify(world.asked[0]?.body)
      expect(sent.split(JSON.stringify(long).slice(1, -1))).toHaveLength(4)
      expect(sent).toContain('A'.repeat(40_000))
      expect(sent).toContain('B'.repeat(40_000))
    }
  })

  it('reads no further than its reader, and stops the upstream when the reader stops', async () => {
    const stream = openStream()
    const world = new TurnWorld([stream.answer])
    stream.send(chatChunk({ content: 'a' }))
    const turn = await world.begin(HI)
    for await (const batch of turn.batches) {
      expect(batch[0]?.type).toBe('start')
      break
    }
    await vi.waitFor(() => expect(stream.cancelled()).toBe(true))
    expect(await world.outcome()).toMatchObject({ status: 499, errorCode: 'client_left' })
  })

  it('ends with the reason of its signal', async () => {
    const stream = openStream()
    const world = new TurnWorld([stream.answer])
    const abort = new AbortController()
    stream.send(chatChunk({ content: 'a' }))
    const turn = await world.begin(HI, { signal: abort.signal })
    const error = await thrownBy(async () => {
      for await (const _ of turn.batches) abort.abort(new Error('cancelled'))
    })
    expect(error).toEqual(new Error('cancelled'))
    await vi.waitFor(() => expect(stream.cancelled()).toBe(true))
  })

  it('ends with the reason of its signal before an answer too', async () => {
    const abort = new AbortController()
    const world = new TurnWorld([
      ({ signal }) =>
        new Promise((_resolve, reject) => {
          signal.addEventListener('abort', () => reject(signal.reason))
          abort.abort(new Error('cancelled'))
        }),
    ])
    expect(await thrownBy(() => world.begin(HI, { signal: abort.signal }))).toEqual(new Error('cancelled'))
    expect(await world.outcome()).toMatchObject({ status: 499 })
  })
})

describe('the admission of a turn', () => {
  it('opens it before anything is sent, as plain data that another life can settle', async () => {
    const world = new TurnWorld([streamed(...CHAT_ANSWER)])
    const admitted = await world.admit(HI)
    expect([world.ledger.opened.length, world.asked.length]).toEqual([1, 0])
    expect(JSON.parse(JSON.stringify(admitted.open))).toEqual(admitted.open)
    expect(admitted.open.provider).toBe('openai-compatible')
    await batchesOf(await world.send(admitted))
    expect(world.asked).toHaveLength(1)
  })

  it('costs nothing when its holder does not send it', async () => {
    const world = new TurnWorld([])
    const { call } = await world.admit(HI)
    const locked = new ApiError('invalid_request', 'locked', { code: 'conversation_locked' })
    await settle(world.deps, call, refusalOutcome(call.opening, 5, locked))
    expect(await world.outcome()).toEqual({
      ...callOutcome(call.opening, 5, { status: 400, errorCode: 'conversation_locked' }),
      cost: 0,
      usage: null,
      request: null,
    })
    expect(world.asked).toEqual([])
  })

  it('charges the estimate of a turn whose holder died', async () => {
    const world = new TurnWorld([])
    const { open } = await world.admit(HI)
    const input = Math.ceil(JSON.stringify({ stream: true, ...HI }).length / 3)
    const outcome = interruptedOutcome(open, 30, 5)
    expect(outcome).toMatchObject({
      status: 0,
      errorCode: 'interrupted',
      provider: 'openai-compatible',
      usage: { input, output: 10 },
      provenance: 'estimated',
      cost: input + 10,
      flags: ['interrupted'],
    })
    // The settlement of a turn that is never closed: the input.
    expect(world.ledger.opened[0]?.estimate).toMatchObject({ usage: { input, output: 0 }, cost: input })
  })

  it('is refused with a record, and counted once', async () => {
    const refused = async (members: Json) => {
      const world = new TurnWorld([])
      const error = await thrownBy(() => world.admit(members))
      expect(world.ledger.opened).toEqual([])
      expect(world.ledger.recorded).toHaveLength(1)
      if (!(error instanceof ApiError)) return error
      const { status, code } = error
      expect(world.ledger.recorded[0]?.outcome).toMatchObject({ status, errorCode: code, cost: 0 })
      return [status, code]
    }
    expect(await refused({ ...HI, model: 'unknown' })).toEqual([400, 'model_not_found'])
    expect(await refused({ model: 'chat-model' })).toEqual([400, 'invalid_body'])
    expect(await refused({ ...HI, input: 'Hi' })).toEqual([400, 'invalid_body'])
    expect(await refused({ ...HI, stream: false })).toEqual([400, 'invalid_body'])
    expect(await refused({ ...HI, max_output_tokens: 0 })).toEqual([400, 'invalid_body'])
    // Refused by its translation alone.
    const orphan = { type: 'function_call_output', call_id: 'x', output: 'y' }
    expect(await refused({ ...HI, input: [orphan] })).toEqual([400, 'invalid_body'])
  })

  it('reserves what the turn can cost', async () => {
    const reserve = async (members: Json) => {
      const world = new TurnWorld([streamed(...CHAT_ANSWER)])
      await world.events({ ...HI, ...members })
      return world.ledger.opened[0]?.reserve ?? 0
    }
    const plain = await reserve({})
    expect(plain).toBe(JSON.stringify({ stream: true, ...HI }).length + 4_000)
    const limit = { max_output_tokens: 50 }
    expect(await reserve(limit)).toBe(JSON.stringify({ stream: true, ...HI, ...limit }).length + 50)
    const image = user([{ type: 'input_image', image_url: 'https://a.example/b' }])
    expect(await reserve({ input: [image] })).toBeGreaterThan(plain + 50_000)
    const file = user([
      { type: 'input_file', filename: 'a.pdf', file_data: 'data:application/pdf;base64,QUJD' },
    ])
    expect(await reserve({ input: [file] })).toBe(200_000 + 4_000)
    // It is not sent to the provider, which then looks nothing up.
    expect(await reserve({ tools: [{ type: 'web_search' }] })).toBeLessThan(plain + 2_000)
  })
})

const failureOf = async (answers: ReturnType<typeof whole>[], model = 'chat-model') => {
  const world = new TurnWorld(answers)
  const error = await thrownBy(() => world.begin({ ...HI, model }))
  if (!(error instanceof TurnFailure)) throw error
  const { status, code, message, retryAfterSeconds } = error
  return { status, code, message, retryAfterSeconds, outcome: await world.outcome() }
}

describe('an error of the upstream', () => {
  it.each([
    [400, { error: { message: 'No.', type: 'invalid_request_error', code: null } }, 'invalid_prompt'],
    [400, { error: { message: 'Long.', code: 'context_length_exceeded' } }, 'context_length_exceeded'],
    [400, { error: { message: 'No.', code: 'odd code' } }, 'invalid_prompt'],
    [400, { error: { message: 'No.', code: 400 } }, 'invalid_prompt'],
    [404, { error: { message: 'No.', code: 'model_not_found' } }, 'model_not_found'],
    [404, { detail: 'No.' }, 'server_error'],
    [500, { error: 'No.' }, 'server_error'],
  ])('%i of a chat upstream', async (status, body, code) => {
    const told = await failureOf([whole(body, status)])
    expect(told).toMatchObject({ status, code, retryAfterSeconds: undefined })
    expect(told.message).toMatch(/^(No\.|Long\. Send context_management .+)$/)
    expect(told.outcome).toMatchObject({ status, errorCode: 'upstream_error', cost: 0 })
  })

  it.each([
    [400, 'invalid_request_error', 'No.', 'invalid_prompt'],
    [400, 'invalid_request_error', 'prompt is too long: 3 tokens', 'context_length_exceeded'],
    [529, 'overloaded_error', 'Overloaded', 'server_error'],
  ])('%i of a messages upstream', async (status, type, message, code) => {
    const told = await failureOf(
      [whole({ type: 'error', error: { type, message } }, status)],
      'messages-model',
    )
    expect(told).toMatchObject({ status, code, message: expect.stringContaining(message) })
  })

  it.each([
    ['in seconds', () => '2', 2],
    ['in less than one', () => '0.2', 1],
    ['as a date', () => new Date(Date.now() + 90_000).toUTCString(), 90],
    ['in words', () => 'soon', 1],
  ])('says when to come back: %s', async (_name, header, seconds) => {
    const limit = whole({ error: { message: 'Slow.', code: null } }, 429, { 'retry-after': header() })
    const told = await failureOf([limit])
    expect(told).toMatchObject({ status: 429, code: 'rate_limit_exceeded' })
    expect(Math.abs((told.retryAfterSeconds ?? 0) - seconds)).toBeLessThanOrEqual(2)
  })

  it.each([401, 402, 403])('%i of its own credential is a fault of the gateway', async (status) => {
    const refusal = whole({ error: { message: 'Incorrect API key.' } }, status)
    const error = await thrownBy(() => new TurnWorld([refusal]).begin(HI))
    expect(error).toMatchObject({ name: 'ApiError', status: 500, code: 'provider_refused_gateway' })
  })

  it('is without the gateway’s credential, and of limited length', async () => {
    const message = `Key ${CREDENTIAL} is wrong. ${'x'.repeat(10_000)}`
    const told = await failureOf([whole({ error: { message } }, 400)])
    expect(told.message).toMatch(/^Key \[redacted] is wrong\. x+$/)
    expect(told.message).toHaveLength(4_096)
  })

  it.each([
    ['text', () => new Response('<html>', { status: 503 }), 'The upstream answered with status 503.'],
    ['nothing', () => new Response(null, { status: 503 }), 'The upstream answered with status 503.'],
  ])('that is %s', async (_name, answer, message) => {
    expect(await failureOf([answer])).toMatchObject({ status: 503, code: 'server_error', message })
  })

  it('before any answer is an error of the gateway', async () => {
    const unreachable = () => Promise.reject(new TypeError('fetch failed'))
    const error = await thrownBy(() => new TurnWorld([unreachable]).begin(HI))
    expect(error).toMatchObject({ name: 'ApiError', status: 502, code: 'upstream_empty_body' })
  })

  it.each([
    ['cuts it off', '', 'The upstream ended its answer early.'],
    ['tells an error in it', chunks({ error: { message: 'Overheated.' } }), 'Overheated.'],
    ['sends what is no JSON', 'data: {\n\n', 'The upstream sent an event that is not JSON.'],
  ])('comes after the events before it when it %s', async (_name, rest, message) => {
    const world = new TurnWorld([streamed(chatChunk({ content: 'Hel' }), rest)])
    const turn = await world.begin(HI)
    const told: string[] = []
    const error = await thrownBy(async () => {
      for await (const batch of turn.batches) told.push(said(batch, 'text'))
    })
    expect(told.join('')).toBe('Hel')
    expect(error).toBeInstanceOf(TurnFailure)
    expect(error).toMatchObject({ status: null, code: 'stream_error', message })
    expect(await world.outcome()).toMatchObject({ status: 200, errorCode: 'stream_error' })
  })
})
