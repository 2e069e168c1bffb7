import { beforeAll, describe, expect, it } from 'vitest'
import { gateway } from '../harness/gateway.ts'
import { type Answer, send } from '../harness/send.ts'
import { addKey, addMember, bearer, createTenant, type Tenant } from '../harness/tenant.ts'
import { registerScript } from '../harness/upstream.ts'
import { MODEL_ROUTES, RESPONSES_ROUTE, type RequestRoute } from '../matrices/routes.ts'
import { createResponse } from './support/response-calls.ts'

let tenant: Tenant

beforeAll(async () => {
  tenant = await createTenant(gateway())
})

function call(route: RequestRoute, key: string, more: Record<string, unknown> = {}) {
  const body = JSON.stringify(route.request('Hello', more))
  return send(gateway().baseUrl + route.path, { method: 'POST', headers: bearer(key), body })
}

describe('streams', () => {
  it.each([...MODEL_ROUTES.filter(({ generates }) => generates), RESPONSES_ROUTE])(
    'of $path are not buffered by proxies',
    async (route) => {
      const { status, headers } = await call(route, tenant.key, { stream: true })
      expect(status).toBe(200)
      expect(headers['content-type']).toMatch(/^text\/event-stream/)
      expect(headers['cache-control']).toBe('no-cache, no-transform')
      expect(headers['x-accel-buffering']).toBe('no')
    },
  )

  it('of responses that are resumed are not buffered either', async () => {
    const { id } = await createResponse(tenant.key, {})
    const url = `${gateway().baseUrl}/v1/responses/${id}?stream=true`
    const { headers } = await send(url, { headers: bearer(tenant.key) })
    expect(headers['x-accel-buffering']).toBe('no')
  })
})

describe('openai-processing-ms', () => {
  it('is the time until the answer on responses, also of streams and errors', async () => {
    for (const more of [{}, { stream: true }, { model: 7 }]) {
      const startedAt = Date.now()
      const { headers } = await call(RESPONSES_ROUTE, tenant.key, more)
      expect(headers['openai-processing-ms']).toMatch(/^\d+$/)
      expect(Number(headers['openai-processing-ms'])).toBeLessThanOrEqual(Date.now() - startedAt + 1)
    }
  })
})

