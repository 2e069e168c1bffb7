import Anthropic from '@anthropic-ai/sdk'
import { beforeAll, describe, expect, it } from 'vitest'
import { gateway } from '../harness/gateway.ts'
import { auditEntryOf } from '../harness/records.ts'
import { jsonOf, send } from '../harness/send.ts'
import { bearer, createTenant, type Tenant } from '../harness/tenant.ts'
import { marker, seenRequests } from '../harness/upstream.ts'

let tenant: Tenant

beforeAll(async () => {
  tenant = await createTenant(gateway())
})

/** Of a family that nobody knows, what stands around a conversation is taken for the most that is known of any. */
const FRAME_TOKENS = 64

/** The header that distinguishes an estimate from a count. */
const SOURCE = 'x-headgate-token-count'

const question = (text: string) => ({ role: 'user', content: text }) as const

async function count(model: string, members: object) {
  const answer = await send(`${gateway().baseUrl}/v1/messages/count_tokens`, {
    method: 'POST',
    headers: { ...bearer(tenant.key), 'content-type': 'application/json' },
    body: JSON.stringify({ model, ...members }),
  })
  return { answer, tokens: Number(jsonOf(answer).input_tokens) }
}

describe('token counts', () => {
  it.each([
    ['by the counter of the same protocol', 'scripted-messages', '/v1/messages/count_tokens'],
    ['by the counter of the responses protocol', 'scripted-chat', '/v1/responses/input_tokens'],
  ])('%s', async (_name, model, path) => {
    const text = marker()
    const { answer, tokens } = await count(model, { messages: [question(`Count this, ${text}.`)] })
    expect(answer.status, answer.text).toBe(200)
    expect(Object.keys(jsonOf(answer))).toEqual(['input_tokens'])
    expect(answer.headers[SOURCE]).toBeUndefined()
    const seen = await seenRequests(gateway(), text)
    expect(seen.map((request) => request.path)).toEqual([path])
    expect(tokens).toBeGreaterThan(0)
  })

  it('by an estimate, which is named as one, where the provider has no counter, which is not asked again', async () => {
    const text = marker()
    const first = await count('scripted-chat-plain', { messages: [question(`${text} one`)] })
    const second = await count('scripted-chat-plain', { messages: [question(`${text} two`)] })
    expect([first.answer.status, second.answer.status]).toEqual([200, 200])
    expect(Object.keys(jsonOf(first.answer))).toEqual(['input_tokens'])
    for (const { answer } of [first, second]) expect(answer.headers[SOURCE]).toBe('estimate')
    // Another test may have asked it already.
    expect((await seenRequests(gateway(), text)).length).toBeLessThanOrEqual(1)
    expect(first.tokens).toBeGreaterThan(text.length / 6)
    expect(first.tokens).toBeLessThan(text.length + FRAME_TOKENS)
  })

  it('grow with what is asked: system, tools, results', async () => {
    const messages = [question('What is the weather?')]
    const model = 'scripted-chat-plain'
    const plain = (await count(model, { messages })).tokens
    const system = (await count(model, { messages, system: 'Answer in one short sentence.' })).tokens
    const tools = [
      {
        name: 'weather',
        description: 'Weather of a place',
        input_schema: { type: 'object', properties: {} },
      },
    ]
    const tooled = (await count(model, { messages, tools })).tokens
    expect(system).toBeGreaterThan(plain + 4)
    expect(tooled).toBeGreaterThan(plain + 8)
  })

  it('cost nothing, and are recorded with who counted', async () => {
    const { answer } = await count('scripted-chat-large', { messages: [question(marker())] })
    const entry = await auditEntryOf(gateway(), tenant, answer.headers['x-request-id'])
    expect(entry).toMatchObject({ model: 'scripted-chat-large', status: 200, credits_settled: 0 })
    expect(entry.record).toMatchObject({ usage: null })
  })

  it('of a body that is none are refused in the envelope of the surface', async () => {
    const { answer } = await count('scripted-chat-plain', { messages: [] })
    expect(answer.status).toBe(400)
    expect(jsonOf(answer)).toMatchObject({ type: 'error', error: { type: 'invalid_request_error' } })
  })

  it('are what the official client reads', async () => {
    const client = new Anthropic({ apiKey: tenant.key, baseURL: gateway().baseUrl, maxRetries: 0 })
    const counted = await client.messages.countTokens({
      model: 'scripted-chat-plain',
      messages: [question('Four score and seven years ago')],
    })
    expect(counted.input_tokens).toBeGreaterThanOrEqual(7)
    expect(counted.input_tokens).toBeLessThan(7 + FRAME_TOKENS)
  })
})
