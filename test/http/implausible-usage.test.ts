import { beforeAll, describe, expect, it } from 'vitest'
import { gateway, upstreamControl } from '../harness/gateway.ts'
import { openStream } from '../harness/open-stream.ts'
import { type AuditEntry, auditEntryOf, callEntries } from '../harness/records.ts'
import {
  callRouted,
  createRoutedModel,
  type Dialect,
  KINDS,
  type RoutedModel,
} from '../harness/routed-model.ts'
import { bearer, createTenant, type Tenant, uniqueName } from '../harness/tenant.ts'
import { registerAnswers, type ScriptStep } from '../harness/upstream.ts'
import { createAgent, definitionOf, endedRun, trigger } from './support/agents.ts'
import type { Json } from './support/response-calls.ts'
import { postResponse } from './support/response-streams.ts'

// Reported usage is charged as far as it is plausible. The rest is an estimate, which the record names as such.

const MAX_TOKENS = 400
const SHORT = 'Twenty bytes of text'
const LONG = 'word '.repeat(1_200)

/** Counts in the terms of chat completions; translated to those of messages. */
interface Reported {
  prompt?: number
  cached?: number
  completion?: number
  reasoning?: number
}

const chatUsage = ({ prompt = 20, cached, completion = 9, reasoning }: Reported) => ({
  prompt_tokens: prompt,
  completion_tokens: completion,
  total_tokens: prompt + completion,
  ...(cached !== undefined && { prompt_tokens_details: { cached_tokens: cached } }),
  ...(reasoning !== undefined && { completion_tokens_details: { reasoning_tokens: reasoning } }),
})
/** `input_tokens` has no cached tokens. */
const messagesUsage = ({ prompt = 20, cached, completion = 9, reasoning }: Reported) => ({
  input_tokens: prompt,
  ...(cached !== undefined && { cache_read_input_tokens: cached }),
  output_tokens: completion,
  ...(reasoning !== undefined && { output_tokens_details: { thinking_tokens: reasoning } }),
})

const frame = (data: unknown) => `data: ${typeof data === 'string' ? data : JSON.stringify(data)}\n\n`
const event = (data: { type: string } & Json) => `event: ${data.type}\n${frame(data)}`
const JSON_TYPE = { 'content-type': 'application/json' }
const SSE_TYPE = { 'content-type': 'text/event-stream' }

const chunk = (choices: object[], more: object = {}) =>
  frame({ id: 'c', object: 'chat.completion.chunk', created: 1, model: 'm', choices, ...more })
const message = (content: object[], usage: object) => ({
  ...{ id: 'msg', type: 'message', role: 'assistant', model: 'm', content },
  ...{ stop_reason: 'end_turn', stop_sequence: null, usage },
})

/** An answer with a text and a usage: as a whole body, and as the frames of a stream, of which the first has no text. */
function framesOf(dialect: Dialect, text: string, reported: Reported): { body: object; sse: string[] } {
  if (dialect === 'chat') {
    const usage = chatUsage(reported)
    const choices = [{ index: 0, message: { role: 'assistant', content: text }, finish_reason: 'stop' }]
    const body = { id: 'c', object: 'chat.completion', created: 1, model: 'm', choices, usage }
    const sse = [
      chunk([{ index: 0, delta: { role: 'assistant', content: '' }, finish_reason: null }]),
      chunk([{ index: 0, delta: { content: text }, finish_reason: null }]),
      chunk([{ index: 0, delta: {}, finish_reason: 'stop' }]),
      chunk([], { usage }),
      frame('[DONE]'),
    ]
    return { body, sse }
  }
  const usage = messagesUsage(reported)
  const { input_tokens: _, output_tokens: __, ...details } = usage
  const sse = [
    event({
      type: 'message_start',
      message: { ...message([], { ...usage, output_tokens: 1 }), stop_reason: null },
    }),
    event({ type: 'content_block_start', index: 0, content_block: { type: 'text', text: '' } }),
    event({ type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text } }),
    event({ type: 'content_block_stop', index: 0 }),
    event({
      type: 'message_delta',
      delta: { stop_reason: 'end_turn' },
      usage: { ...details, output_tokens: usage.output_tokens },
    }),
    event({ type: 'message_stop' }),
  ]
  return { body: message([{ type: 'text', text }], usage), sse }
}

