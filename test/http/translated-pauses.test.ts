import OpenAI from 'openai'
import { beforeAll, describe, expect, it } from 'vitest'
import { MOST_CONTINUATIONS } from '../../src/gateway/translation/translated-call.ts'
import { gateway } from '../harness/gateway.ts'
import { auditEntryOf } from './support/records.ts'
import { type Answer, jsonOf, send } from './support/send.ts'
import { bearer, createTenant, type Tenant } from './support/tenant.ts'
import { CHAT_ON_MESSAGES, payloadsOf, streamedText, wholeText } from './support/translated-pairs.ts'
import {
  marker,
  registerAnswers,
  type ScriptAnswer,
  type ScriptStep,
  seenRequests,
} from './support/upstream.ts'

type Json = Record<string, unknown>

const pair = CHAT_ON_MESSAGES
const { opening, text: textFrame, ending, whole } = pair.upstream
let tenant: Tenant

beforeAll(async () => {
  tenant = await createTenant(gateway())
})

const SEARCH = { web_search_options: {} }
const forms = [
  ['whole', {}],
  ['streamed', { stream: true, stream_options: { include_usage: true } }],
] as const

function call(text: string, more: Json = {}): Promise<Answer> {
  const body = JSON.stringify(pair.request(text, { ...SEARCH, ...more }))
  const url = gateway().baseUrl + pair.route.path
  return send(url, { method: 'POST', headers: bearer(tenant.key), body })
}

interface Told {
  text: string
  finish: unknown
  usage: unknown
}

/** An answer in either form. */
function toldBy(answer: Answer): Told {
  if (!answer.headers['content-type']?.includes('event-stream')) {
    const body = jsonOf(answer) as { choices: Array<{ finish_reason: string }>; usage: unknown }
    return { text: wholeText(body), finish: body.choices[0]?.finish_reason, usage: body.usage }
  }
  const choices = payloadsOf(answer.text).flatMap(
    ({ choices }) => choices as Array<{ finish_reason: unknown }>,
  )
  const finishes = choices.map(({ finish_reason }) => finish_reason).filter((reason) => reason !== null)
  expect(finishes.length).toBeLessThanOrEqual(1)
  return {
    text: streamedText(answer.text),
    finish: finishes[0],
    usage: payloadsOf(answer.text).findLast(({ usage }) => usage)?.usage,
  }
}

const pausing = (text: string) => text.replaceAll('"end_turn"', '"pause_turn"')
/** An exchange that says a text and then pauses, or ends. */
const says = (text: string, pauses: boolean): ScriptAnswer => {
  const turn = pauses ? pausing : (same: string) => same
  return {
    streamed: [{ sse: [...opening, textFrame(text), ...ending].map(turn) }],
    whole: [{ json: JSON.parse(turn(JSON.stringify(whole(text)))) }],
  }
}
const both = (steps: ScriptStep[]): ScriptAnswer => ({ steps })

async function recordOf(answer: Answer) {
  return (await auditEntryOf(gateway(), tenant, answer.headers['x-request-id'])).record
}

