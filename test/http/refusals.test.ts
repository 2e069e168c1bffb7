import { beforeAll, describe, expect, it } from 'vitest'
import { gateway } from '../harness/gateway.ts'
import { type Answer, jsonOf, send } from '../harness/send.ts'
import {
  addKey,
  addMember,
  administrator,
  bearer,
  createTenant,
  type Tenant,
  uniqueName,
} from '../harness/tenant.ts'
import { marker, seenRequests } from '../harness/upstream.ts'
import { type ExpectedRefusal, refusalBody } from '../matrices/envelopes.ts'
import {
  COMPACT_ROUTE,
  MODEL_ROUTES,
  type ModelRoute,
  RESPONSES_ROUTE,
  type RequestRoute,
} from '../matrices/routes.ts'

let tenant: Tenant

beforeAll(async () => {
  tenant = await createTenant(gateway(), { models: ['scripted-chat', 'scripted-messages'] })
})

const hostUrl = (route: RequestRoute, host: string) =>
  (host === 'llm' ? gateway().llmUrl : gateway().baseUrl) + route.path

function call(
  route: RequestRoute,
  key: string,
  more: Record<string, unknown> = {},
  text = 'Hello',
  host = 'base',
) {
  const body = JSON.stringify(route.request(text, more))
  return send(hostUrl(route, host), { method: 'POST', headers: bearer(key), body })
}

function expectRefusal(
  answer: Answer,
  route: { surface: RequestRoute['surface'] | 'models' },
  refusal: ExpectedRefusal,
) {
  expect(jsonOf(answer)).toEqual(refusalBody(route.surface, refusal))
  expect(answer.status).toBe(refusal.status)
  expect(answer.headers['content-type']).toMatch(/^application\/json/)
  expect(answer.headers['x-request-id']).toBeDefined()
}

/** Its example is too short for a call of a model. */
const COMPACT = { ...COMPACT_ROUTE, generates: false, largeModel: RESPONSES_ROUTE.largeModel }

const routes = [...MODEL_ROUTES, { ...RESPONSES_ROUTE, generates: true }, COMPACT].flatMap((route) =>
  route.hosts.map((host) => [`${route.name} on the ${host} host`, route, host] as const),
)

describe.each(routes)('%s', (_, route, host) => {
  it('tells an unknown model', async () => {
    for (const model of ['no-such-model', 'scripted-chat ', 'SCRIPTED-CHAT', '*', '__proto__', 'agents/x']) {
      const refusal: ExpectedRefusal = {
        status: route.surface === 'messages' ? 404 : 400,
        code: 'model_not_found',
        message: /does not exist.*GET \/v1\/models/,
      }
      expectRefusal(await call(route, tenant.key, { model }, 'Hello', host), route, refusal)
    }
  })

  it('refuses a model that is not granted, and sends nothing upstream', async () => {
    const text = marker()
    const answer = await call(route, tenant.key, { model: route.largeModel }, text, host)
    expectRefusal(answer, route, { status: 403, code: 'model_access_denied', message: /not granted/ })
    expect(await seenRequests(gateway(), text)).toEqual([])
    expect((await call(route, tenant.key, {}, text, host)).status).toBe(200)
  })

  it('refuses a key without the scope of models', async () => {
    const key = await addKey(gateway(), tenant.base, tenant.userId, { scopes: ['mcp', 'agents'] })
    const answer = await call(route, key.key, {}, 'Hello', host)
    expectRefusal(answer, route, { status: 403, code: 'model_access_denied', message: /scope/ })
  })

  it('limits calls a minute', async () => {
    const user = await addMember(gateway(), tenant.base, { rate_limit_per_minute: 1 })
    const { key } = await addKey(gateway(), tenant.base, user)
    const answer = await untilLimited(() => call(route, key, {}, 'Hello', host))
    expectRefusal(answer, route, { status: 429, message: /rate limit/ })
    expectWait(answer)
    expect(answer.headers['x-headgate-limit']).toBe('user')
    // A limit passes by itself: official SDKs may repeat the call.
    expect(answer.headers['x-should-retry']).toBeUndefined()
    // It does not affect other users of the organization.
    expect((await call(route, tenant.key, {}, 'Hello', host)).status).toBe(200)
  })

  it.runIf(route.generates)('refuses a call that the balance does not cover', async () => {
    const poor = await createTenant(gateway(), { credits: 0 })
    const text = marker()
    const answer = await call(route, poor.key, {}, text, host)
    expectRefusal(answer, route, { status: 429, message: /^Your organization does not have enough credits/ })
    expectWait(answer)
    expect(answer.text).toContain('This is not a rate limit')
    expect(answer.headers['x-headgate-limit']).toBe('credits')
    expect(answer.headers['x-should-retry']).toBe('false')
    expect(await seenRequests(gateway(), text)).toEqual([])
    await administrator(gateway()).ask('POST', `${poor.base}/credits`, { amount: 10_000_000, reason: 'test' })
    expect((await call(route, poor.key, {}, text, host)).status).toBe(200)
  })
})