/** An answer in its streamed and in its whole form. */
function answerOf(...answer: Parameters<typeof framesOf>): {
  streamed: ScriptStep[]
  whole: ScriptStep[]
} {
  const { body, sse } = framesOf(...answer)
  return {
    streamed: [{ headers: SSE_TYPE }, { sse }, { end: true }],
    whole: [{ headers: JSON_TYPE, body: JSON.stringify(body) }],
  }
}

interface Known {
  input: number
  cacheRead: number
  output: number
  reasoning: number
}

/** @param bytes of the request. */
type Expected = (bytes: number, dialect: Dialect) => Partial<Known>

/** Tokens of so many bytes, estimated for a model that is not known. */
const estimated = (bytes: number): number => Math.ceil(bytes / 3)

const CASES: Array<[name: string, text: string, reported: Reported, expected: Expected]> = [
  [
    'zeros',
    SHORT,
    { prompt: 0, completion: 0 },
    (bytes) => ({ input: estimated(bytes), output: estimated(SHORT.length) }),
  ],
  [
    'a token for 1,000 characters',
    LONG,
    { completion: 5 },
    () => ({ input: 20, output: Math.min(MAX_TOKENS, estimated(LONG.length)) }),
  ],
  [
    'more of the cache than was sent',
    SHORT,
    { cached: 1e9 },
    (bytes, dialect) =>
      dialect === 'chat' ? { input: 0, cacheRead: 20 } : { input: 20, cacheRead: bytes - 20 },
  ],
  ['more reasoning than output', SHORT, { reasoning: 1e9 }, () => ({ output: 9, reasoning: 9 })],
  [
    'counts below zero',
    SHORT,
    { prompt: -5, completion: -7 },
    (bytes) => ({ input: estimated(bytes), output: estimated(SHORT.length) }),
  ],
  ['fractions', SHORT, { prompt: 20.5, completion: 8.2 }, () => ({ input: 21, output: 9 })],
  [
    'more than was sent and requested',
    SHORT,
    { prompt: 1e9, completion: 1e9 },
    (bytes) => ({ input: bytes, output: MAX_TOKENS }),
  ],
]

const models: Partial<Record<Dialect, RoutedModel>> = {}
let tenant: Tenant

beforeAll(async () => {
  tenant = await createTenant(gateway(), { credits: 1e12 })
  for (const dialect of ['chat', 'messages'] as const) {
    models[dialect] = await createRoutedModel(gateway(), [KINDS[dialect]])
  }
})

const COST = { input: 1, output: 5 }

function expectCorrected(entry: AuditEntry, expected: Partial<Known>, otherFlags: string[] = []): void {
  const { record, credits_settled: cost } = entry
  expect(record).toMatchObject({ provenance: 'estimated', usage: expected })
  expect(record.flags).toEqual([...otherFlags, 'implausible_usage'])
  const { input, cacheRead, output, reasoning } = record.usage as Known
  expect(reasoning).toBeLessThanOrEqual(output)
  for (const count of [input, cacheRead, output, reasoning]) {
    expect(Number.isSafeInteger(count)).toBe(true)
    expect(count).toBeGreaterThanOrEqual(0)
  }
  // Cached input has no price of its own here.
  expect(cost).toBe((input + cacheRead) * COST.input + output * COST.output)
  expect(cost).toBeGreaterThan(0)
}

const PATHS: Record<Dialect, string> = { chat: '/v1/chat/completions', messages: '/v1/messages' }

const requestOf = (model: string, content: string, more: object = {}) =>
  JSON.stringify({ model, max_tokens: MAX_TOKENS, messages: [{ role: 'user', content }], ...more })

/** A chat stream with usage that the caller did not request is edited. */
const USAGE_ASKED = { chat: { stream_options: { include_usage: true } }, messages: {} }

