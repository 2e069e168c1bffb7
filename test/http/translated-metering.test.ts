import Anthropic from '@anthropic-ai/sdk'
import { beforeAll, describe, expect, it } from 'vitest'
import { gateway } from '../harness/gateway.ts'
import { type AuditEntry, auditEntryOf, settledCredits } from '../harness/records.ts'
import { type Answer, jsonOf, send } from '../harness/send.ts'
import { bearer, createTenant, type Tenant } from '../harness/tenant.ts'
import {
  ALL_PAIRS,
  CHAT_ON_MESSAGES,
  MESSAGES_ON_CHAT,
  named,
  PAIRS,
  payloadsOf,
  type TranslatedPair,
} from './support/translated-pairs.ts'

let tenant: Tenant

beforeAll(async () => {
  tenant = await createTenant(gateway())
})

type Json = Record<string, unknown>

async function call(pair: TranslatedPair, text: string, more: Json = {}): Promise<[Answer, AuditEntry]> {
  const url = gateway().baseUrl + pair.route.path
  const body = JSON.stringify(pair.request(text, more))
  const answer = await send(url, { method: 'POST', headers: bearer(tenant.key), body })
  expect(answer.status, answer.text.slice(0, 500)).toBe(200)
  return [answer, await auditEntryOf(gateway(), tenant, answer.headers['x-request-id'])]
}

/** The model of one pair as a caller of its own protocol asks for it. */
const natively = (pair: TranslatedPair): TranslatedPair => {
  const other = PAIRS.find(({ route }) => route.name !== pair.route.name) as TranslatedPair
  return {
    ...other,
    model: pair.model,
    request: (text, more) => other.route.request(text, { model: pair.model, ...more }),
  }
}

const USAGE_ASKED = { stream: true, stream_options: { include_usage: true } }
/** Only chat callers have to ask for usage on a stream. */
const usageAsked = ({ route }: TranslatedPair) =>
  route.surface === 'messages' ? { stream: true } : USAGE_ASKED

/** What the scripts about usage report, in either protocol: 550 tokens in, 50 of them written to the cache. */
const CHAT_USAGE = {
  prompt_tokens: 550,
  completion_tokens: 50,
  total_tokens: 600,
  prompt_tokens_details: { cached_tokens: 400, cache_write_tokens: 50 },
  completion_tokens_details: { reasoning_tokens: 15 },
}
const MESSAGES_USAGE = {
  input_tokens: 100,
  cache_read_input_tokens: 400,
  cache_creation_input_tokens: 50,
  output_tokens: 50,
}
/** As it is charged: only messages tell the two lives of what was written to the cache apart. */
const CHARGED = {
  messages: {
    input: 100,
    cacheRead: 400,
    cacheWrite5Minutes: 20,
    cacheWrite1Hour: 30,
    output: 50,
    reasoning: 15,
  },
  chat: { input: 100, cacheRead: 400, cacheWrite5Minutes: 50, cacheWrite1Hour: 0, output: 50, reasoning: 15 },
}

/** The usage that a caller is told on a stream: in the last event that has any. */
function streamedUsage({ text }: Answer): Json | undefined {
  return payloadsOf(text).findLast((payload) => payload.usage)?.usage as Json | undefined
}

describe.each(named(PAIRS))('the usage of %s', (_, pair) => {
  const expected = pair.route.surface === 'messages' ? MESSAGES_USAGE : CHAT_USAGE

  it('is told and charged as the upstream reports it, in either protocol', async () => {
    const costs: number[] = []
    for (const each of [pair, natively(pair)]) {
      for (const more of [{}, usageAsked(each)]) {
        const [answer, entry] = await call(each, 'script:usage-full', more)
        const told = 'stream' in more ? streamedUsage(answer) : jsonOf(answer).usage
        if (each === pair) expect(told).toMatchObject(expected)
        expect(entry.record).toMatchObject({
          provenance: 'reported',
          usage: CHARGED[pair.upstream.protocol],
          cost: entry.credits_settled,
        })
        costs.push(entry.credits_settled)
      }
    }
    // The same model costs the same, whoever asks it in whatever protocol.
    expect(costs).toEqual(Array(4).fill(pair.upstream.protocol === 'chat' ? 440 : 475))
  })

  it.each(['usage-late', 'usage-nulls', 'usage-on-last-chunk'])(
    'is read of %s as natively',
    async (script) => {
      const [answer, { record }] = await call(pair, `script:${script}`, usageAsked(pair))
      const [, native] = await call(natively(pair), `script:${script}`, usageAsked(natively(pair)))
      expect(record).toMatchObject({
        provenance: 'reported',
        usage: native.record.usage,
        cost: native.record.cost,
      })
      const { input, cacheRead, output } = record.usage as Record<string, number>
      const told = streamedUsage(answer) ?? {}
      if (pair.route.surface === 'messages') {
        expect(told).toMatchObject({
          input_tokens: input,
          cache_read_input_tokens: cacheRead,
          output_tokens: output,
        })
      } else {
        expect(told).toMatchObject({
          completion_tokens: output,
          prompt_tokens_details: { cached_tokens: cacheRead },
        })
      }
    },
  )

  it('is estimated where the upstream reports none, and flagged so', async () => {
    for (const more of [{}, USAGE_ASKED]) {
      const [answer, { record, credits_settled }] = await call(pair, 'script:usage-missing', more)
      expect(record).toMatchObject({ provenance: 'estimated', errorCode: null })
      const usage = record.usage as { input: number; output: number }
      // A token is no more than a byte.
      expect(usage.output).toBeGreaterThan('Every token of this answer is counted.'.length / 4)
      expect(usage.output).toBeLessThan(answer.text.length)
      expect(usage.input).toBeGreaterThan(0)
      expect(credits_settled).toBe(usage.input + 5 * usage.output)
    }
  })
})