describe('rate-limit headers', () => {
  /** Headers of the dialects, by route: limit, remaining and reset. */
  const namesOf = ({ surface }: Pick<RequestRoute, 'surface'>) =>
    surface === 'messages'
      ? ['limit', 'remaining', 'reset'].map((figure) => `anthropic-ratelimit-requests-${figure}`)
      : ['limit', 'remaining', 'reset'].map((figure) => `x-ratelimit-${figure}-requests`)

  const figuresOf = (route: Pick<RequestRoute, 'surface'>, { headers }: Answer) => {
    const [limit = '', remaining = '', reset = ''] = namesOf(route).map((name) => String(headers[name]))
    const isOurs = (name: string) => /ratelimit/.test(name) && !namesOf(route).includes(name)
    expect(Object.keys(headers).filter(isOurs)).toEqual([])
    return { limit: Number(limit), remaining: Number(remaining), reset }
  }

  const secondsUntil = (reset: string) =>
    /^\d+s$/.test(reset) ? Number.parseInt(reset, 10) : (Date.parse(reset) - Date.now()) / 1_000

  const routes = [...MODEL_ROUTES, RESPONSES_ROUTE]

  it.each(routes)('of $path are the limits of the user, also of streams and refused calls', async (route) => {
    const user = await addMember(gateway(), tenant.base, { rate_limit_per_minute: 4 })
    const { key } = await addKey(gateway(), tenant.base, user)
    const generates = route.path !== '/v1/messages/count_tokens'
    const calls: Array<[status: number, more: Record<string, unknown>]> = [
      [200, {}],
      [200, generates ? { stream: true } : {}],
      [route.surface === 'messages' ? 404 : 400, { model: 'no-such-model' }],
    ]
    const seen: number[] = []
    for (const [status, more] of calls) {
      const answer = await call(route, key, more)
      expect(answer.status, answer.text).toBe(status)
      const { limit, remaining, reset } = figuresOf(route, answer)
      expect(limit).toBe(4)
      seen.push(remaining)
      expect(secondsUntil(reset)).toBeGreaterThan(-2)
      expect(secondsUntil(reset)).toBeLessThanOrEqual(60)
    }
    expect(seen[0]).toBe(3)
    // A new window may begin between two calls; it counts most of the calls of the one before.
    expect(seen[2]).toBeLessThanOrEqual(3)
    expect(seen.every((remaining) => remaining >= 1)).toBe(true)
  })

  const ofEachDialect = routes.filter(({ name }) =>
    ['chat completions', 'messages', 'responses'].includes(name),
  )
  it.each(ofEachDialect)('of $path leave no room with a 429, and agree with Retry-After', async (route) => {
    const user = await addMember(gateway(), tenant.base, { rate_limit_per_minute: 1 })
    const { key } = await addKey(gateway(), tenant.base, user)
    let answer = await call(route, key)
    for (let tries = 0; answer.status === 200 && tries < 4; tries++) answer = await call(route, key)
    expect(answer.status).toBe(429)
    expect(answer.text).toContain("Your user's rate limit of 1 call a minute is reached.")
    const { limit, remaining, reset } = figuresOf(route, answer)
    expect([limit, remaining]).toEqual([1, 0])
    const wait = Number(answer.headers['retry-after'])
    expect(Math.abs(secondsUntil(reset) - wait)).toBeLessThan(3)
  })

  it('are those of the organization where it has less room than the user', async () => {
    const small = await createTenant(gateway(), { organization: { rate_limit_per_minute: 2 } })
    const route: RequestRoute = RESPONSES_ROUTE
    const first = await call(route, small.key)
    expect(figuresOf(route, first)).toMatchObject({ limit: 2, remaining: 1 })
    let answer = await call(route, small.key)
    for (let tries = 0; answer.status === 200 && tries < 4; tries++) answer = await call(route, small.key)
    expect(answer.text).toContain("Your organization's rate limit of 2 calls a minute is reached.")
    expect(figuresOf(route, answer)).toMatchObject({ limit: 2, remaining: 0 })
  })

  it('are sent with reads, too', async () => {
    const { conversation } = await createResponse(tenant.key, {})
    for (const path of ['/v1/models', '/v1/models/none', `/v1/conversations/${conversation?.id}/items`]) {
      const answer = await send(gateway().baseUrl + path, { headers: bearer(tenant.key) })
      const { limit, remaining } = figuresOf({ surface: 'responses' }, answer)
      expect(limit).toBe(600)
      expect(remaining).toBeLessThan(600)
    }
  })

  it('are absent without a known key, and with too few credits', async () => {
    const poor = await createTenant(gateway(), { credits: 0 })
    const route: RequestRoute = RESPONSES_ROUTE
    for (const key of ['hg_x', poor.key]) {
      const { status, headers } = await call(route, key)
      expect([401, 429]).toContain(status)
      expect(Object.keys(headers).filter((name) => name.includes('ratelimit'))).toEqual([])
    }
  })

  it.each(MODEL_ROUTES.filter(({ generates }) => generates))(
    'of the provider do not reach callers of $path',
    async (route) => {
      const headers = {
        'content-type': 'application/json',
        'x-ratelimit-limit-requests': '77777',
        'x-ratelimit-remaining-tokens': '77777',
        'anthropic-ratelimit-requests-limit': '77777',
        'anthropic-ratelimit-tokens-remaining': '77777',
      }
      const script = await registerScript(gateway(), [
        { status: 429, headers, body: '{"error":{"message":"x"}}' },
      ])
      const body = JSON.stringify(route.request(script))
      const answer = await send(gateway().baseUrl + route.path, {
        method: 'POST',
        headers: bearer(tenant.key),
        body,
      })
      expect(answer.status).toBe(429)
      expect(JSON.stringify(answer.headers)).not.toContain('77777')
      expect(figuresOf(route, answer).limit).toBe(600)
    },
  )
})