/** A call of a stream that goes on once its caller has the first event, so that the runtime carries the rest. */
async function carried(dialect: Dialect, sse: readonly string[]) {
  const { id, providers } = await createRoutedModel(gateway(), [KINDS[dialect]], [], false)
  const signal = uniqueName('signal')
  // Only a stream that the runtime carries can repeat the credential; its record has a flag for that.
  const repeated = `: credential ${providers[0]}\n\n`
  const steps: ScriptStep[] = [
    { headers: SSE_TYPE },
    { sse: sse.slice(0, 1) },
    { waitForSignal: signal },
    { sse: [repeated, ...sse.slice(1)] },
    { end: true },
  ]
  const script = await registerAnswers(gateway(), [{ steps }])
  const body = requestOf(id, script, { stream: true, ...USAGE_ASKED[dialect] })
  const stream = await openStream(gateway().baseUrl + PATHS[dialect], bearer(tenant.key), body)
  await stream.until((text) => text.includes('\n\n'))
  await upstreamControl(gateway()).release(signal)
  await stream.end()
  return { body, entry: await auditEntryOf(gateway(), tenant, stream.headers['x-request-id']) }
}

describe.each(['chat', 'messages'] as const)('a usage that cannot be true (%s)', (dialect) => {
  const modelOf = () => models[dialect] as RoutedModel

  describe.each(['chat', 'messages'] as const)('for a caller of %s', (caller) => {
    it.each(CASES)('%s', async (_name, text, reported, expected) => {
      const script = await registerAnswers(gateway(), [answerOf(dialect, text, reported)])
      for (const stream of [false, true]) {
        const body = requestOf(modelOf().id, script, { stream })
        const answer = await callRouted(gateway(), tenant, { path: PATHS[caller], body })
        expect(answer.status, answer.text).toBe(200)
        const entry = await auditEntryOf(gateway(), tenant, answer.headers['x-request-id'])
        expectCorrected(entry, expected(body.length, dialect))
      }
    })
  })

  it.each(CASES)('%s, in a stream that the runtime carries', async (_name, text, reported, expected) => {
    const { sse } = framesOf(dialect, text, reported)
    const { body, entry } = await carried(dialect, sse)
    expectCorrected(entry, expected(body.length, dialect), ['credential_echoed'])
  })

  it('is corrected in a response, which reports the charged usage', async () => {
    const script = await registerAnswers(gateway(), [answerOf(dialect, LONG, { prompt: 0, completion: 2 })])
    const body = { model: modelOf().id, input: script, max_output_tokens: MAX_TOKENS }
    const answer = await postResponse(tenant.key, body)
    const entry = await auditEntryOf(gateway(), tenant, answer.headers['x-request-id'])
    expectCorrected(entry, { output: MAX_TOKENS })
    const { input } = entry.record.usage as Known
    const { usage } = JSON.parse(answer.text) as { usage: Json }
    expect(usage).toMatchObject({ input_tokens: input, output_tokens: MAX_TOKENS })
  })

  it('that fits what was sent is charged as it is', async () => {
    const script = await registerAnswers(gateway(), [
      answerOf(dialect, LONG, { prompt: 60, cached: 30, completion: 390, reasoning: 40 }),
    ])
    const body = requestOf(modelOf().id, script)
    const answer = await callRouted(gateway(), tenant, { path: PATHS[dialect], body })
    const { record } = await auditEntryOf(gateway(), tenant, answer.headers['x-request-id'])
    const input = dialect === 'chat' ? 30 : 60
    expect(record).toMatchObject({
      provenance: 'reported',
      flags: [],
      usage: { input, cacheRead: 30, output: 390 },
    })
  })
})

describe('a turn of an agent', () => {
  it('whose usage cannot be true is charged like any other call', async () => {
    const owner = await createTenant(gateway(), { credits: 1e12 })
    const script = await registerAnswers(gateway(), [answerOf('chat', LONG, { prompt: 0, completion: 0 })])
    const step = { model: models.chat?.id, instructions: script }
    const { runId } = await trigger(owner, await createAgent(owner, definitionOf([step])))
    const run = await endedRun(owner, runId)
    expect(run.status).toBe('success')
    const [entry] = await callEntries(gateway(), owner, 1, ({ model }) => model === models.chat?.id)
    if (!entry) throw new Error('no call is recorded')
    // The model's maximum, since the step has none.
    expectCorrected(entry, { output: 1_000 })
  })
})
