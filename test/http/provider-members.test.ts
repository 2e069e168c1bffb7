import { beforeAll, describe, expect, it } from 'vitest'
import { gateway } from '../harness/gateway.ts'
import { answered, inTurn } from '../harness/routed-model.ts'
import { type Answer, jsonOf, send } from '../harness/send.ts'
import { administrator, bearer, createTenant, type Tenant, uniqueName } from '../harness/tenant.ts'
import { seenRequests } from '../harness/upstream.ts'

// Members that a provider would obey with the credential of the gateway.

let tenant: Tenant
let stranger: Tenant
/** Models of one provider, whose entry allows nothing. */
let plain: Record<Dialect, string>

beforeAll(async () => {
  ;[tenant, stranger] = await Promise.all([createTenant(gateway()), createTenant(gateway())])
  plain = { chat: await modelOf('chat', [{}]), messages: await modelOf('messages', [{}]) }
})

type Dialect = 'chat' | 'messages'
const PATHS = { chat: '/v1/chat/completions', messages: '/v1/messages' }

/** A model with a provider of the caller's protocol for each given entry. */
async function modelOf(dialect: Dialect, entries: object[]): Promise<string> {
  const { ask } = administrator(gateway())
  const id = uniqueName('guarded')
  const base = gateway().standIns.modelUpstream
  const routes: object[] = []
  for (const entry of entries) {
    const provider = await ask('POST', '/providers', {
      name: uniqueName('entry'),
      kind: dialect === 'chat' ? 'openai-compatible' : 'anthropic',
      base_url: dialect === 'chat' ? `${base}/v1` : base,
      credential: 'some credential of the tests',
      // Another rule refuses members without a price.
      allow_unpriced: true,
      ...entry,
    })
    routes.push({ provider_id: provider.id, upstream_model: `${id}-at-${routes.length}` })
  }
  const prices = { input: 1, output: 1 }
  const limits = { context_window: 100_000, max_output_tokens: 1_000 }
  await ask('PUT', `/models/${id}`, { owned_by: 'test', ...limits, prices, routes })
  return id
}

async function call(dialect: Dialect, model: string, more: object, owner = tenant) {
  const script = await inTurn(gateway(), answered(dialect, 'an answer', false))
  const messages = [{ role: 'user', content: script }]
  const body = JSON.stringify({ model, max_tokens: 100, messages, ...more })
  const url = gateway().baseUrl + PATHS[dialect]
  const answer = await send(url, { method: 'POST', headers: bearer(owner.key), body })
  return { answer, seen: await seenRequests(gateway(), script) }
}

function expectRefused({ answer, seen }: { answer: Answer; seen: unknown[] }, named: string): void {
  expect(answer.status, answer.text).toBe(400)
  const { error } = jsonOf(answer) as { error: { type: string; message: string } }
  expect(error.type).toBe('invalid_request_error')
  expect(error.message.startsWith(`${named}:`), error.message).toBe(true)
  expect(seen).toEqual([])
}

describe('a member that selects another model or provider', () => {
  const others: Array<[dialect: Dialect, named: string, members: object]> = [
    ['chat', 'models', { models: ['another/model'] }],
    ['chat', 'route', { route: 'fallback' }],
    ['chat', 'provider', { provider: { order: ['another'] } }],
    ['chat', 'fallbacks', { fallbacks: [{ model: 'another' }] }],
    ['chat', 'plugins', { plugins: [{ id: 'web' }] }],
    ['chat', 'transforms', { transforms: ['middle-out'] }],
    ['chat', 'api_base', { api_base: 'https://elsewhere.example' }],
    ['chat', 'Models', { Models: ['another/model'] }],
    ['messages', 'fallbacks', { fallbacks: [{ model: 'another' }] }],
    ['messages', 'workspace_id', { workspace_id: 'wrkspc_1' }],
    [
      'messages',
      'tools.0.model',
      { tools: [{ type: 'advisor_20260301', name: 'advisor', model: 'another' }] },
    ],
  ]
  it.each(others)('is refused on %s: %s', async (dialect, named, members) => {
    expectRefused(await call(dialect, plain[dialect], members), named)
  })

  it('passes where its value is null, and to a provider whose entry allows it', async () => {
    const closed = await call('chat', plain.chat, { models: null })
    expect(closed.answer.status).toBe(200)
    const model = await modelOf('chat', [{}, { allowed_members: ['models'] }])
    const { answer, seen } = await call('chat', model, { models: ['another/model'] })
    expect(answer.status).toBe(200)
    expect(seen.map(({ body }) => JSON.parse(body))).toMatchObject([
      { model: `${model}-at-1`, models: ['another/model'] },
    ])
  })
})

describe('state at the provider', () => {
  const file = (content: object) => ({ messages: [{ role: 'user', content: [content] }] })
  const states: Array<[dialect: Dialect, named: string, members: object]> = [
    ['messages', 'container', { container: 'container_1' }],
    ['messages', 'container', { container: { id: 'container_1' } }],
    [
      'messages',
      'messages.0.content.0.source.file_id',
      file({ type: 'document', source: { type: 'file', file_id: 'file_1' } }),
    ],
    ['messages', 'messages.0.content.0.file_id', file({ type: 'container_upload', file_id: 'file_1' })],
    ['chat', 'messages.0.content.0.file.file_id', file({ type: 'file', file: { file_id: 'file_1' } })],
    [
      'chat',
      'messages.0.audio.id',
      {
        messages: [
          { role: 'assistant', audio: { id: 'audio_1' } },
          { role: 'user', content: 'x' },
        ],
      },
    ],
  ]
  it.each(states)('is refused on %s: %s', async (dialect, named, members) => {
    expectRefused(await call(dialect, plain[dialect], members), named)
  })

  it('passes to the provider entry of the organization, which no other organization uses', async () => {
    const own = { organization_id: tenant.organizationId }
    const model = await modelOf('messages', [{}, own])
    const asked = { container: 'container_1' }
    const mine = await call('messages', model, asked)
    expect(mine.answer.status, mine.answer.text).toBe(200)
    expect(mine.seen.map(({ body }) => JSON.parse(body).model)).toEqual([`${model}-at-1`])
    expectRefused(await call('messages', model, asked, stranger), 'container')

    const onlyOwn = await modelOf('messages', [own])
    expect((await call('messages', onlyOwn, {})).answer.status).toBe(200)
    const strange = await call('messages', onlyOwn, {}, stranger)
    expect([strange.answer.status, strange.seen]).toEqual([400, []])
    expect(strange.answer.text).toContain('not served')
  })

  it('passes by the member that an entry allows', async () => {
    const model = await modelOf('messages', [{ allowed_members: ['file_id'] }])
    const document = file({ type: 'document', source: { type: 'file', file_id: 'file_1' } })
    expect((await call('messages', model, document)).answer.status).toBe(200)
    expectRefused(await call('messages', model, { container: 'container_1' }), 'container')
  })

  it('is not taken for the caller’s own data of the same name', async () => {
    const tools = [
      { name: 'open', input_schema: { type: 'object', properties: { file_id: { type: 'string' } } } },
    ]
    const messages = [
      { role: 'user', content: 'Open it.' },
      { role: 'assistant', content: [{ type: 'tool_use', id: 't', name: 'open', input: { file_id: 'x' } }] },
      { role: 'user', content: [{ type: 'tool_result', tool_use_id: 't', content: 'done' }] },
    ]
    const model = await modelOf('messages', [{}])
    expect((await call('messages', model, { tools, messages })).answer.status).toBe(200)
  })
})