describe.each(forms)('a chat call on a model that pauses its turn, %s', (form, more) => {
  it.each([2, 3])('is one answer of %i exchanges, each with all that was said before', async (exchanges) => {
    const text = marker()
    // The script refuses content that was not sent back complete and unchanged.
    const answer = await call(`${text} script:pause-turn exchanges=${exchanges}`, more)
    expect(answer.status, answer.text).toBe(200)
    const searches = exchanges === 2 ? 'Search 1.' : 'Search 1.Search 2.'
    const told = toldBy(answer)
    expect(told).toMatchObject({ text: `${searches}Owls hunt at night.`, finish: 'stop' })
    const seen = (await seenRequests(gateway(), text)).map(({ body }) => JSON.parse(body) as Json)
    expect(seen.map(({ messages }) => (messages as Json[]).map(({ role }) => role))).toEqual(
      Array.from({ length: exchanges }, (_, index) => (index === 0 ? ['user'] : ['user', 'assistant'])),
    )
    for (const { messages: _, ...rest } of seen) {
      const { messages: __, ...first } = seen[0] as Json
      expect(rest).toEqual(first)
    }
    const record = await recordOf(answer)
    expect(record.attempts).toMatchObject(
      Array(exchanges).fill({ provider: 'scripted-anthropic', status: 200, failure: null }),
    )
    const { input, output } = record.usage as { input: number; output: number }
    expect(input).toBe(12 * exchanges)
    expect(told.usage).toMatchObject({ prompt_tokens: input, completion_tokens: output })
    expect(record).toMatchObject({ provenance: 'reported', cost: input + 5 * output, errorCode: null })
  })

  it('keeps what the model thought in the content that it sends back', async () => {
    const text = marker()
    const model = 'scripted-messages-thinking'
    const thinks = { model, reasoning_effort: 'high', max_tokens: 8_000 }
    const answer = await call(`${text} script:pause-turn`, { ...more, ...thinks })
    expect(answer.status, answer.text).toBe(200)
    expect(toldBy(answer)).toMatchObject({ text: 'Search 1.Owls hunt at night.', finish: 'stop' })
    const [, second] = await seenRequests(gateway(), text)
    expect(second?.body).toContain('"signature"')
  })

  it('sends long texts of the request again with every exchange', async () => {
    const long = 'long text é '.repeat(4_000)
    const text = marker()
    const messages = [
      { role: 'system', content: long },
      { role: 'user', content: `${text} script:pause-turn exchanges=3` },
    ]
    const answer = await call('', { ...more, messages })
    expect(toldBy(answer).text).toBe('Search 1.Search 2.Owls hunt at night.')
    const sizes = (await seenRequests(gateway(), text)).map(({ bodyBytes }) => bodyBytes)
    expect(sizes).toHaveLength(3)
    for (const size of sizes) expect(size).toBeGreaterThan(Buffer.byteLength(long))
  })

  it('numbers what it tells over all exchanges', async () => {
    const tool = { type: 'tool_use', id: 'toolu_1', name: 'look', input: { at: 1 } }
    const json = { ...whole('two'), content: [{ type: 'text', text: 'two' }, tool], stop_reason: 'tool_use' }
    const [start = ''] = opening
    const streamed = [
      start,
      frame({ type: 'content_block_start', index: 0, content_block: { ...tool, input: {} } }),
      frame({
        type: 'content_block_delta',
        index: 0,
        delta: { type: 'input_json_delta', partial_json: '{"at":1}' },
      }),
      frame({ type: 'content_block_stop', index: 0 }),
      frame({ type: 'message_delta', delta: { stop_reason: 'tool_use' }, usage: { output_tokens: 5 } }),
      frame({ type: 'message_stop' }),
    ]
    const script = await registerAnswers(gateway(), [
      says('one ', true),
      { streamed: [{ sse: streamed }], whole: [{ json }] },
    ])
    const tools = [{ type: 'function', function: { name: 'look', parameters: { type: 'object' } } }]
    const client = new OpenAI({ apiKey: tenant.key, baseURL: `${gateway().baseUrl}/v1`, maxRetries: 0 })
    const request = pair.request(script, {
      ...SEARCH,
      tools,
    }) as unknown as OpenAI.ChatCompletionCreateParamsNonStreaming
    const completion =
      form === 'whole'
        ? await client.chat.completions.create(request)
        : await client.chat.completions.stream({ ...request, stream: true }).finalChatCompletion()
    expect(completion.choices).toHaveLength(1)
    expect(completion.choices[0]).toMatchObject({
      finish_reason: 'tool_calls',
      message: { tool_calls: [{ id: 'toolu_1', function: { name: 'look', arguments: '{"at":1}' } }] },
    })
  })

  it('ends as cut off after too many pauses', async () => {
    const text = marker()
    const script = await registerAnswers(gateway(), [says('again ', true)])
    const answer = await call(`${text} ${script}`, more)
    const exchanges = MOST_CONTINUATIONS + 1
    expect(toldBy(answer)).toMatchObject({
      text: 'again '.repeat(exchanges),
      finish: 'length',
      usage: { prompt_tokens: 3 * exchanges, completion_tokens: 5 * exchanges },
    })
    expect(await seenRequests(gateway(), text)).toHaveLength(exchanges)
    const record = await recordOf(answer)
    expect(record.attempts).toHaveLength(exchanges)
    expect(record).toMatchObject({ errorCode: null, usage: { input: 3 * exchanges, output: 5 * exchanges } })
  })

  it('ends as cut off where its credits would not reach for more', async () => {
    const owner = await createTenant(gateway())
    // Each exchange reports more than a quarter of what the call can cost at most.
    const dear = (form: string) => form.replaceAll('"output_tokens":5', '"output_tokens":70000')
    const first = says('dear ', true) as { streamed: ScriptStep[]; whole: ScriptStep[] }
    const script = await registerAnswers(gateway(), [
      {
        streamed: JSON.parse(
          dear(JSON.stringify(first.streamed)).replaceAll(
            '\\"output_tokens\\":5',
            '\\"output_tokens\\":70000',
          ),
        ),
        whole: JSON.parse(dear(JSON.stringify(first.whole))),
      },
    ])
    const text = marker()
    const body = JSON.stringify(pair.request(`${text} ${script}`, { ...SEARCH, ...more }))
    const answer = await send(gateway().baseUrl + pair.route.path, {
      method: 'POST',
      headers: bearer(owner.key),
      body,
    })
    expect(toldBy(answer)).toMatchObject({ text: 'dear ', finish: 'length' })
    expect(await seenRequests(gateway(), text)).toHaveLength(1)
  })

  it('does not wait for a turn that pauses though nothing runs at the provider', async () => {
    const script = await registerAnswers(gateway(), [says('one', true)])
    const answer = await call(script, { ...more, web_search_options: undefined })
    expect(toldBy(answer)).toMatchObject({ text: 'one', finish: 'length' })
  })
})

