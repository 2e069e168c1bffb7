import type Anthropic from '@anthropic-ai/sdk'
import type OpenAI from 'openai'
import { beforeAll, describe, expect, it } from 'vitest'
import { gateway, query } from '../harness/gateway.ts'
import { auditEntryOf } from '../harness/records.ts'
import {
  CHAT_MODEL,
  MESSAGES_MODEL,
  messageRequest,
  newestAnthropic,
  newestOpenAi,
  openAiUrl,
  userMessage,
} from '../harness/sdk-clients.ts'
import { createTenant, type Tenant } from '../harness/tenant.ts'
import { marker } from '../harness/upstream.ts'

let tenant: Tenant
beforeAll(async () => {
  tenant = await createTenant(gateway())
})

/** The row of `usage_events` of one request, and what was settled for it. */
async function usageOf(requestId: string | null | undefined) {
  const { id, credits_settled: settled } = await auditEntryOf(gateway(), tenant, requestId)
  const [row] = await query(gateway(), 'select * from usage_events where call_id = $1', [id])
  const count = (name: string) => Number(row?.[name])
  return {
    provenance: row?.provenance,
    input: count('input_tokens'),
    cacheRead: count('cache_read_tokens'),
    cacheWrite5Minutes: count('cache_write_5_minute_tokens'),
    cacheWrite1Hour: count('cache_write_1_hour_tokens'),
    output: count('output_tokens'),
    reasoning: count('reasoning_tokens'),
    cost: count('cost'),
    settled,
    charged: count('cost') === settled && settled > 0,
  }
}

/** Prices of the scripted models, in micro-credits per token. */
function costOf(
  usage: Awaited<ReturnType<typeof usageOf>>,
  writes: { minutes: number; hour: number },
): number {
  const { input, cacheRead, cacheWrite5Minutes, cacheWrite1Hour, output } = usage
  return Math.ceil(
    input + cacheRead / 10 + cacheWrite5Minutes * writes.minutes + cacheWrite1Hour * writes.hour + output * 5,
  )
}

const finished = async (stream: ReturnType<Anthropic['messages']['stream']>) => ({
  data: await stream.finalMessage(),
  request_id: stream.request_id,
})

describe('usage of the Anthropic SDK', () => {
  const connect = (): Anthropic =>
    new newestAnthropic({ apiKey: tenant.key, baseURL: gateway().baseUrl, maxRetries: 0 })

  it('is charged for what is written to the cache by its time to live, and for what is read', async () => {
    const system: Anthropic.TextBlockParam[] = [
      {
        type: 'text',
        text: `rules of ${marker()} `.repeat(20),
        cache_control: { type: 'ephemeral', ttl: '1h' },
      },
      { type: 'text', text: 'examples '.repeat(30), cache_control: { type: 'ephemeral' } },
    ]
    const cold = await connect()
      .messages.create({ ...messageRequest('a question'), system })
      .withResponse()
    const stream = connect().messages.stream({ ...messageRequest('a question'), system })
    const warm = await stream.finalMessage()
    const { ephemeral_1h_input_tokens: hour = 0, ephemeral_5m_input_tokens: minutes = 0 } =
      cold.data.usage.cache_creation ?? {}
    expect(hour).toBeGreaterThan(50)
    expect(minutes).toBeGreaterThan(50)
    expect(warm.usage).toMatchObject({
      cache_read_input_tokens: hour + minutes,
      cache_creation_input_tokens: 0,
      input_tokens: cold.data.usage.input_tokens,
    })
    const written = await usageOf(cold.request_id)
    expect(written).toMatchObject({
      provenance: 'reported',
      input: cold.data.usage.input_tokens,
      cacheRead: 0,
      cacheWrite5Minutes: minutes,
      cacheWrite1Hour: hour,
      output: cold.data.usage.output_tokens,
      cost: costOf(written, { minutes: 1.25, hour: 2 }),
      settled: written.cost,
    })
    const read = await usageOf(stream.request_id)
    expect(read).toMatchObject({
      provenance: 'reported',
      cacheRead: hour + minutes,
      cacheWrite5Minutes: 0,
      cacheWrite1Hour: 0,
      cost: costOf(read, { minutes: 1.25, hour: 2 }),
      settled: read.cost,
    })
    expect(read.cost).toBeLessThan(written.cost)
  })

  it.each([
    [MESSAGES_MODEL, false],
    ['scripted-chat-reasoning', false],
    ['scripted-chat-reasoning', true],
  ])('counts thinking of %s apart within the output (stream: %s)', async (model, streams) => {
    const request = {
      ...messageRequest('think'),
      model,
      thinking: { type: 'enabled' as const, budget_tokens: 1024 },
    }
    const { data, request_id: requestId } = streams
      ? await finished(connect().messages.stream(request))
      : await connect().messages.create(request).withResponse()
    const thinking = data.usage.output_tokens_details?.thinking_tokens ?? 0
    expect(thinking).toBeGreaterThan(0)
    const usage = await usageOf(requestId)
    expect(usage).toMatchObject({ output: data.usage.output_tokens, reasoning: thinking, charged: true })
  })

  it('counts on a chat model what the cache gave beside the other input, whole and streamed', async () => {
    const text = `${marker()} ${'long prompt '.repeat(600)}`
    const request = { ...messageRequest(text), model: CHAT_MODEL }
    const cold = await connect().messages.create(request)
    const { data: whole, request_id: wholeId } = await connect().messages.create(request).withResponse()
    const stream = connect().messages.stream(request)
    const streamed = await stream.finalMessage()
    for (const [message, requestId] of [
      [whole, wholeId],
      [streamed, stream.request_id],
    ] as const) {
      const usage = await usageOf(requestId)
      expect(usage).toMatchObject({ provenance: 'reported', charged: true })
      expect(usage.cacheRead).toBeGreaterThanOrEqual(1024)
      expect(message.usage).toMatchObject({
        input_tokens: usage.input,
        cache_read_input_tokens: usage.cacheRead,
        cache_creation_input_tokens: 0,
        output_tokens: usage.output,
      })
      expect(usage.input + usage.cacheRead).toBe(cold.usage.input_tokens)
    }
  })
})

