import { expect } from 'vitest'
import { openStream } from '../../harness/open-stream.ts'
import { type Answer, send } from '../../harness/send.ts'
import type { StartedGateway } from '../../harness/start-gateway.ts'
import { addKey, administrator, bearer, createTenant, type Tenant, uniqueName } from '../../harness/tenant.ts'
import { registerScript } from '../../harness/upstream.ts'
import { MODEL_ROUTES, type ModelRoute } from '../../matrices/routes.ts'

/** Secrets that calls have met, and what was answered. */
export interface Canaries {
  address: StartedGateway
  tenant: Tenant
  revoked: { id: string; key: string }
  /** Everything that callers were answered, with headers. */
  answered: string[]
}

/** The provider's credential, which may occur only in requests to the provider. */
export const CREDENTIAL = uniqueName('canary-credential')
const models = { chat_completions: 'canary-chat', messages: 'canary-messages' }

/** Makes a caller with a good and a revoked key, and models whose provider has the credential. */
export async function createCanaries(address: StartedGateway): Promise<Canaries> {
  const tenant = await createTenant(address)
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
  const revoked = await addKey(address, tenant.base, tenant.userId)
  await ask('DELETE', `${tenant.base}/keys/${revoked.id}`)
  return { address, tenant, revoked, answered: [] }
}

/** Keeps what was answered. */
export function note({ answered }: Canaries, answer: Answer): Answer {
  answered.push(answer.rawHeaders.join('\n'), answer.text)
  return answer
}

export async function call(
  canaries: Canaries,
  route: ModelRoute,
  text: string,
  more: Record<string, unknown> = {},
  headers = {},
): Promise<Answer> {
  const { address, tenant } = canaries
  const body = JSON.stringify(route.request(text, { model: models[route.surface], ...more }))
  const sent = { ...bearer(tenant.key), ...headers }
  return note(canaries, await send(address.baseUrl + route.path, { method: 'POST', headers: sent, body }))
}

/** Needles: whole secrets, halves that a page of a file could part, and how they look in other clothes. */
export function needlesOf({ address, tenant, revoked }: Canaries): Map<string, string> {
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

const echo = ({ address }: Canaries, status: number) =>
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
const echoInStream = ({ address }: Canaries, route: ModelRoute) => {
  const error = { type: 'error', error: { type: 'x', message: `bad credential ${CREDENTIAL}` } }
  const event = route.surface === 'messages' ? 'event: error\n' : ''
  return registerScript(address, [{ sse: [`${event}data: ${JSON.stringify(error)}\n\n`] }])
}

/** Takes key and credential through calls of every kind. */
export async function makeCalls(canaries: Canaries): Promise<void> {
  await Promise.all([
    ...MODEL_ROUTES.map((route) => makeWholeCalls(canaries, route)),
    ...MODEL_ROUTES.filter(({ generates }) => generates).map((route) => makeStreams(canaries, route)),
  ])
  await makeOddCalls(canaries)
}

async function makeWholeCalls(canaries: Canaries, route: ModelRoute): Promise<void> {
  const { tenant, revoked } = canaries
  expect((await call(canaries, route, 'Hello')).status).toBe(200)
  expect(
    (await call(canaries, route, 'Hello', {}, { 'x-api-key': tenant.key, 'api-key': tenant.key })).status,
  ).toBe(200)
  const refusedGateway = route.surface === 'messages' ? 500 : 401
  expect((await call(canaries, route, 'script:error-401-echo')).status).toBe(refusedGateway)
  // Token counts have built-in scripts only.
  for (const status of route.generates ? [400, 401, 500] : [])
    expect((await call(canaries, route, await echo(canaries, status))).status).toBe(
      status === 401 ? refusedGateway : status,
    )
  for (const script of ['error-500', 'error-html-502', 'not-json', 'empty-body', 'redirect', 'stall']) {
    await call(canaries, route, `script:${script}`)
  }
  await call(canaries, route, 'Hello', { model: 'no-such-model' })
  await call(canaries, route, 'Hello', { model: tenant.key })
  await call(canaries, route, 'Hello', { max_tokens: tenant.key })
  await call(canaries, route, 'Hello', {}, { authorization: `Bearer ${revoked.key}` })
  await call(canaries, route, 'Hello', {}, { authorization: `Basic ${tenant.key}` })
  await call(canaries, route, 'Hello', {}, { authorization: `Bearer ${tenant.key}x` })
  await call(canaries, route, 'Hello', {}, { 'content-encoding': tenant.key })
}

async function makeStreams(canaries: Canaries, route: ModelRoute): Promise<void> {
  for (const script of [
    'canned',
    'mid-stream-error',
    'mid-stream-cut',
    'first-event-error',
    'stall',
    'error-401-echo',
  ]) {
    await call(canaries, route, `script:${script}`, { stream: true })
  }
  await call(canaries, route, await echoInStream(canaries, route), { stream: true })
}

/** Sends the key in queries and paths, calls the other host, and leaves a call. */
async function makeOddCalls(canaries: Canaries): Promise<void> {
  const { address, tenant } = canaries
  const { baseUrl, llmUrl } = address
  const get = async (url: string, headers = {}) => note(canaries, await send(url, { headers }))
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
  note(
    canaries,
    await send(llmUrl + route.path, { method: 'POST', headers: { 'api-key': tenant.key }, body }),
  )
  const long = route.request('script:long-stream tokens=500 delay=20', { model: models.chat_completions })
  const streamed = JSON.stringify({ ...long, stream: true })
  const stream = await openStream(baseUrl + route.path, bearer(tenant.key), streamed)
  await stream.until((text) => text.includes('word'))
  stream.leave()
}