describe('usage on a stream', () => {
  it('is told to a chat caller who asks for it, on one chunk without choices before the end', async () => {
    for (const pair of ALL_PAIRS.filter(({ route }) => route.surface === 'chat_completions')) {
      const [{ text }] = await call(pair, 'script:usage-full', USAGE_ASKED)
      const payloads = payloadsOf(text)
      expect(payloads.at(-1)).toMatchObject({ choices: [], usage: CHAT_USAGE })
      for (const payload of payloads.slice(0, -1)) {
        expect(payload.usage ?? null).toBeNull()
        expect(payload.choices).not.toEqual([])
      }
    }
  })

  it('is not told to a chat caller who does not, and metered all the same', async () => {
    for (const pair of ALL_PAIRS.filter(({ route }) => route.surface === 'chat_completions')) {
      for (const more of [{}, { stream_options: { include_usage: false } }, { stream_options: null }]) {
        const [{ text }, entry] = await call(pair, 'script:usage-full', { stream: true, ...more })
        for (const payload of payloadsOf(text)) {
          expect(payload.usage ?? null).toBeNull()
          expect(payload.choices).not.toEqual([])
        }
        expect(entry.record).toMatchObject({ provenance: 'reported', usage: { input: 100, cacheRead: 400 } })
      }
    }
  })

  it('of messages adds up for the official client as in a whole answer', async () => {
    const client = new Anthropic({
      authToken: tenant.key,
      apiKey: null,
      baseURL: gateway().baseUrl,
      maxRetries: 0,
    })
    const request = MESSAGES_ON_CHAT.request(
      'script:usage-full',
    ) as unknown as Anthropic.MessageCreateParamsNonStreaming
    const whole = await client.messages.create(request)
    expect(whole.usage).toMatchObject(MESSAGES_USAGE)
    const streamed = await client.messages.stream(request).finalMessage()
    expect(streamed.usage).toMatchObject(MESSAGES_USAGE)
  })
})

describe.each(named(ALL_PAIRS))('the audit record of %s', (_, pair) => {
  it('names the call as the caller made it and the attempt as it was sent, with every byte counted', async () => {
    for (const more of [{}, { stream: true }]) {
      const text = 'script:canned with some text é'
      const [answer, entry] = await call(pair, text, more)
      expect(entry).toMatchObject({
        status: 200,
        surface: pair.route.surface,
        action: `POST ${pair.route.path}`,
        model: pair.model,
        user_id: tenant.userId,
        key_id: tenant.keyId,
      })
      const { record } = entry
      expect(record).toMatchObject({
        provider: pair.provider,
        attempts: [{ provider: pair.provider, upstreamModel: pair.model, status: 200, failure: null }],
        errorCode: null,
        flags: [],
      })
      const request = record.request as Record<string, number>
      const response = record.response as Record<string, number>
      for (const { inspected, uninspected, released, withheld } of [request, response]) {
        expect(Number(inspected) + Number(uninspected)).toBe(Number(released) + Number(withheld))
      }
      expect(request.inspected).toBeGreaterThanOrEqual(Buffer.byteLength(text))
      expect(Number(request.inspected) + Number(request.uninspected)).toBe(
        Buffer.byteLength(JSON.stringify(pair.request(text, more))),
      )
      expect(response.inspected).toBeGreaterThanOrEqual(48)
      expect(answer.status).toBe(200)
    }
  })
})

describe('the credits of translated calls', () => {
  it('leave the balance with every call once', async () => {
    const owner = await createTenant(gateway())
    const bodies = [CHAT_ON_MESSAGES, MESSAGES_ON_CHAT].flatMap((pair) =>
      [{}, { stream: true }].map((more) => ({
        url: gateway().baseUrl + pair.route.path,
        body: JSON.stringify(pair.request('script:canned prompt=7', more)),
      })),
    )
    await Promise.all(
      bodies.map(({ url, body }) => send(url, { method: 'POST', headers: bearer(owner.key), body })),
    )
    const { balance } = await settledCredits(gateway(), owner)
    expect(balance).toBe(1_000_000_000 - bodies.length * (7 + 5 * 11))
  })
})