describe('usage of the OpenAI SDK', () => {
  const connect = (): OpenAI => new newestOpenAi({ apiKey: tenant.key, baseURL: openAiUrl(), maxRetries: 0 })

  it('counts what the cache gave once, apart from the other input', async () => {
    const messages = userMessage(`${marker()} ${'long prompt '.repeat(600)}`)
    const request = { model: CHAT_MODEL, messages, prompt_cache_key: 'kept' }
    await connect().chat.completions.create(request)
    const { data, request_id: requestId } = await connect().chat.completions.create(request).withResponse()
    const cached = data.usage?.prompt_tokens_details?.cached_tokens ?? 0
    expect(cached).toBeGreaterThanOrEqual(1024)
    const usage = await usageOf(requestId)
    expect(usage).toMatchObject({
      provenance: 'reported',
      input: (data.usage?.prompt_tokens ?? 0) - cached,
      cacheRead: cached,
      output: data.usage?.completion_tokens,
      cost: costOf(usage, { minutes: 1, hour: 1 }),
      settled: usage.cost,
    })
  })

  it.each([true, false])('counts a stream, reasoning told apart (usage asked: %s)', async (asked) => {
    const { data, request_id: requestId } = await connect()
      .chat.completions.create({
        model: 'scripted-chat-reasoning',
        messages: userMessage('reason about it'),
        reasoning_effort: 'high',
        stream: true,
        stream_options: { include_usage: asked },
      })
      .withResponse()
    let usage: OpenAI.CompletionUsage | null | undefined
    for await (const chunk of data) usage = chunk.usage ?? usage
    expect(usage !== undefined).toBe(asked)
    const metered = await usageOf(requestId)
    expect(metered).toMatchObject({ provenance: 'reported' })
    expect(metered.reasoning).toBeGreaterThan(0)
    expect(metered.output).toBeGreaterThan(metered.reasoning)
    if (asked) expect(metered.output).toBe(usage?.completion_tokens)
  })

  it('counts on a messages model what is written to the cache, and what is read, within the prompt', async () => {
    const long = { type: 'text' as const, text: `rules of ${marker()} `.repeat(60) }
    const marked = { ...long, cache_control: { type: 'ephemeral', ttl: '1h' } }
    const request = {
      model: MESSAGES_MODEL,
      messages: [{ role: 'system' as const, content: [marked] }, ...userMessage('a question')],
    }
    const cold = await connect().chat.completions.create(request).withResponse()
    const { data: chunks, request_id: warmId } = await connect()
      .chat.completions.create({ ...request, stream: true, stream_options: { include_usage: true } })
      .withResponse()
    let warm: OpenAI.CompletionUsage | null | undefined
    for await (const chunk of chunks) warm = chunk.usage ?? warm
    const [written, read] = [await usageOf(cold.request_id), await usageOf(warmId)]
    expect(written).toMatchObject({
      provenance: 'reported',
      cacheRead: 0,
      cacheWrite5Minutes: 0,
      charged: true,
    })
    expect(written.cacheWrite1Hour).toBeGreaterThan(50)
    expect(cold.data.usage).toMatchObject({
      prompt_tokens: written.input + written.cacheWrite1Hour,
      completion_tokens: written.output,
      total_tokens: written.input + written.cacheWrite1Hour + written.output,
      prompt_tokens_details: { cached_tokens: 0 },
    })
    expect(read).toMatchObject({ input: written.input, cacheRead: written.cacheWrite1Hour, charged: true })
    expect(warm).toMatchObject({
      prompt_tokens: cold.data.usage?.prompt_tokens,
      completion_tokens: read.output,
      prompt_tokens_details: { cached_tokens: read.cacheRead },
    })
  })

  it('counts reasoning of a messages model apart within the completion', async () => {
    const { data, request_id: requestId } = await connect()
      .chat.completions.create({
        model: 'scripted-messages-thinking',
        messages: userMessage('think'),
        reasoning_effort: 'low',
        max_tokens: 8_000,
      })
      .withResponse()
    const reasoning = data.usage?.completion_tokens_details?.reasoning_tokens ?? 0
    expect(reasoning).toBeGreaterThan(0)
    const usage = await usageOf(requestId)
    expect(usage).toMatchObject({ output: data.usage?.completion_tokens, reasoning, charged: true })
  })
})
