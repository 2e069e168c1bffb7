import { beforeAll, describe, expect, it } from 'vitest'
import { gateway } from '../harness/gateway.ts'
import { CHAT_MODEL, MESSAGES_MODEL } from '../harness/sdk-clients.ts'
import { type Answer, jsonOf, send } from '../harness/send.ts'
import { bearer, createTenant, type Tenant } from '../harness/tenant.ts'
import { marker, seenRequests } from '../harness/upstream.ts'
import { postResponse } from './support/response-streams.ts'
import {
  CHAT_ON_MESSAGES,
  COMPLETION_PAIRS,
  MESSAGES_ON_CHAT,
  type TranslatedPair,
} from './support/translated-pairs.ts'

// Members of a request that the protocol of the upstream does not have.

let tenant: Tenant

beforeAll(async () => {
  tenant = await createTenant(gateway())
})

function call(pair: TranslatedPair, more: object): Promise<Answer> {
  const body = JSON.stringify(pair.request('Hello', more as Record<string, unknown>))
  return send(gateway().baseUrl + pair.route.path, { method: 'POST', headers: bearer(tenant.key), body })
}

const [COMPLETION_ON_MESSAGES] = COMPLETION_PAIRS as [TranslatedPair]

describe('a translated call', () => {
  const dropped: Array<[pair: TranslatedPair, members: object, names: string]> = [
    [CHAT_ON_MESSAGES, { frequency_penalty: 1, seed: 7, top_p: 0.5 }, 'frequency_penalty, seed'],
    [CHAT_ON_MESSAGES, { temperature: 1, top_p: 0.5, unknown_member: [1] }, 'top_p, unknown_member'],
    [CHAT_ON_MESSAGES, { user: 'ada@example.com', verbosity: 'low' }, 'user, verbosity'],
    [MESSAGES_ON_CHAT, { top_k: 5, service_tier: 'auto' }, 'top_k, service_tier'],
    [
      COMPLETION_ON_MESSAGES,
      { presence_penalty: 1, unknown_member: true },
      'unknown_member, presence_penalty',
    ],
  ]
  it.each(dropped)('lists the members that it drops: %s %j', async (pair, members, names) => {
    for (const stream of [false, true]) {
      const answer = await call(pair, { ...members, stream })
      expect(answer.status, answer.text).toBe(200)
      expect(answer.headers['x-headgate-dropped']).toBe(names)
    }
  })

  it.each([CHAT_ON_MESSAGES, MESSAGES_ON_CHAT])(
    'lists nothing where every member has its place',
    async (pair) => {
      const members = {
        temperature: 0.5,
        metadata: { a: 'b' },
        litellm_metadata: {},
        frequency_penalty: null,
      }
      const answer = await call(pair, members)
      expect(answer.status, answer.text).toBe(200)
      expect(answer.headers['x-headgate-dropped']).toBeUndefined()
    },
  )

  it('lists no name that a header cannot hold', async () => {
    const answer = await call(CHAT_ON_MESSAGES, { 'a\r\nset-cookie: b': 1, schlüssel: 1, plain_name: 1 })
    expect(answer.status, answer.text).toBe(200)
    expect(answer.headers['x-headgate-dropped']).toBe('plain_name')
  })

  const refused: Array<[pair: TranslatedPair, members: object, named: string]> = [
    [CHAT_ON_MESSAGES, { n: 2 }, 'n'],
    [CHAT_ON_MESSAGES, { logprobs: true }, 'logprobs'],
    [CHAT_ON_MESSAGES, { tools: [{ type: 'odd' }] }, 'tools.0'],
    [MESSAGES_ON_CHAT, { container: 'container_1' }, 'container'],
    [MESSAGES_ON_CHAT, { tools: [{ type: 'odd_20260101', name: 'odd' }] }, 'tools.0'],
  ]
  it.each(refused)('refuses a member whose loss changes the meaning: %s %j', async (pair, members, named) => {
    const answer = await call(pair, members)
    expect(answer.status).toBe(400)
    const { error } = jsonOf(answer) as { error: { message: string } }
    expect(error.message.startsWith(`${named}:`), error.message).toBe(true)
  })
})

describe('a member of Responses that the gateway does not know', () => {
  const respond = (model: string, input: string, more: object) =>
    send(`${gateway().baseUrl}/v1/responses`, {
      method: 'POST',
      headers: bearer(tenant.key),
      body: JSON.stringify({ model, input, store: false, ...more }),
    })

  it('reaches chat completions under its name, and no upstream of messages', async () => {
    for (const [model, isSent] of [
      ['scripted-chat', true],
      ['scripted-messages', false],
    ] as const) {
      const text = marker()
      const answer = await respond(model, text, { repetition_penalty: 1.1, client_metadata: { a: 'b' } })
      expect(answer.status, answer.text).toBe(200)
      const [seen] = await seenRequests(gateway(), text)
      const body = JSON.parse(seen?.body ?? '') as Record<string, unknown>
      expect(body.repetition_penalty).toBe(isSent ? 1.1 : undefined)
      expect(body.client_metadata).toBeUndefined()
    }
  })

  it.each([{ models: ['another/model'] }, { container: 'container_1' }])(
    'is refused where it selects: %j',
    async (member) => {
      const answer = await respond('scripted-chat', 'Hello', member)
      expect(answer.status).toBe(400)
      expect(answer.text).toContain(`${Object.keys(member)[0]}: `)
    },
  )

  it('is refused as a type of tool', async () => {
    const answer = await respond('scripted-chat', 'Hello', { tools: [{ type: 'shell' }, { type: 'odd' }] })
    expect(answer.status).toBe(400)
    expect(jsonOf(answer)).toMatchObject({
      error: { type: 'invalid_request_error', message: 'tools[1].type: no tool has the type "odd".' },
    })
  })
})

describe('a response', () => {
  const ways = [{}, { stream: true }, { background: true }, { background: true, stream: true }]
  const rows: Array<[model: string, members: object, names: string | undefined]> = [
    [MESSAGES_MODEL, { frequency_penalty: 1, unknown_member: [1] }, 'frequency_penalty, unknown_member'],
    [MESSAGES_MODEL, { service_tier: 'auto', client_metadata: { a: 'b' } }, 'service_tier, client_metadata'],
    [CHAT_MODEL, { top_logprobs: 2, unknown_member: 1 }, 'top_logprobs'],
    [CHAT_MODEL, { temperature: 0.5, metadata: { a: 'b' }, truncation: 'auto' }, undefined],
  ]
  it.concurrent.each(rows)('of %s lists the members that are dropped: %j', async (model, members, names) => {
    for (const way of ways) {
      const answer = await postResponse(tenant.key, { model, ...members, ...way })
      expect(answer.status, answer.text).toBe(200)
      expect(answer.headers['x-headgate-dropped']).toBe(names)
    }
  })
})
