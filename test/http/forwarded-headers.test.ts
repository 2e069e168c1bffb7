import { createHash } from 'node:crypto'
import { beforeAll, describe, expect, it } from 'vitest'
import { gateway } from '../harness/gateway.ts'
import { send } from '../harness/send.ts'
import { administrator, createTenant, type Tenant, uniqueName } from '../harness/tenant.ts'
import { marker, seenRequest } from '../harness/upstream.ts'
import { MODEL_ROUTES, type ModelRoute } from '../matrices/routes.ts'

/** The upstream records a digest of headers that carry credentials. */
const digest = (text: string) => createHash('sha256').update(text).digest('hex')

const CREDENTIAL = uniqueName('provider credential')

let tenant: Tenant
const models = { chat_completions: uniqueName('headers'), messages: uniqueName('headers') }

beforeAll(async () => {
  const address = gateway()
  tenant = await createTenant(address)
  const { ask } = administrator(address)
  for (const [surface, id] of Object.entries(models)) {
    const kind = surface === 'messages' ? 'anthropic' : 'openai-compatible'
    const base_url = address.standIns.modelUpstream + (surface === 'messages' ? '' : '/v1')
    const name = uniqueName('headers')
    const provider = await ask('POST', '/providers', { name, kind, base_url, credential: CREDENTIAL })
    await ask('PUT', `/models/${id}`, {
      owned_by: 'test',
      context_window: 1_000,
      max_output_tokens: 1_000,
      prices: { input: 0, output: 0 },
      capabilities: ['completions'],
      routes: [{ provider_id: provider.id, upstream_model: id }],
    })
  }
})

/** Headers that arrive at the upstream when a call comes with these. */
async function arriving(route: ModelRoute, headers: Record<string, string | string[]>, more = {}) {
  const text = marker()
  const body = JSON.stringify(route.request(text, { model: models[route.surface], ...more }))
  const url = gateway().baseUrl + route.path
  const own = { authorization: `Bearer ${tenant.key}`, ...headers }
  const answer = await send(url, { method: 'POST', headers: own, body })
  expect(answer.status, answer.text).toBe(200)
  return { ...(await seenRequest(gateway(), text)), answer, body }
}

/** Headers that an upstream gets for a call without headers. */
function plainHeaders(route: ModelRoute, body: string, stream: boolean): Record<string, string> {
  return {
    host: new URL(gateway().standIns.modelUpstream).host,
    'content-type': 'application/json',
    'content-length': String(Buffer.byteLength(body)),
    accept: stream ? 'text/event-stream' : 'application/json',
    'user-agent': 'headgate',
    ...(route.surface === 'messages'
      ? { 'x-api-key': digest(CREDENTIAL), 'anthropic-version': '2023-06-01' }
      : { authorization: `Bearer ${digest(CREDENTIAL)}` }),
  }
}

/** Everything that a caller may send and that is nobody's business upstream. */
const PRIVATE = {
  'x-api-key': 'hg_another_key',
  'api-key': 'hg_another_key',
  'proxy-authorization': 'Bearer proxy',
  cookie: 'session=secret',
  'cf-connecting-ip': '203.0.113.7',
  'cf-ray': 'x',
  'cf-ipcountry': 'AT',
  'cf-access-jwt-assertion': 'jwt',
  'x-forwarded-for': '203.0.113.7',
  'cloudflare-workers-version-overrides': 'headgate="another version"',
  'x-real-ip': '203.0.113.7',
  forwarded: 'for=203.0.113.7',
  via: '1.1 proxy',
  origin: 'https://app.example',
  referer: 'https://app.example/page',
  'user-agent': 'client/1.0',
  accept: 'text/html',
  'accept-language': 'de',
  'x-stainless-os': 'Linux',
  'x-app': 'cli',
  'x-request-id': 'mine',
  'openai-organization': 'org-mine',
  'openai-project': 'proj-mine',
  'x-goog-api-key': 'mine',
  'x-amz-security-token': 'mine',
  traceparent: '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01',
  'content-type': 'application/json; charset=utf-8',
  'idempotency-key': 'mine',
  'x-http-method-override': 'DELETE',
  te: 'trailers',
}

describe.each(MODEL_ROUTES.map((route) => [route.name, route] as const))('%s', (_, route) => {
  it("sends the provider's credential and nothing of the caller", async () => {
    for (const headers of [{}, PRIVATE]) {
      const seen = await arriving(route, headers)
      expect(withoutConnection(seen.headers)).toEqual(plainHeaders(route, seen.body, false))
      expect(seen.path).toBe(route.path)
      expect(seen.method).toBe('POST')
    }
  })

  it.runIf(route.generates)('asks for events where the caller asked for a stream', async () => {
    const usage = route.surface === 'messages' ? {} : { stream_options: { include_usage: true } }
    const more = { stream: true, ...usage }
    const seen = await arriving(route, { accept: 'application/json' }, more)
    expect(withoutConnection(seen.headers)).toEqual(plainHeaders(route, seen.body, true))
  })

  it('keeps the query of the caller to itself', async () => {
    const text = marker()
    const url = `${gateway().baseUrl}${route.path}?beta=true&api_key=${tenant.key}`
    const headers = { 'x-api-key': tenant.key, 'content-type': 'application/json' }
    const body = JSON.stringify(route.request(text, { model: models[route.surface] }))
    expect((await send(url, { method: 'POST', headers, body })).status).toBe(200)
    expect((await seenRequest(gateway(), text)).path).toBe(route.path)
  })
})

const withoutConnection = ({ connection: _, 'accept-encoding': __, ...headers }: Record<string, string>) =>
  headers

describe('headers of clients that an upstream understands', () => {
  const messages = MODEL_ROUTES.filter(({ surface }) => surface === 'messages')
  const beta = 'prompt-caching-2024-07-31,context-management-2025-06-27'

  /** The vendor's own names, and the neutral ones of the interface. */
  const names = [
    ['anthropic-version', 'anthropic-beta', 'x-claude-code-session-id'],
    ['provider-version', 'provider-beta', 'x-codeclient-session-id'],
  ] as const

  it.each(messages.flatMap((route) => names.map((set) => [route.name, set, route] as const)))(
    '%s forwards %s under the names of the upstream',
    async (_, [version, betas, session], route) => {
      const sent = { [version]: '2026-10-21', [betas]: beta, [session]: 'session 1' }
      const seen = await arriving(route, { ...PRIVATE, ...sent })
      expect(withoutConnection(seen.headers)).toEqual({
        ...plainHeaders(route, seen.body, false),
        'anthropic-version': '2026-10-21',
        'anthropic-beta': beta,
        'x-claude-code-session-id': 'session 1',
      })
    },
  )

  it("forwards a repeated beta header in order, and the vendor's own name before the neutral one", async () => {
    const [route] = messages as [ModelRoute]
    const repeated = await arriving(route, { 'anthropic-beta': ['first-1', 'second-2'] })
    expect(repeated.headers['anthropic-beta']?.replace(/\s/g, '')).toBe('first-1,second-2')
    const both = await arriving(route, {
      'anthropic-version': '2026-10-21',
      'provider-version': '2023-01-01',
    })
    expect(both.headers['anthropic-version']).toBe('2026-10-21')
  })

  it('sends none of them to a chat completions upstream', async () => {
    const [route] = MODEL_ROUTES as [ModelRoute]
    const sent = Object.fromEntries(names.flat().map((name) => [name, 'x']))
    const seen = await arriving(route, sent)
    expect(withoutConnection(seen.headers)).toEqual(plainHeaders(route, seen.body, false))
  })
})
