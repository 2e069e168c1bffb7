import { createHash } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest'
import { openStream } from '../harness/open-stream.ts'
import { flush, settledCredits } from '../harness/records.ts'
import { type Answer, send } from '../harness/send.ts'
import { type StartedGateway, startGateway } from '../harness/start-gateway.ts'
import { addKey, administrator, bearer, createTenant, type Tenant, uniqueName } from '../harness/tenant.ts'
import { registerScript } from '../harness/upstream.ts'
import { MODEL_ROUTES, type ModelRoute } from '../matrices/routes.ts'
import { files, haystacks } from './support/haystacks.ts'

let address: StartedGateway
let tenant: Tenant
let revoked: { id: string; key: string }
/** Everything that was kept or said, after all calls and before services fail. */
let places: Map<string, Buffer>
/** What providers are paid with: it occurs nowhere but in the requests to them. */
const CREDENTIAL = uniqueName('canary-credential')
const models = { chat_completions: 'canary-chat', messages: 'canary-messages' }
/** Everything that callers were answered, with headers. */
const answered: string[] = []

beforeAll(async () => {
  const times = { UPSTREAM_EVENT_TIMEOUT_MS: '500', UPSTREAM_ANSWER_TIMEOUT_MS: '500' }
  address = await startGateway({
    bundleDirectory: inject('bundleDirectory'),
    isBrief: true,
    variables: times,
  })
  tenant = await createTenant(address)
  const { ask } = administrator(address)
  for (const [surface, id] of Object.entries(models)) {
    const kind = surface === 'messages' ? 'anthropic' : 'openai-compatible'
    const base_url = address.standIns.modelUpstream + (surface === 'messages' ? '' : '/v1')
    const provider = await ask('POST', '/providers', { name: id, kind, base_url, credential: CREDENTIAL })
    await ask('PUT', `/models/${id}`, {
      owned_by: 'test',
      context_window: 100_000,
      max_output_tokens: 1_000,
      prices: { input: 1_000_000, output: 1_000_000 },
      routes: [{ provider_id: provider.id, upstream_model: id }],
    })
  }
  revoked = await addKey(address, tenant.base, tenant.userId)
  await ask('DELETE', `${tenant.base}/keys/${revoked.id}`)
  await makeCalls()
  await makeOddCalls()
  await settledCredits(address, tenant)
  await flush(address, tenant)
  places = await haystacks(address)
}, 60_000)
afterAll(() => address?.stop())

function note(answer: Answer): Answer {
  answered.push(answer.rawHeaders.join('\n'), answer.text)
  return answer
}

async function call(route: ModelRoute, text: string, more: Record<string, unknown> = {}, headers = {}) {
  const body = JSON.stringify(route.request(text, { model: models[route.surface], ...more }))
  const sent = { ...bearer(tenant.key), ...headers }
  return note(await send(address.baseUrl + route.path, { method: 'POST', headers: sent, body }))
}

/** Needles: whole secrets, halves that a page of a file could part, and how they look in other clothes. */
function needles(): Map<string, string> {
  const found = new Map<string, string>()
  const add = (name: string, secret: string) => {
    const half = Math.floor(secret.length / 2)
    found.set(name, secret)
    found.set(`${name}, first half`, secret.slice(0, half))
    found.set(`${name}, second half`, secret.slice(half))
    found.set(`${name} in base64`, Buffer.from(secret).toString('base64').replace(/=+$/, ''))
    found.set(`${name} in hex`, Buffer.from(secret).toString('hex'))
  }
  // The id in the middle of a key is public.
  add('the key', tenant.key.split('_')[2] ?? '')
  add('the revoked key', revoked.key.split('_')[2] ?? '')
  add('the credential', CREDENTIAL)
  const { ADMIN_TOKEN, UPSTASH_REDIS_REST_TOKEN, KEY_PEPPERS, VAULT_KEYS } = address.variables
  for (const [name, secret = ''] of Object.entries({ ADMIN_TOKEN, UPSTASH_REDIS_REST_TOKEN })) {
    add(name, secret)
  }
  for (const [name, ring = ''] of Object.entries({ KEY_PEPPERS, VAULT_KEYS })) {
    found.set(name, ring.split(':')[1] ?? '')
  }
  return found
}

function expectNowhere(places: Map<string, Buffer>): void {
  const secrets = [...needles()]
  for (const [name, needle] of secrets) expect(needle.length, name).toBeGreaterThan(12)
  const found = [...places].flatMap(([place, contents]) =>
    secrets.filter(([, needle]) => contents.includes(needle)).map(([name]) => `${name} in ${place}`),
  )
  expect(found).toEqual([])
}

const echo = (status: number) =>
  registerScript(address, [
    {
      status,
      headers: {
        'content-type': `application/json; credential=${CREDENTIAL}`,
        'openai-version': CREDENTIAL,
        'request-id': CREDENTIAL,
        'retry-after': CREDENTIAL,
      },
      body: JSON.stringify({ error: { message: `${CREDENTIAL} and again ${CREDENTIAL}`, type: CREDENTIAL } }),
    },
  ])

/** A stream whose first event is an error that quotes the credential. Later events: security-upstreams.test. */
const echoInStream = (route: ModelRoute) => {
  const error = { type: 'error', error: { type: 'x', message: `bad credential ${CREDENTIAL}` } }
  const event = route.surface === 'messages' ? 'event: error\n' : ''
  return registerScript(address, [{ sse: [`${event}data: ${JSON.stringify(error)}\n\n`] }])
}

