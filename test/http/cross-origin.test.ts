import { beforeAll, describe, expect, it } from 'vitest'
import { gateway } from '../harness/gateway.ts'
import { send } from '../harness/send.ts'
import { bearer, createTenant, type Tenant } from '../harness/tenant.ts'
import { MODEL_ROUTES, RESPONSES_ROUTE } from '../matrices/routes.ts'

// CORS_ORIGINS of the shared gateway (test/harness/global-setup.ts).
const ORIGINS = ['https://chat.example', 'http://localhost:3000']
const OTHERS = ['https://evil.example', 'https://chat.example.evil.example', 'http://chat.example', 'null']

const ROUTES = [...MODEL_ROUTES, { ...RESPONSES_ROUTE, generates: true }]

let tenant: Tenant

beforeAll(async () => {
  tenant = await createTenant(gateway())
})

const preflight = (path: string, origin: string, method = 'POST') =>
  send(gateway().baseUrl + path, {
    method: 'OPTIONS',
    headers: {
      origin,
      'access-control-request-method': method,
      'access-control-request-headers': 'authorization, content-type, x-stainless-os',
    },
  })

describe('preflight requests of configured origins', () => {
  it.each(ROUTES)('are answered for $path, without a key', async ({ path }) => {
    for (const origin of ORIGINS) {
      const { status, headers, text } = await preflight(path, origin)
      expect(status).toBe(204)
      expect(text).toBe('')
      expect(headers['access-control-allow-origin']).toBe(origin)
      expect(headers['access-control-allow-methods']).toContain('POST')
      expect(headers['access-control-allow-headers']).toBe('authorization,content-type,x-stainless-os')
      expect(Number(headers['access-control-max-age'])).toBeGreaterThan(600)
      expect(headers['access-control-allow-credentials']).toBeUndefined()
      expect(headers.vary).toContain('Origin')
    }
  })

  it.each(OTHERS)('are refused for %s', async (origin) => {
    const { status, headers } = await preflight('/v1/chat/completions', origin)
    expect(status).toBe(404)
    expect(headers['access-control-allow-origin']).toBeUndefined()
    expect(headers.vary).toContain('Origin')
  })

  it('are refused for the management API', async () => {
    const { status, headers } = await preflight('/api/organizations', 'https://chat.example', 'GET')
    expect(status).toBe(401)
    expect(headers['access-control-allow-origin']).toBeUndefined()
  })
})

describe('calls of pages of configured origins', () => {
  const [origin = ''] = ORIGINS

  it.each(ROUTES)('can be read on $path, streams and errors too', async (route) => {
    const calls: Array<[status: number, more: Record<string, unknown>]> = [
      [200, {}],
      [400, { model: 7 }],
      ...(route.generates ? [[200, { stream: true }] as [number, Record<string, unknown>]] : []),
    ]
    for (const [status, more] of calls) {
      const headers = { ...bearer(tenant.key), origin }
      const body = JSON.stringify(route.request('Hello', more))
      const answer = await send(gateway().baseUrl + route.path, { method: 'POST', headers, body })
      expect(answer.status, answer.text).toBe(status)
      expect(answer.headers['access-control-allow-origin']).toBe(origin)
      expect(answer.headers['access-control-expose-headers']).toBe('*')
      expect(answer.headers['x-request-id']).toMatch(/^req_/)
      expect(answer.headers.vary).toContain('Origin')
      expect(answer.text.length).toBeGreaterThan(10)
    }
  })

  it('can be read where the key is wrong, the path unknown or the host another', async () => {
    for (const url of [
      `${gateway().baseUrl}/v1/models`,
      `${gateway().baseUrl}/models`,
      `${gateway().llmUrl}/x`,
    ]) {
      const { status, headers } = await send(url, { headers: { origin } })
      expect([401, 404]).toContain(status)
      expect(headers['access-control-allow-origin']).toBe(origin)
    }
  })

  it('cannot be read by pages of other origins', async () => {
    for (const other of OTHERS) {
      const { status, headers } = await send(`${gateway().baseUrl}/v1/models`, {
        headers: { ...bearer(tenant.key), origin: other },
      })
      expect(status).toBe(200)
      expect(headers['access-control-allow-origin']).toBeUndefined()
      expect(headers.vary).toContain('Origin')
    }
  })
})