/** A window may end between two calls, which lets one more pass. @returns the first refusal by the limit. */
async function untilLimited(make: () => Promise<Answer>): Promise<Answer> {
  for (let tries = 0; tries < 4; tries += 1) {
    const answer = await make()
    if (answer.status !== 200) return answer
  }
  throw new Error('four calls passed a limit of one a minute')
}

function expectWait(answer: Answer): void {
  const seconds = Number(answer.headers['retry-after'])
  expect(Number.isInteger(seconds)).toBe(true)
  expect(seconds).toBeGreaterThanOrEqual(1)
  expect(seconds).toBeLessThanOrEqual(120)
}

describe('what costs nothing', () => {
  it('counts tokens without credits', async () => {
    const poor = await createTenant(gateway(), { credits: 0 })
    const route = MODEL_ROUTES[3] as ModelRoute
    expect(jsonOf(await call(route, poor.key))).toEqual({ input_tokens: expect.any(Number) })
  })
})

describe('the models list', () => {
  it('is limited and kept to its scope like every other call', async () => {
    const user = await addMember(gateway(), tenant.base, { rate_limit_per_minute: 1 })
    const { key } = await addKey(gateway(), tenant.base, user)
    const list = (sent: string) => send(`${gateway().baseUrl}/v1/models`, { headers: bearer(sent) })
    const limited = await untilLimited(() => list(key))
    expectRefusal(limited, { surface: 'models' }, { status: 429, message: /rate limit/ })
    expectWait(limited)
    const scoped = await addKey(gateway(), tenant.base, tenant.userId, { scopes: ['mcp'] })
    const refusal: ExpectedRefusal = { status: 403, code: 'model_access_denied', message: /scope/ }
    expectRefusal(await list(scoped.key), { surface: 'models' }, refusal)
  })

  it('is limited for the whole organization, too', async () => {
    const limited = await createTenant(gateway(), { organization: { rate_limit_per_minute: 1 } })
    const colleague = await addKey(gateway(), limited.base, await addMember(gateway(), limited.base))
    const list = (key: string) => send(`${gateway().baseUrl}/v1/models`, { headers: bearer(key) })
    await untilLimited(() => list(limited.key))
    const answer = await list(colleague.key)
    expectRefusal(answer, { surface: 'models' }, { status: 429, message: /organization's rate limit/ })
  })
})

describe('the demo keys', () => {
  it('are refused for what they are named after', async () => {
    const { keys, deniedModels } = gateway()
    const chat = MODEL_ROUTES[0] as ModelRoute
    for (const model of deniedModels) {
      const route = model.includes('messages') ? (MODEL_ROUTES[2] as ModelRoute) : chat
      expect((await call(route, keys.restricted, { model })).status).toBe(403)
    }
    expect((await call(chat, keys.restricted)).status).toBe(200)
    expect((await call(chat, keys.broke)).status).toBe(429)
    expect((await call(chat, keys.revoked)).status).toBe(401)
    for (const key of [keys.owner, keys.member, keys.no_mcp, keys.other_org]) {
      expect((await call(chat, key)).status).toBe(200)
    }
  })
})

describe('paths and verbs that nothing serves', () => {
  const verbs = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'HEAD']
  const paths = [
    ['/v1/chat/completions', 'chat_completions', ['POST']],
    ['/v1/chat/completions/', 'chat_completions', ['POST']],
    ['/v1/chat/completions/x', 'chat_completions', []],
    ['/v1/completions', 'chat_completions', ['POST']],
    ['/v1/messages', 'messages', ['POST']],
    ['/v1/messages/count_tokens', 'messages', ['POST']],
    ['/v1/messages/batches', 'messages', []],
    ['/v1/responses', 'responses', ['GET', 'HEAD', 'POST']],
    ['/v1/responses/resp_x', 'responses', ['GET', 'HEAD', 'DELETE']],
    ['/v1/models', 'models', ['GET', 'HEAD']],
    ['/v1/models/', 'models', ['GET', 'HEAD']],
    ['/health/', 'open', ['GET', 'HEAD']],
    ['/', 'open', []],
    ['/v1', 'open', []],
    ['/v1/', 'open', []],
    ['/v1/embeddings', 'open', []],
    ['/v1/chat', 'open', []],
    ['/.well-known/openid-configuration', 'open', []],
    ['/favicon.ico', 'open', []],
  ] as const

  it.each(paths)('%s is 404 JSON under every verb that it does not take', async (path, surface, taken) => {
    for (const method of verbs) {
      if (taken.some((verb) => verb === method)) continue
      const answer = await send(gateway().baseUrl + path, { method, headers: bearer(tenant.key), body: '{}' })
      expect(answer.status, `${method} ${path}`).toBe(404)
      expect(answer.headers['content-type']).toMatch(/^application\/json/)
      expect(answer.headers['x-request-id']).toBeDefined()
      expect(answer.headers.allow).toBe(taken.length === 0 ? undefined : taken.join(', '))
      if (method === 'HEAD') continue
      const served = path.length > 1 ? path.replace(/\/$/, '') : path
      const refusal: ExpectedRefusal = {
        status: 404,
        code: 'not_found',
        message:
          taken.length === 0
            ? `Route ${method} ${served} not found.`
            : `Route ${method} ${served} not found: this path takes ${taken.join(', ')}.`,
      }
      expect(jsonOf(answer)).toEqual(refusalBody(surface, refusal))
    }
  })

  const LACKS = 'lacks /v1'
  const REPEATS = 'has /v1 once too often'
  const WRONG = 'is probably not right'
  const mistakes = [
    ['/chat/completions', '/v1/chat/completions', LACKS],
    ['/responses', '/v1/responses', LACKS],
    ['/messages', '/v1/messages', LACKS],
    ['/models', '/v1/models', LACKS],
    ['/conversations/conv_x/items', '/v1/conversations/conv_x/items', LACKS],
    ['/v1/v1/messages', '/v1/messages', REPEATS],
    ['/v1/v1/messages/count_tokens', '/v1/messages/count_tokens', REPEATS],
    ['/v1/v1/chat/completions', '/v1/chat/completions', REPEATS],
    ['/v1/v1/models/scripted-chat', '/v1/models/scripted-chat', REPEATS],
    ['//v1/messages', '/v1/messages', WRONG],
    ['/V1/models', '/v1/models', WRONG],
    ['/v2/chat/completions', '/v1/chat/completions', LACKS],
    ['/v1/chat/completions/chat/completions', '/v1/chat/completions', WRONG],
    ['/openai/deployments/gpt/chat/completions', '/v1/chat/completions', LACKS],
  ] as const

  it.each(mistakes)('%s is answered with the right path', async (path, meant, fault) => {
    const answer = await send(gateway().baseUrl + path, { method: 'POST', headers: bearer(tenant.key) })
    expect(answer.status).toBe(404)
    const message = `Route POST ${path} not found. The path is ${meant}: the base URL of the client ${fault}.`
    const body = jsonOf(answer) as { error?: { message?: unknown } }
    expect(body.error?.message).toBe(message)
  })

  it('repeats no key of a path that it corrects', async () => {
    const { text } = await send(`${gateway().baseUrl}/v1/v1/models/${tenant.key}`)
    expect(text).toMatch(/The path is/)
    expect(text).not.toContain(tenant.key)
  })

  it('are told from those that the LLM host does not serve', async () => {
    const url = `${gateway().llmUrl}/v1/messages`
    const answer = await send(url, { method: 'POST', headers: bearer(tenant.key), body: '{}' })
    const message =
      'Route POST /v1/messages not found on this host, which serves chat completions, completions and models.'
    expectRefusal(answer, { surface: 'messages' }, { status: 404, message })
  })

  it.each(MODEL_ROUTES)('serves $path with a slash at its end', async (route) => {
    const url = `${gateway().baseUrl}${route.path}/`
    const body = JSON.stringify(route.request('Hello'))
    const answer = await send(url, { method: 'POST', headers: bearer(tenant.key), body })
    expect(answer.status, answer.text).toBe(200)
    const models = await send(`${gateway().baseUrl}/v1/models/`, { headers: bearer(tenant.key) })
    expect(jsonOf(models)).toMatchObject({ object: 'list' })
  })

  it('asks for a key under an escaped spelling of a path as well', async () => {
    const url = `${gateway().baseUrl}/v1/%6dodels`
    expect((await send(url)).status).toBe(401)
    expect((await send(url, { headers: bearer(tenant.key) })).status).toBe(200)
  })

  it('gives every answer a request id of its own', async () => {
    const urls = [`${gateway().baseUrl}/v1/models`, `${gateway().llmUrl}/x`, `${gateway().baseUrl}/health`]
    const sent = { ...bearer(tenant.key), 'x-request-id': uniqueName('mine') }
    const answers = await Promise.all(
      urls.flatMap((url) => Array.from({ length: 30 }, () => send(url, { headers: sent }))),
    )
    const ids = answers.map(({ headers }) => headers['x-request-id'])
    expect(new Set(ids).size).toBe(ids.length)
    expect(ids).not.toContain(sent['x-request-id'])
  })
})