/** Takes key and credential through calls of every kind. */
async function makeCalls(): Promise<void> {
  await Promise.all([
    ...MODEL_ROUTES.map(makeWholeCalls),
    ...MODEL_ROUTES.filter(({ generates }) => generates).map(makeStreams),
  ])
}

async function makeWholeCalls(route: ModelRoute): Promise<void> {
  expect((await call(route, 'Hello')).status).toBe(200)
  expect((await call(route, 'Hello', {}, { 'x-api-key': tenant.key, 'api-key': tenant.key })).status).toBe(
    200,
  )
  const refusedGateway = route.surface === 'messages' ? 500 : 401
  expect((await call(route, 'script:error-401-echo')).status).toBe(refusedGateway)
  // Of the scripts only the built-in ones apply to token counts.
  for (const status of route.generates ? [400, 401, 500] : [])
    expect((await call(route, await echo(status))).status).toBe(status === 401 ? refusedGateway : status)
  for (const script of ['error-500', 'error-html-502', 'not-json', 'empty-body', 'redirect', 'stall']) {
    await call(route, `script:${script}`)
  }
  await call(route, 'Hello', { model: 'no-such-model' })
  await call(route, 'Hello', { model: tenant.key })
  await call(route, 'Hello', { max_tokens: tenant.key })
  await call(route, 'Hello', {}, { authorization: `Bearer ${revoked.key}` })
  await call(route, 'Hello', {}, { authorization: `Basic ${tenant.key}` })
  await call(route, 'Hello', {}, { authorization: `Bearer ${tenant.key}x` })
  await call(route, 'Hello', {}, { 'content-encoding': tenant.key })
}

async function makeStreams(route: ModelRoute): Promise<void> {
  for (const script of [
    'canned',
    'mid-stream-error',
    'mid-stream-cut',
    'first-event-error',
    'stall',
    'error-401-echo',
  ]) {
    await call(route, `script:${script}`, { stream: true })
  }
  await call(route, await echoInStream(route), { stream: true })
}

/** And through queries, paths, the other host and a call whose caller leaves. */
async function makeOddCalls(): Promise<void> {
  const { baseUrl, llmUrl } = address
  const get = async (url: string, headers = {}) => note(await send(url, { headers }))
  await get(`${baseUrl}/v1/models?api_key=${tenant.key}`)
  await get(`${baseUrl}/v1/models`, { cookie: `key=${tenant.key}` })
  await get(`${baseUrl}/v1/models`, bearer(tenant.key))
  await get(`${baseUrl}/v1/${tenant.key}`, bearer(tenant.key))
  await get(`${baseUrl}/api/organizations`, bearer(tenant.key))
  await get(`${baseUrl}/api/organizations/${tenant.key}`, bearer(address.adminToken))
  await get(`${baseUrl}/api/models/${CREDENTIAL.toUpperCase()}`, bearer(address.adminToken))
  await get(`${baseUrl}/api/providers`, bearer(address.adminToken))
  await get(`${baseUrl}/api${tenant.base}/keys`, bearer(address.adminToken))
  const [route] = MODEL_ROUTES as [ModelRoute]
  const body = JSON.stringify(route.request('Hello', { model: models.chat_completions }))
  note(await send(llmUrl + route.path, { method: 'POST', headers: { 'api-key': tenant.key }, body }))
  const long = route.request('script:long-stream tokens=500 delay=20', { model: models.chat_completions })
  const streamed = JSON.stringify({ ...long, stream: true })
  const stream = await openStream(baseUrl + route.path, bearer(tenant.key), streamed)
  await stream.until((text) => text.includes('word'))
  stream.leave()
}

describe('the canaries', () => {
  it('are found nowhere, although everything else is', async () => {
    // The search can find: these stand where the canaries must not.
    expect(places.get('Postgres')?.includes(tenant.keyId)).toBe(true)
    // Left by the key that was presented as the token of the management API.
    expect(places.get('Redis')?.includes('limit:wrong-tokens:')).toBe(true)
    expect(places.get('logs: workerd.log')?.includes('upstream_failed')).toBe(true)
    const digest = createHash('sha256').update(CREDENTIAL).digest('hex')
    expect(places.get('the recording of the upstream')?.includes(digest)).toBe(true)
    const objects = [...places].filter(([name]) => name.startsWith('Durable Objects'))
    expect(objects.some(([, contents]) => contents.includes(tenant.keyId))).toBe(true)
    expectNowhere(places)
    expect(answered.length).toBeGreaterThan(100)
    expectNowhere(new Map([['answers', Buffer.from(answered.join('\n'))]]))
  })

  it('are not told when services fail either', async () => {
    const [chat, , messages] = MODEL_ROUTES as [ModelRoute, ModelRoute, ModelRoute]
    for (const name of ['modelUpstream', 'redis', 'postgres'] as const) {
      await address.killStandIn(name)
      for (const route of [chat, messages]) {
        await call(route, 'Hello')
        await call(route, 'Hello', {}, { authorization: `Bearer ${revoked.key}` })
      }
      const { call: manage } = administrator(address)
      note(await manage('POST', `${tenant.base}/keys`, { user_id: tenant.userId, label: 'late' }))
      note(await manage('PUT', `/providers/${tenant.userId}`, { credential: CREDENTIAL }))
    }
    const log = files(address).get('logs: workerd.log')
    expect(log?.includes('request_failed')).toBe(true)
    expectNowhere(files(address))
    expectNowhere(new Map([['answers', Buffer.from(answered.join('\n'))]]))
  })
})