const frame = (data: Json & { type: string }) => `event: ${data.type}\ndata: ${JSON.stringify(data)}\n\n`

describe('a second exchange that fails', () => {
  const failing: Array<[name: string, second: ScriptStep[], status: number, says: RegExp]> = [
    [
      'with an error',
      [
        {
          status: 529,
          headers: { 'content-type': 'application/json' },
          body: '{"error":{"message":"Overloaded"}}',
        },
      ],
      529,
      /Overloaded|status 529/,
    ],
    ['with a reset', [{ destroy: true }], 502, /could not be reached/],
    ['with an empty answer', [{ status: 200, headers: {}, body: '' }], 502, /empty|status 200/],
    ['with what is not JSON', [{ status: 200, headers: {}, body: 'Hello' }], 502, /not JSON|status 200/],
  ]

  it.each(failing)('%s is told as HTTP has it for a whole answer', async (_how, second, status, message) => {
    const script = await registerAnswers(gateway(), [says('one ', true), both(second)])
    const answer = await call(script)
    expect(answer.status).toBe(status)
    expect(answer.text).toMatch(message)
    const record = await recordOf(answer)
    // The first exchange was used, whatever came of the second.
    expect(record).toMatchObject({ status, usage: { input: expect.any(Number), output: expect.any(Number) } })
    const { input, output } = record.usage as { input: number; output: number }
    expect(input).toBeGreaterThanOrEqual(3)
    expect(output).toBeGreaterThanOrEqual(5)
    expect(record.attempts).toHaveLength(2)
  })

  it.each(failing)(
    "%s is told in the stream in the caller's words",
    async (_how, second, _status, message) => {
      const script = await registerAnswers(gateway(), [says('one ', true), both(second)])
      const answer = await call(script, { stream: true })
      expect(answer.status).toBe(200)
      expect(streamedText(answer.text)).toBe('one ')
      const [, error = ''] = answer.text.split('event: error\ndata: ')
      expect(error.endsWith('\n\ndata: [DONE]\n\n')).toBe(true)
      expect(JSON.parse(error.split('\n\n')[0] ?? '')).toEqual({
        error: { message: expect.stringMatching(message), type: 'server_error', code: 'stream_error' },
      })
      const record = await recordOf(answer)
      expect(record).toMatchObject({ status: 200, errorCode: 'stream_error' })
      const { input, output } = record.usage as { input: number; output: number }
      expect(input).toBeGreaterThanOrEqual(3)
      expect(output).toBeGreaterThanOrEqual(5)
      expect(record.attempts).toHaveLength(2)
    },
  )

  it('in the middle of its stream is told after what it said', async () => {
    const error = pair.upstream.error('Overloaded')
    for (const [last, message] of [
      [{ sse: [error] }, 'Overloaded'],
      [{ destroy: true }, 'The upstream broke off its answer.'],
      [{ end: true }, 'The upstream ended its answer early.'],
    ] as Array<[ScriptStep, string]>) {
      const script = await registerAnswers(gateway(), [
        says('one ', true),
        both([{ sse: [...opening, textFrame('two')] }, last]),
      ])
      const answer = await call(script, { stream: true })
      expect(streamedText(answer.text)).toBe('one two')
      expect(answer.text).toContain(`event: error\ndata: {"error":{"message":"${message}"`)
      expect(answer.text.endsWith('data: [DONE]\n\n')).toBe(true)
      expect(answer.text).not.toContain('"finish_reason":"stop"')
    }
  })
})
